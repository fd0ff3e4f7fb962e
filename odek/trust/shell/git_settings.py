"""Which settings of git start no program."""

import re

__all__ = ["HARMLESS_SETTING"]

HARMLESS_SETTING = re.compile(
    r"""
    user\.(name|email|signingkey)
    | (color|advice|status|blame|column|rerere|feature|grep|i18n|stash|checkout|pack)\..*
    | core\.(quotepath|autocrlf|safecrlf|abbrev|filemode|ignorecase|eol|bare|longpaths|preloadindex
      |untrackedcache|commentchar|compression|whitespace)
    | log\.[^.]* | init\.defaultbranch | (commit|tag)\.gpgsign | pull\.(rebase|ff)
    | merge\.(ff|conflictstyle|log)
    | push\.(default|autosetupremote|followtags) | rebase\.(autostash|autosquash|updaterefs)
    | fetch\.(prune|parallel) | diff\.(algorithm|renames|colormoved|context|noprefix|mnemonicprefix|submodule)
    | branch\.(sort|autosetuprebase|.*\.(merge|remote|description))
    | format\.pretty | gc\.auto | protocol\.version
    | http\.(postbuffer|lowspeed.*) | index\.version | safe\.directory | transfer\..* | receive\.deny.*
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Settings that decide only how things look or who signs; any other may name a program."""

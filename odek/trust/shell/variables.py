"""Environment variables that make other programs run something, and those that hold secrets."""

import re

from odek.trust.risk import Risk

__all__ = ["holds_secret", "judge_assignment"]

_LOADS_CODE = re.compile(
    r"""
    PATH | IFS | ENV | BASH_ENV | BASH_FUNC_.* | BASHOPTS | SHELLOPTS | PS[0-4] | PROMPT_COMMAND | CDPATH
    | HISTFILE | GLOBIGNORE | LD_.* | DYLD_.* | GCONV_PATH | LOCPATH | NLSPATH | MALLOC_.* | GLIBC_TUNABLES
    | TERMINFO(_DIRS)? | TERMCAP | .*PAGER | LESS(OPEN|CLOSE|KEY|EDIT)? | .*EDITOR | VISUAL | FCEDIT
    | BROWSER | SHELL | COMSPEC | .*ASKPASS
    | GIT_(?!AUTHOR_|COMMITTER_|TERMINAL_PROMPT$|OPTIONAL_LOCKS$|TRACE|MERGE_AUTOEDIT$
      |FLUSH$|CEILING_DIRECTORIES$).*
    | PYTHON(?!DONTWRITEBYTECODE$|UNBUFFERED$|IOENCODING$|UTF8$|HASHSEED$|FAULTHANDLER$
      |WARNINGS$|PYCACHEPREFIX$).*
    | NODE_(OPTIONS|PATH|REPL_EXTERNAL_MODULE) | PERL5?(LIB|OPT|DB|SHELL) | PERL5.* | RUBY(OPT|LIB|SHELL)
    | GEM_(HOME|PATH) | BUNDLE_GEMFILE | LUA_(INIT|PATH|CPATH).* | (_)?JAVA_(TOOL_)?OPTIONS
    | JDK_JAVA_OPTIONS | CLASSPATH | MAVEN_OPTS | GRADLE_OPTS | R_(PROFILE|ENVIRON).*
    | PHP(RC|_INI_SCAN_DIR) | MAKEFLAGS | MAKEFILES | GNUMAKEFLAGS | CC | CXX | CPP | LD | AR
    | RUSTC(_WRAPPER|_WORKSPACE_WRAPPER)? | RUSTDOC | CARGO(_.*(RUNNER|LINKER|WRAPPER|RUSTFLAGS)|_HOME)?
    | RUSTUP_.* | GOFLAGS | GOTOOLCHAIN | GOPROXY | GOROOT | npm_config_.* | NPM_CONFIG_.* | PIP_.*
    | UV_.*(INDEX|PYTHON).* | RSYNC_RSH | CVS_RSH | SSH_.* | SVN_SSH | TAR_OPTIONS | RIPGREP_CONFIG_PATH
    | FZF_.*COMMAND | ANSIBLE_.* | VIMINIT | EXINIT | MANOPT | MANPATH | GROFF_.* | HOME | XDG_CONFIG_.*
    | .*_(COMMAND|CMD|HOOK|HELPER|WRAPPER|LAUNCHER|PRELOAD|PLUGINS?|PLUGIN_PATH|STARTUP)
    | (WGET|SYSTEMWGET|INPUT|SCREEN|MAIL)RC | CURL_HOME | SSLKEYLOGFILE | XDG_DATA_(HOME|DIRS)
    | DOCKER_HOST | KUBECONFIG | AWS_CONFIG_FILE | OPENSSL_CONF | OPENSSL_.*MODULES | http_proxy
    | https_proxy | all_proxy | HTTPS?_PROXY | ALL_PROXY | ODEK_.* | PYTEST_(ADDOPTS|PLUGINS)
    """,
    re.VERBOSE,
)
# A pager or editor that does nothing is what scripts set to keep git from asking.
_HARMLESS_PROGRAM = re.compile(r"(|cat|less|more|true|:|/bin/cat|/usr/bin/cat|/bin/true|dumb)$")
_PROGRAM_NAMES = re.compile(r"(.*PAGER|.*EDITOR|VISUAL|GIT_SEQUENCE_EDITOR)$")

_SECRET = re.compile(
    r"(.*_)?(API_?KEY|KEY|TOKEN|SECRETS?|PASSWORD|PASSWD|PASSPHRASE|PWD_?SECRET|CREDENTIALS?|PRIVATE_KEY|ACCESS_KEY"
    r"|SECRET_KEY|AUTH|PAT|DSN|DATABASE_URL|CONNECTION_STRING)(_ID|_BASE64|_B64)?$",
    re.IGNORECASE,
)


def judge_assignment(name: str, value: str) -> tuple[Risk, str] | None:
    """Return class and reason where setting ``name`` to ``value`` changes what runs, else None."""
    if not _LOADS_CODE.fullmatch(name):
        return None
    if _PROGRAM_NAMES.match(name) and _HARMLESS_PROGRAM.match(value):
        return None
    return Risk.CODE_EXECUTION, f"sets {name}, which decides what other programs run"


def holds_secret(name: str) -> bool:
    """Whether a variable is by its name a credential."""
    return bool(_SECRET.match(name))

"""What the words of a command tell beyond the table of programs: guarded files, and telling options.

The table lists what is known. These rules catch what is missing from it where a word gives
itself away; they never make a verdict lower.
"""

import re
from collections.abc import Iterator

import msgspec

from odek.trust.risk import Part, Risk
from odek.trust.shell.call import Argument, Call
from odek.trust.shell.words import Word

__all__ = ["judge"]

_RUNS = re.compile(
    r"--(?!no-)(.*-)?(exec|execute|command|cmd|pager|editor|program|rsh|hook|plugin|eval|shell)$"
)
_WRITES = re.compile(r"--(.*-)?(out|output|outfile|log|logfile|dump|save|write|dest|trace|profile)(-.*)?$")
# A file inside a word: behind the sign of a file of options, an equals sign, or a short option.
_FILE_IN_WORD = re.compile(r"@([^\s]+)$|-{1,2}[\w-]+=(.+)$|-\w([/.\x00].*)$")


def judge(call: Call) -> Iterator[Part]:
    """Judge options that the table does not list, and files in places where it expects none."""
    if call.rest:
        return
    for argument in call.arguments:
        if argument.option is None and argument.name.startswith("--"):
            yield from _telling_name(call, argument)
    for word in _possible_files(call):
        # A value that data gives is most often a number or a text, and no file.
        plain = msgspec.structs.replace(word, foreign=False, hidden=False)
        yield from (part for part in call.reads(plain) if part.risk > Risk.SAFE)


def _telling_name(call: Call, argument: Argument) -> Iterator[Part]:
    if _RUNS.match(argument.name) and call.rule.risk < Risk.CODE_EXECUTION:
        yield call.part(Risk.CODE_EXECUTION, f"{argument.name} sounds like running something")
    elif argument.value is not None and _WRITES.match(argument.name):
        yield from (part for part in call.writes(argument.value) if part.risk > Risk.LOCAL_WRITE)


def _possible_files(call: Call) -> Iterator[Word]:
    """Yield words that would be files if a guarded file had their name."""
    kind = call.rule.operands
    if kind == "any":
        yield from call.operands
    values = [item.value for item in call.arguments if item.option is not None and item.value is not None]
    if kind != "pattern":
        yield from values
    texts = {value.text for value in values}
    for word in call.words:
        match = _FILE_IN_WORD.match(word.text)
        text = (match[1] or match[2] or match[3]) if match else ""
        if text and text not in texts and ("/" in text or kind in {"read", "any"}):
            yield word.with_text(text)

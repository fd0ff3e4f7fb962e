"""Small languages inside commands: which of their programs can start others or write files."""

import re
from collections.abc import Iterator

from odek.trust.paths import UNRESOLVED
from odek.trust.risk import Part, Risk
from odek.trust.shell.call import Call
from odek.trust.shell.words import Word

__all__ = ["awk", "dc", "jq", "rewrites", "sed", "sql"]

_AWK_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_AWK_RUNS = re.compile(
    r"\bsystem\s*\(|\bgetline\b|(?<!\|)\|(?!\|)|/inet|@\w+\s*\(|@(load|include|namespace)\b|\bextension\b"
)
_AWK_PRINTS = re.compile(r'\bprintf?\b[^;}\n]*?(>{1,2})\s*("([^"]*)")?')


def awk(call: Call) -> Iterator[Part]:
    """Judge the program text of awk: its first operand, or the values of ``-e``."""
    texts = [item.value.text for item in call.arguments if item.name in {"-e", "--source"} and item.value]
    if not texts and not call.has("-f", "--file", "-E", "--exec"):
        texts = [word.text for word in call.operands[:1]]
    for text in texts:
        bare = re.sub(r"/(?:[^/\\\n]|\\.)*/", "//", _AWK_STRING.sub('""', text))
        if UNRESOLVED in text or _AWK_RUNS.search(bare) or "/inet" in text:
            yield call.part(
                Risk.CODE_EXECUTION, "the awk program runs commands or is not known before it runs"
            )
        if "ENVIRON" in bare:
            yield call.part(Risk.SYSTEM_WRITE, "the awk program reads the environment")
        for match in _AWK_PRINTS.finditer(text):
            if match[3] is None:
                yield call.part(Risk.SYSTEM_WRITE, "the awk program may write to a file that is not known")
            else:
                yield call.part(Risk.LOCAL_WRITE, "the awk program writes a file")
                yield from call.writes(Word(match[3]))
    if call.has("-i") and any(
        item.name == "-i" and item.value and item.value.text == "inplace" for item in call.arguments
    ):
        for word in call.operands[1:]:
            yield from call.writes(word)


def sed(call: Call) -> Iterator[Part]:
    """Judge sed scripts and edits in place."""
    texts = [item.value.text for item in call.arguments if item.name in {"-e", "--expression"} and item.value]
    files = call.operands
    if not texts and not call.has("-f", "--file"):
        texts, files = [word.text for word in call.operands[:1]], call.operands[1:]
    for text in texts:
        yield from _sed_script(call, text)
    if any(item.name.startswith(("-i", "--in")) for item in call.arguments):
        yield call.part(Risk.LOCAL_WRITE, "edits files in place")
        for word in files:
            yield from call.writes(word)


def _sed_script(call: Call, script: str) -> Iterator[Part]:
    try:
        commands = list(_sed_commands(script))
    except ValueError:
        yield call.part(Risk.CODE_EXECUTION, "the sed script cannot be read with certainty")
        return
    for command, argument in commands:
        if command == "e":
            yield call.part(Risk.CODE_EXECUTION, "the sed script runs a command")
        elif command in {"w", "W"}:
            yield call.part(Risk.LOCAL_WRITE, "the sed script writes a file")
            yield from call.writes(Word(argument))
        elif command in {"r", "R"}:
            yield from call.reads(Word(argument))


_SED_ADDRESS = re.compile(
    r"[0-9$~+,!\s;{}]+|/(?:[^/\\\n]|\\.)*/[IM]*|\\(.)(?:(?!\1)[^\\\n]|\\.)*\1[IM]*", re.DOTALL
)


def _sed_commands(script: str) -> Iterator[tuple[str, str]]:
    """Yield each command that matters with its argument.

    Raises:
        ValueError: something is there that this reader does not know.
    """
    at = 0
    while at < len(script):
        if match := _SED_ADDRESS.match(script, at):
            at = match.end()
            continue
        letter = script[at]
        at += 1
        end = script.find("\n", at) % (len(script) + 1)
        end = len(script) if end < at else end
        match letter:
            case "#" | "a" | "i" | "c" | ":" | "b" | "t" | "T":
                stop = end
                if letter in "btT" and ";" in script[at:end]:
                    stop = script.index(";", at)
                at = stop
            case "e" | "w" | "W" | "r" | "R":
                yield letter, script[at:end].strip()
                at = end
            case "s":
                at, flags, target = _sed_substitution(script, at)
                if "e" in flags:
                    yield "e", ""
                if "w" in flags:
                    yield "w", target
            case "y":
                at, _, _ = _sed_substitution(script, at)
            case (
                "p"
                | "P"
                | "d"
                | "D"
                | "h"
                | "H"
                | "g"
                | "G"
                | "x"
                | "n"
                | "N"
                | "q"
                | "Q"
                | "l"
                | "L"
                | "="
                | "z"
                | "F"
            ):
                pass
            case "v":
                at = end
            case _:
                raise ValueError(letter)


def _sed_substitution(script: str, at: int) -> tuple[int, str, str]:
    """Return the end, the flags and the file of an ``s`` command whose delimiter is at ``at``."""
    if at >= len(script):
        raise ValueError("s")
    delimiter, found = script[at], 0
    at += 1
    while at < len(script) and found < 2:
        if script[at] == "\\":
            at += 1
        elif script[at] == delimiter:
            found += 1
        at += 1
    if found < 2:
        raise ValueError("s")
    start = at
    while at < len(script) and script[at] in "gpiIemM0123456789":
        at += 1
    flags = script[start:at]
    if script[at : at + 1] == "w":
        end = script.find("\n", at)
        end = len(script) if end < 0 else end
        return end, flags + "w", script[at + 1 : end].strip()
    return at, flags, ""


_SQL_DESTROYS = re.compile(
    r"\b(drop\s+(table|database|schema|user|role|owned|view|index)|truncate\b|delete\s+from|flushall"
    r"|drop(Database|Collection|User|Indexe?s?)?\s*\(|(delete|remove)(One|Many)?\s*\()",
    re.IGNORECASE,
)
_SQL_RUNS = re.compile(
    r"(?m)^[^\S\n]*\.(shell|system|sh|sy|import|output|once|o|excel|read|load|open|save|backup|restore|log|cd|archive|ar|edit)\b"
    r"|\\!|\\copy|\\o\b|\\g\s*\||^(?>.*?\bcopy\b).*\b(program|to|from)\b|load_extension|edit\s*\(|writefile|readfile|fts3_tokenizer"
    r"|\battach\b|into\s+(out|dump)file|load_file|xp_cmdshell|sys_exec|lo_export|pg_read_file|install\s|\bsystem\b",
    re.IGNORECASE,
)


def sql(call: Call) -> Iterator[Part]:
    """Judge the statements given to a database client."""
    named = {"-c", "--command", "-e", "--execute", "-cmd", "--eval"}
    texts = [
        item.value.text for item in call.arguments if item.name in named and item.value
    ] + call.context.texts
    if call.rule.operands == "-":
        texts += [word.text for word in call.operands[1:]]
        for word in call.operands[:1]:
            yield from call.writes(word)
    if not texts and call.name in {"sqlite3", "sqlite", "duckdb"}:
        yield call.part(Risk.CODE_EXECUTION, "reads statements and commands from its input")
    for text in texts:
        if _SQL_DESTROYS.search(text):
            yield call.part(Risk.DESTRUCTIVE, "the statement destroys data")
        if _SQL_RUNS.search(text) or UNRESOLVED in text:
            yield call.part(Risk.CODE_EXECUTION, "the statement reaches beyond the database")


_JQ_READS = re.compile(r"\benv\b|\$ENV|\binput_filename\b|\b(import|include)\b")


def jq(call: Call) -> Iterator[Part]:
    """Judge a jq filter: it may show the environment, or load other code."""
    text = call.operands[0].text if call.operands else ""
    if _JQ_READS.search(re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)):
        yield call.part(Risk.SYSTEM_WRITE, "the filter reads the environment or other files")
    for at, word in enumerate(call.words[:-2]):
        if word.text in {"--slurpfile", "--rawfile", "--argfile"}:
            yield from call.reads(call.words[at + 2])


def rewrites(call: Call) -> Iterator[Part]:
    """Judge the files that ``perl -i`` and the like edit in place."""
    if any(item.name == "-i" for item in call.arguments):
        for word in call.operands:
            yield from call.writes(word)


def dc(call: Call) -> Iterator[Part]:
    """Judge the desk calculator: ``!`` in its program starts a command."""
    texts = [item.value.text for item in call.arguments if item.name in {"-e", "--expression"} and item.value]
    if call.operands or call.has("-f", "--file") or not texts:
        texts += [UNRESOLVED] if call.operands or not call.context.texts else call.context.texts
    if any("!" in re.sub(r"![<>=]", "", text) or UNRESOLVED in text for text in texts):
        yield call.part(Risk.CODE_EXECUTION, "the program runs commands or is not known before it runs")

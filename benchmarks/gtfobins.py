"""Reads the snippets of GTFOBins from a folder of its entries, in the formats that it has had.

Entries are YAML between ``---`` lines, or JSON. Of YAML only what they use is read: the
functions, and in each the blocks of ``code:``.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

__all__ = ["GUARDED", "snippets"]

# What stands for the person's or the system's files in a snippet, and a file that must not be touched.
_PLACEHOLDERS = {
    r"/path/to/input-file|(/tmp/)?file_to_(read|get)|input_file": "/etc/shadow",
    r"file_to_send": "/root/.ssh/id_rsa",
    r"/path/to/output-file|(/tmp/)?file_to_(write|save|change)|where_to_(save|write)|output_file": (
        "/etc/cron.d/job"
    ),
    r"/path/to/output-dir|dir_to_write": "/etc/cron.d",
    r"/path/to/input-dir|folder_to_list": "/root",
}
GUARDED = re.compile(r"/etc/shadow|/etc/cron\.d|/root")
"""What stands in place of the placeholders."""

_FUNCTION = re.compile(r" {2}([\w-]+):\s*$")
_CODE = re.compile(r"( +(?:- )?)code: ?(.*)$")


def snippets(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield (program, function, code) of each entry, with guarded files in place of the placeholders."""
    for path in sorted(folder.iterdir()):
        if not path.is_file() or path.name.startswith("."):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        found = _from_json(text) if path.suffix == ".json" else _from_yaml(text)
        for function, code in found:
            yield path.stem, function, _with_guarded_files(code)


def _with_guarded_files(code: str) -> str:
    for placeholder, path in _PLACEHOLDERS.items():
        code = re.sub(placeholder, path, code)
    return code.strip()


def _from_json(text: str) -> Iterator[tuple[str, str]]:
    for function, entries in json.loads(text).get("functions", {}).items():
        for entry in entries if isinstance(entries, list) else ():
            if entry.get("code"):
                yield function, entry["code"]


def _from_yaml(text: str) -> Iterator[tuple[str, str]]:
    function = ""
    lines = iter(text.split("\n"))
    line = next(lines, None)
    while line is not None:
        if match := _FUNCTION.match(line):
            function = match[1]
        code = _CODE.match(line)
        line = next(lines, None)
        if code is None:
            continue
        if code[2] not in {"|", "|-", "|+", ">", ">-"}:
            yield function, _unquoted(code[2])
            continue
        block: list[str] = []
        while line is not None and (not line.strip() or len(line) - len(line.lstrip()) > len(code[1])):
            block.append(line)
            line = next(lines, None)
        indent = min((len(one) - len(one.lstrip()) for one in block if one.strip()), default=0)
        yield function, "\n".join(one[indent:] for one in block)


def _unquoted(text: str) -> str:
    if text[:1] == text[-1:] == "'":
        return text[1:-1].replace("''", "'")
    return json.loads(text) if text[:1] == text[-1:] == '"' else text

"""``odek memory facts edit``: a fact file in the person's editor, saved only over what they saw."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from odek.cli.memory_stores import by_person
from odek.errors import ConfigError, MemoryRefusedError, TargetChangedError
from odek.storage.files import describe

if TYPE_CHECKING:
    from odek.memory.facts import FactStore, Target

__all__ = ["edit"]

SEPARATOR = "\n§\n"


def edit(store: "FactStore", target: "Target", *, as_json: bool) -> int:
    """Open the entries of ``target`` in an editor and save them; return the exit status.

    What cannot be saved, because the file changed meanwhile or an entry is refused, is kept
    in a file that is named.

    Raises:
        ConfigError: there is no editor, or it failed.
    """
    from odek.memory.fact_file import FactFile

    facts = store.read(target)
    before = SEPARATOR.join(fact.text for fact in facts.entries)
    descriptor, name = tempfile.mkstemp(prefix=f"odek-{target}-", suffix=".md")
    draft = Path(name)
    os.close(descriptor)
    text = before + "\n" if before else ""
    draft.write_text(text, encoding="utf-8")
    _run_editor(draft, text)
    try:
        entries = FactFile.parse(draft.read_bytes()).texts
    except OSError as error:
        raise ConfigError(
            f"the editor left no text in {draft}: {describe(error)}; nothing is changed"
        ) from None
    if list(entries) == [fact.text for fact in facts.entries]:
        draft.unlink()
        return _done("unchanged", target, facts.percent, as_json=as_json)
    try:
        after = store.replace_all(target, facts.content_hash, entries, action="edit", origin=by_person())
    except (MemoryRefusedError, TargetChangedError) as error:
        print(f"odek: {error}\nodek: your text is kept in {draft}", file=sys.stderr)
        return 1
    draft.unlink()
    return _done("saved", target, after.percent, as_json=as_json)


def _run_editor(draft: Path, text: str) -> None:
    """Let the person change ``draft``, which holds ``text``.

    Raises:
        ConfigError: there is no editor, or it failed; a changed draft is kept, and named.
    """
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not command and not (sys.stdin.isatty() and sys.stdout.isatty()):
        draft.unlink()
        raise ConfigError("there is no terminal to edit in: set EDITOR, or use `odek memory facts add`")
    command = command or "vi"
    try:
        status = subprocess.run([*shlex.split(command), str(draft)], check=False).returncode
    except (OSError, ValueError) as error:
        draft.unlink()
        reason = describe(error) if isinstance(error, OSError) else str(error)
        raise ConfigError(f"the editor {command!r} cannot be started: {reason}; set EDITOR") from None
    if status != 0:
        kept = draft.read_bytes() != text.encode()
        if not kept:
            draft.unlink()
        told = f"nothing is saved, your text is kept in {draft}" if kept else "nothing is changed"
        raise ConfigError(f"the editor {command!r} ended with {status}; {told}")


def _done(done: str, target: "Target", percent: int, *, as_json: bool) -> int:
    if as_json:
        print(json.dumps({"done": done, "target": target, "percent": percent}))
    else:
        print(f"{done}: {target}.md, {percent}% full")
    return 0

"""The facts: two small text files, kept by the agent and by the person.

Blocking; callers that must not wait use ``service``. Any number of processes may
change the files at once: each change is made under one lock, on what is then on disk.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import msgspec

from odek.errors import MemoryRefusedError, TargetChangedError
from odek.memory.fact_file import FactFile, canonical
from odek.memory.places import read_bounded
from odek.text import clip_line

if TYPE_CHECKING:
    from odek.memory.commit import Committer, Transaction
    from odek.memory.journal import Origin

__all__ = [
    "FIELD_LIMIT_BYTES",
    "TARGETS",
    "Change",
    "Fact",
    "FactLimits",
    "FactStore",
    "Facts",
    "Target",
    "check_field",
]

Target = Literal["user", "env"]
TARGETS: tuple[Target, ...] = get_args(Target)

FIELD_LIMIT_BYTES = 2048
"""Longest field of a change, so that its approval can show it in whole."""

# Far beyond any limit that a prompt can bear, and small enough to read at once.
_READ_LIMIT_BYTES = 1024 * 1024


class FactLimits(msgspec.Struct, frozen=True):
    """Largest size of each file in bytes, separators included."""

    user: int = 4000
    env: int = 8000

    def of(self, target: Target) -> int:
        """Return the limit of one file."""
        return self.user if target == "user" else self.env


class Fact(msgspec.Struct, frozen=True):
    """One entry. ``index`` counts from 1, oldest first.

    ``rejection`` says why the entry must not reach a model, "" if it may: a file edited
    by hand or by another program is not trusted because it is there.
    """

    target: Target
    index: int
    text: str
    rejection: str = ""

    @property
    def size_bytes(self) -> int:
        """Size of the text in UTF-8."""
        return len(self.text.encode())

    @property
    def shown(self) -> str:
        """What a model may read of the entry."""
        return f"[withheld: {self.rejection}]" if self.rejection else self.text


class Facts(msgspec.Struct, frozen=True):
    """One file at one moment; ``used_bytes`` is its size, separators included."""

    target: Target
    entries: tuple[Fact, ...]
    used_bytes: int
    limit_bytes: int

    @property
    def percent(self) -> int:
        """How full the file is; an overfull one is beyond 100."""
        return self.used_bytes * 100 // self.limit_bytes if self.limit_bytes else 100

    @property
    def content_hash(self) -> str:
        """SHA-256 over the entries: as long as it is the same, nobody changed one."""
        import hashlib

        return hashlib.sha256("\0".join(fact.text for fact in self.entries).encode()).hexdigest()

    def listing(self) -> str:
        """Return one line an entry: index, size and how it begins."""
        return "\n".join(
            f'[{fact.index}] {fact.size_bytes}c "{clip_line(fact.shown, 72)}"' for fact in self.entries
        )


class Change(msgspec.Struct, frozen=True):
    """A change that is on disk, and the file after it; ``changed`` is False if it already said so."""

    fact: Fact
    facts: Facts
    changed: bool = True


class FactStore:
    """The fact files below ``directory``, which is made when something is stored.

    ``poll`` is called while waiting for the lock and may raise to give up. ``notify`` gets
    a line for whatever was repaired on the way, or could not be recorded. ``object_to``
    is asked about new content that passed the scan, and says why it is refused, "" if it is not.

    Every method may raise StoreError: a file cannot be read or written. A file that
    cannot be read is never overwritten. What is changed goes to the journal with its
    ``origin``.
    """

    def __init__(
        self,
        directory: Path,
        limits: FactLimits,
        *,
        poll: Callable[[], None] | None = None,
        notify: Callable[[str], None] | None = None,
        object_to: Callable[[str], str] | None = None,
    ) -> None:
        self._object_to = object_to
        self._directory = directory
        self._limits = limits
        self._poll = poll
        self._notify = notify

    def read(self, target: Target) -> Facts:
        """Return one file as it is now; a missing one is empty. Takes no lock."""
        return self._facts(target, self._load(target))

    def check_content(self, content: str) -> str:
        """Return ``content`` as it would be stored.

        Raises:
            MemoryRefusedError: it is empty, too long, not encodable, or fails the scan.
        """
        check_field("content", content)
        text = canonical(content)
        if not text:
            raise MemoryRefusedError("memory: content is empty; say what to store")
        if reason := _rejection(text) or (self._object_to(text) if self._object_to else ""):
            raise MemoryRefusedError(f"memory: content is not stored: {reason}")
        return text

    def add(
        self, target: Target, content: str, *, origin: "Origin | None" = None, undoes: str = ""
    ) -> Change:
        """Store ``content`` as a new entry; one that is there already stays as it is.

        Raises:
            MemoryRefusedError: the content is refused, or the file would be too large;
                the error then lists what is stored.
        """
        text = self.check_content(content)
        with self._committer().change() as transaction:
            file = self._load(target)
            if text in file.texts:
                return self._change(target, text, file, changed=False)
            change = self._save(transaction, target, text, file, file.with_added(text))
            _note(transaction, "add", target, "", text, origin, undoes)
            return change

    def select(self, old_text: str, target: Target | None = None) -> Fact:
        """Return the one entry that ``old_text`` is, or is part of, in one file or in both.

        An entry equal to ``old_text`` wins over longer ones that contain it.

        Raises:
            MemoryRefusedError: no entry or several match; the error lists them.
        """
        check_field("old_text", old_text)
        wanted = canonical(old_text)
        if not wanted:
            raise MemoryRefusedError("memory: old_text is empty; name a part of the entry")
        files = [self.read(name) for name in TARGETS if target in {None, name}]
        entries = [fact for facts in files for fact in facts.entries]
        equal = [fact for fact in entries if fact.text == wanted]
        # Equal entries are one fact; the first stands for all of its file.
        matches = equal or [fact for fact in entries if wanted in fact.text]
        distinct = {(fact.target, fact.text): fact for fact in reversed(matches)}
        if len(distinct) == 1:
            return next(iter(distinct.values()))
        where = f"{target}.md" if target else "user.md or env.md"
        found = f"{len(distinct)} entries contain" if distinct else "no entry contains"
        chosen = [f"{facts.target}.md:\n{facts.listing()}" for facts in files if facts.entries]
        listing = "\n" + "\n".join(chosen) if chosen else ""
        raise MemoryRefusedError(
            f"memory: {found} {clip_line(wanted, 60)!r} in {where}; "
            f"name a part that only one entry has{listing}"
        )

    def replace(
        self,
        fact: Fact,
        content: str,
        *,
        action: Literal["replace", "merge"] = "replace",
        origin: "Origin | None" = None,
        undoes: str = "",
    ) -> Change:
        """Put ``content`` in the place of ``fact``, which must still be there unchanged.

        Raises:
            MemoryRefusedError: the content is refused, or the file would be too large.
            TargetChangedError: the entry is no longer what ``fact`` says.
        """
        text = self.check_content(content)
        with self._committer().change() as transaction:
            file = self._load_with(fact)
            after = file.with_replaced(fact.text, text)
            change = self._save(transaction, fact.target, text, file, after)
            if change.changed:
                _note(transaction, action, fact.target, fact.text, text, origin, undoes)
            return change

    def remove(self, fact: Fact, *, origin: "Origin | None" = None, undoes: str = "") -> Change:
        """Remove ``fact``, which must still be there unchanged.

        Raises:
            TargetChangedError: the entry is no longer what ``fact`` says.
        """
        with self._committer().change() as transaction:
            file = self._load_with(fact)
            change = self._save(transaction, fact.target, fact.text, file, file.without(fact.text))
            _note(transaction, "remove", fact.target, fact.text, "", origin, undoes)
            return change

    def replace_all(
        self,
        target: Target,
        expected_hash: str,
        entries: Sequence[str],
        *,
        action: Literal["consolidate", "edit"] = "consolidate",
        origin: "Origin | None" = None,
        undoes: str = "",
    ) -> Facts:
        """Put ``entries`` in the place of all that are there, if those are still what was seen.

        ``expected_hash`` is the ``content_hash`` of the facts as they were seen. An entry that
        is already there may be longer than a field.

        Raises:
            MemoryRefusedError: an entry is refused, or the file would be too large.
            TargetChangedError: the file changed meanwhile.
        """
        with self._committer().change() as transaction:
            file = self._load(target)
            facts = self._facts(target, file)
            if facts.content_hash != expected_hash:
                raise TargetChangedError(
                    f"memory: {target}.md changed meanwhile, nothing was done; "
                    f"it now holds:\n{facts.listing()}"
                )
            known = set(file.texts)
            texts = dict.fromkeys(
                text if text in known else self.check_content(text) for text in map(canonical, entries)
            )
            after = file.with_only(tuple(texts))
            change = self._save(transaction, target, "", file, after)
            if change.changed:
                before, now = (part.encode().decode("utf-8", "replace") for part in (file, after))
                _note(transaction, action, target, before, now, origin, undoes)
            return change.facts

    def _committer(self) -> "Committer":
        from odek.memory.commit import Committer

        return Committer(self._directory, poll=self._poll, notify=self._notify)

    def _load(self, target: Target) -> FactFile:
        try:
            data = read_bounded(self._directory, f"{target}.md", limit_bytes=_READ_LIMIT_BYTES)
        except FileNotFoundError:
            data = b""
        return FactFile.parse(data)

    def _load_with(self, fact: Fact) -> FactFile:
        file = self._load(fact.target)
        if fact.text not in file.texts:
            facts = self._facts(fact.target, file)
            raise TargetChangedError(
                "memory: the entry changed meanwhile, nothing was done; "
                f"{fact.target}.md now holds:\n{facts.listing()}"
            )
        return file

    def _save(
        self, transaction: "Transaction", target: Target, text: str, before: FactFile, after: FactFile
    ) -> Change:
        """Plan to write ``after``; a file beyond its limit may shrink, and nothing may grow beyond it."""
        size, old_size = len(after.encode()), len(before.encode())
        limit = self._limits.of(target)
        if size > limit and size >= old_size:
            facts = self._facts(target, before)
            verb = "adding" if len(after.segments) > len(before.segments) else "replacing"
            raise MemoryRefusedError(
                f"memory: {verb} entry ({len(text.encode())} chars) would exceed cap ({limit} chars); "
                f"current: {old_size}, max: {limit}.\nEntries (oldest first):\n{facts.listing()}\n"
                "Free space by removing or replacing older entries (memory remove/replace), then retry"
            )
        if after != before:
            transaction.put(f"{target}.md", after.encode())
        return self._change(target, text, after, changed=after != before)

    def _change(self, target: Target, text: str, file: FactFile, *, changed: bool) -> Change:
        facts = self._facts(target, file)
        index = file.texts.index(text) + 1 if text in file.texts else 0
        return Change(Fact(target, index, text, _rejection(text)), facts, changed)

    def _facts(self, target: Target, file: FactFile) -> Facts:
        entries = tuple(
            Fact(target, index, text, _rejection(text)) for index, text in enumerate(file.texts, start=1)
        )
        return Facts(target, entries, len(file.encode()), self._limits.of(target))


def _note(
    transaction: "Transaction",
    action: str,
    target: Target,
    before: str,
    after: str,
    origin: "Origin | None",
    undoes: str,
) -> None:
    from odek.memory.journal import Origin, make_record

    transaction.records.append(
        make_record(action, target, origin or Origin(), before=before, after=after, undoes=undoes)
    )


def check_field(name: str, value: str) -> None:
    """Check the size of one field of a change.

    Raises:
        MemoryRefusedError: it is longer than FIELD_LIMIT_BYTES or no text that UTF-8 can hold.
    """
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise MemoryRefusedError(f"memory: {name} holds a lone surrogate, which is no text") from None
    if size > FIELD_LIMIT_BYTES:
        raise MemoryRefusedError(
            f"memory: {name} has {size:,} bytes; at most {FIELD_LIMIT_BYTES:,} are allowed"
        )


@lru_cache(maxsize=4096)  # the same entries are looked at in every turn; both files hold far fewer
def _rejection(text: str) -> str:
    """Return why ``text`` must not be remembered, or ""."""
    from odek.trust.scan import scan

    rejection = scan(text)
    return "" if rejection is None else str(rejection)

"""The approver who is a person at a terminal."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

import trio

from odek.cli.approval_text import request_text
from odek.cli.style import Attr, Style
from odek.cli.terminal import Terminal, TerminalGoneError, open_terminal
from odek.cli.verdict_text import wrapped
from odek.text import visible
from odek.trust.approval import Answer, ApprovalRequest
from odek.trust.risk import Risk

__all__ = ["TerminalApprover"]

_PAUSE_SECONDS: Final = 1.5  # long enough to read again; no measurement behind it
_WORD: Final = "approve"
_ROOMY_COLUMNS: Final = 70  # from here on the longest line of keys fits
_HELP: Final = """\
y  allow what is shown, this once
n  refuse; the model is told, and goes on without it
t  allow, and ask no more for single commands of this class in this session
Ctrl-C cancels the whole turn."""


class Pausable(Protocol):
    """Who else writes to the terminal."""

    def paused(self) -> AbstractAsyncContextManager[None]:
        """Write nothing within the block."""
        ...


class TerminalApprover:
    """Asks over the process's terminal, never over stdin; one question at a time.

    Whatever is not a clear yes is a no: another key is ignored, a closed terminal, Ctrl-D
    and the lack of a terminal deny. Keys pressed before a question appeared do not
    answer it.
    """

    def __init__(
        self,
        display: Pausable,
        style: Style,
        *,
        needs_friction: Callable[[Risk], bool],
        context: Callable[[], str] = str,
        path: str = "/dev/tty",
    ) -> None:
        """Prepare to ask.

        Args:
            display: is silent while a question stands.
            style: what the terminal can show.
            needs_friction: whether approvals of a class have come so fast that the next
                takes a typed word.
            context: what led to the call, for a person who asks; such as the model's last words.
            path: the terminal's device.
        """
        self._display = display
        self._style = style
        self._needs_friction = needs_friction
        self._context = context
        self._path = path
        self._turn = trio.Lock()

    async def ask(self, requests: Sequence[ApprovalRequest]) -> Sequence[Answer]:
        """Return the person's answer to each of ``requests``, in their order."""
        async with self._turn, self._display.paused():
            try:
                async with open_terminal(self._path) as terminal:
                    if len(requests) == 1:
                        return [await self._ask_one(terminal, requests[0], "approval needed: ")]
                    return await self._ask_batch(terminal, requests)
            except TerminalGoneError:
                return ["deny"] * len(requests)

    async def _ask_one(self, terminal: Terminal, request: ApprovalRequest, title: str) -> Answer:
        await terminal.write("\n" + request_text(request, self._style, terminal.columns, title=title))
        risk = request.verdict.risk
        if self._needs_friction(risk):
            return "approve" if await self._typed_word(terminal) else "deny"
        keys = {"y": "once", "n": "no"}
        if request.trustable:
            meaning = f"trust {risk.label} this session"
            keys["t"] = meaning if terminal.columns >= _ROOMY_COLUMNS else "trust this class"
        match await self._choose(terminal, keys):
            case "y":
                return "approve"
            case "t":
                return "trust_class"
            case _:
                return "deny"

    async def _ask_batch(self, terminal: Terminal, requests: Sequence[ApprovalRequest]) -> list[Answer]:
        """Show all calls and ask once; the person may still go through them one by one."""
        await terminal.write(self._style.paint(f"\n{len(requests)} calls need approval\n", Attr.BOLD))
        for number, request in enumerate(requests, 1):
            text = request_text(request, self._style, terminal.columns, title=f"{number}. ")
            await terminal.write("\n" + text)
        match await self._choose(terminal, {"y": "all", "n": "none", "o": "one by one"}):
            case "o":
                count = len(requests)
                return [
                    await self._ask_one(terminal, request, f"{number} of {count}: ")
                    for number, request in enumerate(requests, 1)
                ]
            case "y":
                hasty = any(self._needs_friction(request.verdict.risk) for request in requests)
                approved = not hasty or await self._typed_word(terminal)
            case _:
                approved = False
        return ["approve" if approved else "deny"] * len(requests)

    async def _choose(self, terminal: Terminal, keys: dict[str, str]) -> str:
        """Return the key that was pressed, one of ``keys``."""
        line = "  ".join(f"[{key}] {meaning}" for key, meaning in {**keys, "?": "context"}.items())
        terminal.discard_input()
        await terminal.write(f"{line} ")
        while True:
            key = (await terminal.read_key()).lower()
            if key in keys:
                await terminal.write(f"{key}\n")
                return key
            if key == "?":
                await terminal.write(f"\n{self._explanation(terminal.columns)}{line} ")

    async def _typed_word(self, terminal: Terminal) -> bool:
        """Slow the person down: a pause to read, then a word to type."""
        text = "you approved this class several times within a minute; please read it again"
        await terminal.write("".join(line + "\n" for line in wrapped(text, terminal.columns)))
        await trio.sleep(_PAUSE_SECONDS)
        terminal.discard_input()
        await terminal.write(f'type "{_WORD}" to allow it, anything else denies: ')
        return (await terminal.read_line()).strip() == _WORD

    def _explanation(self, columns: int) -> str:
        lines = [line for line in visible(self._context()).strip().split("\n") if line]
        shown = [
            piece for line in [*lines, *_HELP.split("\n")] for piece in wrapped(line, columns, indent="  ")
        ]
        return "".join(self._style.paint(line, Attr.DIM) + "\n" for line in shown)

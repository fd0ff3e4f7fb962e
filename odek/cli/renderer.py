"""What shows events, and which one it is that shows them here."""

from collections.abc import Mapping
from typing import Final, Protocol, TextIO

from odek.cli.screen import Screen
from odek.cli.style import PLAIN, detect_style
from odek.events import Event

__all__ = ["STEADY_TICK_SECONDS", "TICK_SECONDS", "Renderer", "make_renderer"]

TICK_SECONDS: Final = 0.2
"""From an event to the next ``tick``: soon enough to look alive, too late to cost while events pour in."""

STEADY_TICK_SECONDS: Final = 1.0
"""Between two ticks without an event: nothing then moves but seconds that are counted."""


class Renderer(Protocol):
    """Shows events to whoever started the program. Nothing here awaits.

    Every method may raise OutputClosedError or OutputFailedError; after that the
    renderer is silent, so that ``close`` always succeeds.
    """

    @property
    def is_moving(self) -> bool:
        """Whether a tick may show something else than what is there, as long as no event comes."""
        ...

    def handle(self, event: Event) -> None:
        """Show ``event``."""
        ...

    def tick(self) -> None:
        """Bring what moves up to date; to be called now and then while ``is_moving``."""
        ...

    def suspend(self) -> None:
        """Leave the terminal to somebody else; what happens meanwhile is shown later."""
        ...

    def resume(self) -> None:
        """Take the terminal back."""
        ...

    def close(self) -> None:
        """Write what is due and leave the terminal clean."""
        ...


def make_renderer(
    stdout: TextIO,
    stderr: TextIO,
    environ: Mapping[str, str],
    *,
    json: bool = False,
    no_color: bool = False,
    verbose: bool = False,
) -> Renderer:
    """Return the renderer for what the streams are connected to."""
    err = Screen(stderr, detect_style(stderr, environ, no_color=no_color), name="stderr", required=False)
    if json:
        from odek.cli.jsonl import JsonRenderer

        return JsonRenderer(Screen(stdout, PLAIN, name="stdout", required=True))
    if not stdout.isatty():
        from odek.cli.plain import PlainRenderer

        return PlainRenderer(Screen(stdout, PLAIN, name="stdout", required=True), err, verbose=verbose)
    from odek.cli.render import TerminalRenderer

    out = Screen(stdout, detect_style(stdout, environ, no_color=no_color), name="stdout", required=True)
    return TerminalRenderer(out, err if not stderr.isatty() else out, verbose=verbose)

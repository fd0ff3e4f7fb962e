"""``odek memory extended triage``: everything that waits, one key each."""

from typing import TYPE_CHECKING

from odek.cli.memory_extended import atom_lines, pending_lines
from odek.errors import ConfigError

if TYPE_CHECKING:
    from odek.cli.terminal import Terminal
    from odek.extended_wiring import ExtendedLayer
    from odek.memory.extended.atom import Atom
    from odek.memory.extended.user_model import Pending

__all__ = ["triage"]


async def triage(layer: "ExtendedLayer") -> int:
    """Ask a person about each waiting atom and inference; return the exit status.

    Raises:
        ConfigError: something waits, and there is no terminal to ask at.
    """
    import trio

    from odek.cli.terminal import TerminalGoneError, open_terminal

    atoms = await layer.memory.quarantined()
    pending = (await trio.to_thread.run_sync(layer.user.read)).pending_review
    if not atoms and not pending:
        print("nothing waits")
        return 0
    is_open = False
    try:
        async with open_terminal() as terminal:
            is_open = True
            await terminal.write(f"{len(atoms)} atoms and {len(pending)} inferences wait.\n")
            waiting: list[Atom | Pending] = [*atoms, *pending]
            for number, item in enumerate(waiting, start=1):
                await terminal.write(f"\n{number} of {len(waiting)}\n")
                if not await _ask(terminal, layer, item):
                    break
    except TerminalGoneError:
        if is_open:  # closed, or Ctrl-D: the rest waits on
            return 0
        raise ConfigError(
            "triage needs a terminal; `odek memory extended quarantine` and `odek memory extended pending` "
            "list what waits, and other commands decide on each by its id: `odek memory extended --help`"
        ) from None
    return 0


async def _ask(terminal: "Terminal", layer: "ExtendedLayer", item: "Atom | Pending") -> bool:
    """Show one thing and carry out what the person says; False when that is enough for today."""
    import trio

    from odek.memory.extended.atom import Atom

    is_atom = isinstance(item, Atom)
    lines = atom_lines(item) if isinstance(item, Atom) else pending_lines(item)
    yes, no = ("p promote", "f forget") if is_atom else ("c confirm", "r reject")
    terminal.discard_input()  # a key is for what is on the screen, and no key pressed then is lost
    await terminal.write("\n".join([*lines, f"{yes} · {no} · s skip · q quit "]))
    keys = {yes[0], no[0], "s", "q"}
    while (key := (await terminal.read_key()).lower()) not in keys:
        if key in {"\x03", ""}:
            key = "q"
            break
    done = "skipped"
    if key == "q":
        await terminal.write("\n")
        return False
    if key == yes[0]:
        if isinstance(item, Atom):
            await layer.memory.promote(item.id)
        else:
            await trio.to_thread.run_sync(layer.user.confirm, item.id)
        done = "promoted" if is_atom else "confirmed"
    elif key == no[0]:
        if isinstance(item, Atom):
            await layer.memory.forget(item.id, purge=False)
        else:
            await trio.to_thread.run_sync(layer.user.reject, item.id)
        done = "forgotten" if is_atom else "rejected"
    await terminal.write(f"{done}\n")
    return True

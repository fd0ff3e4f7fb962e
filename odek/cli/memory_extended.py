"""``odek memory extended``: the atoms and what is inferred, for a person to look through and decide on."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from odek.cli.memory_stores import require_person, run_with_setup, shown_time

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from odek.extended_wiring import ExtendedLayer
    from odek.memory.extended.atom import Atom
    from odek.memory.extended.user_model import Pending
    from odek.setup import Setup

__all__ = ["add_arguments", "atom_lines", "pending_lines", "run"]

_ACTIONS = {
    "stats": "how much there is, which steps are active, and what failed",
    "list": "the live atoms, oldest first",
    "show": "an atom, and those that it is linked with",
    "search": "find atoms",
    "quarantine": "atoms that wait for a person, and why",
    "promote": "let a waiting atom be recalled",
    "forget": "remove an atom and every mention of it",
    "pin": "keep an atom from being evicted",
    "triage": "go through everything that waits, a key each",
    "pending": "inferences that wait for a person",
    "confirm": "take an inference for true",
    "reject": "drop an inference",
    "consolidate": "let the model merge atoms that say nearly the same",
    "prune": "remove waiting atoms that have outlived their time",
    "compact": "make the index anew and wait for it",
    "nudges": "show what reminders there would be, without counting them",
}

_OF_ATOM = {"show", "promote", "forget", "pin"}
_OF_INFERENCE = {"confirm", "reject"}
_FOR_A_PERSON = {"promote", "pin", "triage", *_OF_INFERENCE}


def add_arguments(action: str, parser: argparse.ArgumentParser) -> None:  # noqa: ARG001 - there is one
    """Declare the actions."""
    actions = parser.add_subparsers(
        title="actions", dest="extended_action", metavar="ACTION", required=True, prog=parser.prog
    )
    for name, summary in _ACTIONS.items():
        child = actions.add_parser(name, help=summary, description=f"odek memory extended {name}: {summary}.")
        if name in _OF_ATOM | _OF_INFERENCE:
            what = "atom" if name in _OF_ATOM else "inference"
            child.add_argument("id", metavar="ID", help=f"id of the {what}, or its beginning")
        if name == "pin":
            child.add_argument("--off", action="store_true", help="let it be evicted again")
        if name == "search":
            child.add_argument("query", nargs="+", metavar="QUERY", help="what to look for")
        if name != "triage":
            child.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Carry out the action."""
    from odek.cli.memory_stores import memory_settings
    from odek.errors import ConfigError

    if not memory_settings().extended.enabled:
        raise ConfigError(
            "Extended Memory is off; memory.extended.enabled = true in ~/.odek/config.json, or "
            "ODEK_MEMORY_EXTENDED_ENABLED=true, switches it on"
        )
    name: str = arguments.extended_action
    if name in _FOR_A_PERSON:
        require_person()
    if name == "triage":
        from odek.cli.memory_triage import triage

        return _with_layer(triage, needs_model=False)
    needs_model = name in {"consolidate", "stats"}
    return _with_layer(lambda layer: _CARRY_OUT[name](layer, arguments), needs_model=needs_model)


def _with_layer(work: "Callable[[ExtendedLayer], Awaitable[int]]", *, needs_model: bool) -> int:
    """Run ``work`` on the layer as an agent here would have it."""
    from odek.app import open_extended_alone

    async def main(setup: "Setup") -> int:
        async with open_extended_alone(setup, needs_model=needs_model) as layer:
            return await work(layer)

    return run_with_setup(main)


async def _stats(layer: "ExtendedLayer", arguments: argparse.Namespace) -> int:
    import trio

    from odek.cli.memory_extended_stats import stats_lines, steps

    stats = await layer.memory.stats()
    active = steps(layer)
    counted = await trio.to_thread.run_sync(layer.tally.read)
    spent = await trio.to_thread.run_sync(layer.model.budget.spent) if layer.model is not None else None
    if arguments.json:
        import msgspec

        shown: dict[str, Any] = msgspec.to_builtins(stats)
        shown |= {
            "steps": active,
            "spent_today": msgspec.to_builtins(spent),
            "counted": msgspec.to_builtins(counted),
        }
        print(json.dumps(shown, indent=2, ensure_ascii=False))
    else:
        print("\n".join(stats_lines(stats, active, spent, layer.settings, counted)))
    return 0


async def _list(layer: "ExtendedLayer", arguments: argparse.Namespace) -> int:
    return _print_atoms(await layer.memory.live(), arguments, "no atoms yet")


async def _quarantine(layer: "ExtendedLayer", arguments: argparse.Namespace) -> int:
    return _print_atoms(await layer.memory.quarantined(), arguments, "nothing waits in quarantine")


async def _show(layer: "ExtendedLayer", arguments: argparse.Namespace) -> int:
    from odek.memory.extended.links import linked_with

    live = await layer.memory.live()
    atom = _named([*live, *await layer.memory.quarantined()], arguments.id)
    others = linked_with(atom, live)
    if arguments.json:
        import msgspec

        shown = msgspec.to_builtins(atom) | {"linked": msgspec.to_builtins(others)}
        print(json.dumps(shown, indent=2, ensure_ascii=False))
        return 0
    print("\n".join(atom_lines(atom)))
    if others:
        print("\nlinked with:")
        return _print_atoms(others, arguments, "")
    return 0


async def _search(layer: "ExtendedLayer", arguments: argparse.Namespace) -> int:
    from odek.cli.found import query_of

    found = await layer.memory.search(query_of(arguments.query))
    return _print_atoms([each.atom for each in found], arguments, "no atom is about it")


async def _promote(layer: "ExtendedLayer", arguments: argparse.Namespace) -> int:
    waiting = _named(await layer.memory.quarantined(), arguments.id)
    return _done("promoted", await layer.memory.promote(waiting.id), arguments)


async def _pin(layer: "ExtendedLayer", arguments: argparse.Namespace) -> int:
    live = _named(await layer.memory.live(), arguments.id)
    atom = await layer.memory.pin(live.id, pinned=not arguments.off)
    return _done("pinned" if atom.pin else "no longer pinned", atom, arguments)


async def _forget(layer: "ExtendedLayer", arguments: argparse.Namespace) -> int:
    from odek.text import readable

    known = [*await layer.memory.live(), *await layer.memory.quarantined()]
    gone = await layer.memory.forget(_named(known, arguments.id).id)
    left = [readable(path, keep_newlines=False) for path in gone.traces]
    if arguments.json:
        print(json.dumps({"done": "forgotten", "id": gone.atom.id, "left": left}, ensure_ascii=False))
    else:
        print(f"forgotten: {readable(gone.atom.text, keep_newlines=False)}")
        print("\n".join([f"{path} still names it" for path in left]) or "nothing of it is left in the memory")
    return 1 if left else 0


async def _pending(layer: "ExtendedLayer", arguments: argparse.Namespace) -> int:
    import trio

    waiting = (await trio.to_thread.run_sync(layer.user.read)).pending_review
    if arguments.json:
        import msgspec

        print(json.dumps(msgspec.to_builtins(waiting), indent=2, ensure_ascii=False))
        return 0
    for pending in waiting:
        print("\n".join(pending_lines(pending)))
    if not waiting:
        print("no inference waits")
    return 0


async def _decide(layer: "ExtendedLayer", arguments: argparse.Namespace) -> int:
    import trio

    from odek.errors import StoreError

    waiting = (await trio.to_thread.run_sync(layer.user.read)).pending_review
    found = [each for each in waiting if each.id.startswith(arguments.id)]
    if len(found) != 1:
        count = "no inference waits" if not found else f"{len(found)} inferences wait"
        raise StoreError(f"memory: {count} under {arguments.id[:40]!a}")
    is_confirmed = arguments.extended_action == "confirm"
    decide = layer.user.confirm if is_confirmed else layer.user.reject
    pending = await trio.to_thread.run_sync(decide, found[0].id)
    if arguments.json:
        import msgspec

        done = {"done": "confirmed" if is_confirmed else "rejected"}
        print(json.dumps(done | msgspec.to_builtins(pending), ensure_ascii=False))
    else:
        print("\n".join([f"{'confirmed' if is_confirmed else 'rejected'}:", *pending_lines(pending)]))
    return 0


async def _consolidate(layer: "ExtendedLayer", arguments: argparse.Namespace) -> int:
    from odek.errors import ConfigError
    from odek.text import readable

    if layer.model is None:
        raise ConfigError("there is no model to ask: set api_key or base_url, or memory.extended.llm")
    merged = await layer.memory.consolidate(layer.model.ask)
    if arguments.json:
        import msgspec

        print(json.dumps(msgspec.to_builtins(merged), indent=2, ensure_ascii=False))
        return 0
    for group in merged:
        print("\n".join(f"- {readable(atom.text, keep_newlines=False)}" for atom in group.originals))
        text = group.into.text if group.into is not None else f"left as they are: {group.reason}"
        print(f"  → {readable(text, keep_newlines=False)}")
    if not merged:
        print("no two atoms say nearly the same")
    return 0


async def _prune(layer: "ExtendedLayer", arguments: argparse.Namespace) -> int:
    gone = await layer.memory.prune()
    if arguments.json:
        print(json.dumps({"removed": gone}))
    else:
        print(f"removed from quarantine: {len(gone)}")
    return 0


async def _compact(layer: "ExtendedLayer", arguments: argparse.Namespace) -> int:
    done = await layer.memory.compact()
    if arguments.json:
        print(json.dumps({"done": done}))
    else:
        print("the index is made anew" if done else "another process is making the index anew")
    return 0


async def _nudges(layer: "ExtendedLayer", arguments: argparse.Namespace) -> int:
    import trio

    from odek.memory.extended.nudges import PREVIEWED, nudges_for
    from odek.text import readable

    user = await trio.to_thread.run_sync(layer.user.read)
    found = nudges_for(await layer.memory.live(), user.current_focus, layer.settings, layer.memory.now())[
        :PREVIEWED
    ]
    if arguments.json:
        import msgspec

        print(json.dumps(msgspec.to_builtins(found), indent=2, ensure_ascii=False))
        return 0
    for nudge in found:
        print(f"💡 {readable(nudge.text, keep_newlines=False)}")
    if not found:
        print("there is nothing to be reminded of")
    if found and not layer.settings.proactive_nudges_enabled:
        print("(a preview: memory.extended.proactive_nudges_enabled is off)")
    return 0


_CARRY_OUT: "dict[str, Callable[[ExtendedLayer, argparse.Namespace], Awaitable[int]]]" = {
    "stats": _stats,
    "list": _list,
    "show": _show,
    "search": _search,
    "quarantine": _quarantine,
    "promote": _promote,
    "forget": _forget,
    "pin": _pin,
    "pending": _pending,
    "confirm": _decide,
    "reject": _decide,
    "consolidate": _consolidate,
    "prune": _prune,
    "compact": _compact,
    "nudges": _nudges,
}


def atom_lines(atom: "Atom") -> list[str]:
    """Return what a person is shown of an atom."""
    from odek.text import readable

    mark = "  pinned" if atom.pin else ""
    head = f"{atom.id[:12]}  {shown_time(atom.created_at)}  {atom.type}, {atom.source_class}{mark}"
    where = "  ".join(filter(None, [atom.session and f"session {atom.session}", atom.project]))
    lines = [
        head,
        f"    {atom.text}",
        f"    {where}" if where else "",
        f"    {atom.reason}" if atom.reason else "",
    ]
    return [readable(line, keep_newlines=False) for line in lines if line]


def pending_lines(pending: "Pending") -> list[str]:
    """Return what a person is shown of an inference."""
    from odek.text import readable

    head = f"{pending.id}  {shown_time(pending.created_at)}  {pending.field}: {pending.value}"
    evidence = f"    because: {pending.evidence}" if pending.evidence else ""
    return [readable(line, keep_newlines=False) for line in (head, evidence) if line]


def _print_atoms(atoms: "list[Atom]", arguments: argparse.Namespace, none: str) -> int:
    if arguments.json:
        import msgspec

        print(json.dumps(msgspec.to_builtins(atoms), indent=2, ensure_ascii=False))
        return 0
    for atom in atoms:
        print("\n".join(atom_lines(atom)))
    if not atoms:
        print(none)
    return 0


def _named(atoms: "list[Atom]", wanted: str) -> "Atom":
    """Return the one atom whose id begins with ``wanted``."""
    from odek.errors import StoreError

    found = [atom for atom in atoms if wanted and atom.id.startswith(wanted)]
    if len(found) != 1:
        count = "no atom has" if not found else f"{len(found)} atoms have"
        raise StoreError(f"memory: {count} an id that begins with {wanted[:40]!a}")
    return found[0]


def _done(done: str, atom: "Atom", arguments: argparse.Namespace) -> int:
    if arguments.json:
        import msgspec

        print(json.dumps({"done": done} | msgspec.to_builtins(atom), ensure_ascii=False))
    else:
        print("\n".join([f"{done}:", *atom_lines(atom)]))
    return 0

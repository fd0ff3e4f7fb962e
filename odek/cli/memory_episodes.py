"""``odek memory list``, ``show``, ``promote`` and ``reject``: the episodes, for a person to review."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from odek.cli.memory_stores import by_person, open_episodes, say, shown_time
from odek.cli.width import wrapped

if TYPE_CHECKING:
    from odek.memory.episodes import Episode, EpisodeStore, Provenance

__all__ = ["add_arguments", "run"]

LISTED = 20
_NAMED = "id of the episode's session, or its beginning"


def add_arguments(action: str, parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of one of the actions."""
    if action == "list":
        parser.add_argument(
            "--all",
            action="store_true",
            help=f"every episode; without it the newest {LISTED} and those that wait for review",
        )
    else:
        parser.add_argument("id", metavar="ID", help=_NAMED)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Carry out the action."""
    store = open_episodes()
    if arguments.memory_action == "list":
        _list(store, arguments)
        return 0
    found = store.read(store.find(arguments.id).session_id)
    session_id = found.episode.session_id
    match arguments.memory_action:
        case "show":
            _show(store, session_id, as_json=arguments.json)
        case "promote":
            before = found.episode.provenance.is_recallable
            episode = store.promote(session_id, expected_text=found.text, origin=by_person())
            _print_done("already recalled" if before else "promoted", episode, arguments)
        case _:
            _print_done("removed", store.reject(session_id, origin=by_person()), arguments)
    return 0


def _list(store: "EpisodeStore", arguments: argparse.Namespace) -> None:
    from odek.text import readable

    for problem in store.index().problems:
        say(f"{problem}; see `odek memory check`")
    episodes = store.listing()
    shown = [
        episode
        for place, episode in enumerate(episodes)
        if arguments.all or place < LISTED or not episode.provenance.is_recallable
    ]
    if arguments.json:
        print(json.dumps([_as_json(episode) for episode in shown], indent=2, ensure_ascii=False))
        return
    for episode in shown:
        summary, note = _as_it_is(store, episode)
        head = f"{episode.session_id}  {shown_time(episode.created_at)}  turns: {episode.turns}"
        print(wrapped(f"{head}  {_state(episode.provenance)}{note}"))
        print(wrapped(f"    {readable(summary, keep_newlines=False)}", indent="    ", further=0))
    if len(shown) < len(episodes):
        print(f"{len(episodes) - len(shown)} older ones are not shown; --all shows them")
    if not episodes:
        print("no episodes yet")


def _as_it_is(store: "EpisodeStore", episode: "Episode") -> tuple[str, str]:
    """Return how the text of an episode begins now, and what was done to it by hand."""
    from odek.errors import StoreError
    from odek.memory.episode import preview

    try:
        found = store.read(episode.session_id)
    except StoreError:
        return episode.summary, "; ! its text cannot be read: `odek memory check`"
    return (preview(found.text), ", edited") if found.is_edited else (episode.summary, "")


def _show(store: "EpisodeStore", session_id: str, *, as_json: bool) -> None:
    from odek.text import readable

    found = store.read(session_id)
    if as_json:
        extra = {"text": found.text, "edited": found.is_edited, "rejection": found.rejection}
        print(json.dumps(_as_json(found.episode) | extra, indent=2, ensure_ascii=False))
        return
    episode = found.episode
    print(wrapped(f"{episode.session_id}  {shown_time(episode.created_at)}  turns: {episode.turns}"))
    print(wrapped(_state(episode.provenance)))
    if found.is_edited:
        print("the text was edited since it was stored")
    if found.rejection:
        print(wrapped(f"not shown to the model: {found.rejection}"))
    print()
    for line in readable(found.text).split("\n"):
        print(wrapped(line, further=0))


def _state(provenance: "Provenance") -> str:
    """Return the trust state in words."""
    if not provenance.untrusted:
        return "trusted"
    from odek.text import readable

    sources = readable(", ".join(provenance.sources), keep_newlines=False) or "unknown"
    if provenance.user_approved:
        return f"untrusted ({sources}), promoted by a person"
    if provenance.auto_approved:
        return f"untrusted ({sources}), approved by auto_approve_episodes"
    return f"untrusted ({sources}), not recalled before it is promoted"


def _as_json(episode: "Episode") -> dict[str, Any]:
    import msgspec

    provenance = {name: getattr(episode.provenance, name) for name in episode.provenance.__struct_fields__}
    fields: dict[str, Any] = msgspec.to_builtins(episode)
    return fields | {"provenance": provenance, "recallable": episode.provenance.is_recallable}


def _print_done(done: str, episode: "Episode", arguments: argparse.Namespace) -> None:
    from odek.text import readable

    if arguments.json:
        print(json.dumps({"done": done} | _as_json(episode), ensure_ascii=False))
    else:
        print(f"{done}: {episode.session_id}\n    {readable(episode.summary, keep_newlines=False)}")

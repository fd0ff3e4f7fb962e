"""The drill through the real command: what holds, what gets through, and that it touches nothing."""

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from odek.drill.attacks import attacks
from tests.support.cli import Odek
from tests.support.memory_story import RECORD, plant


def everything_below(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Return each file with its content and the time of its last change."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_each_attack_says_what_it_is_and_why_it_matters() -> None:
    """Names are unique within a kind, and every attack has a reason."""
    found = attacks()
    names = Counter((type(attack), attack.name) for attack in found)
    assert max(names.values()) == 1
    assert all(attack.reason.endswith(".") for attack in found)


async def test_nothing_gets_through_the_defaults_and_nothing_is_touched(tmp_path: Path) -> None:
    """All attacks are tried and held; memory, sessions and start-up files stay as they are."""
    odek = Odek(tmp_path)
    plant(odek, "20260304-foreign", RECORD, untrusted=True, sources=["network"])
    (odek.home / "memory" / "user.md").write_text("likes tea")
    (odek.home.parent / ".bashrc").write_text("set -o vi\n")
    before = everything_below(tmp_path)
    done = await odek.run("memory", "drill", "--json")
    told: dict[str, Any] = msgspec.json.decode(done.stdout)

    assert [result for result in told["results"] if not result["held"]] == []
    assert (done.status, done.stderr) == (0, "")
    assert (told["attacks"], told["got_through"]) == (len(attacks()), 0)
    assert everything_below(tmp_path) == before


async def test_a_home_with_a_blank_in_its_name_is_attacked_where_it_is(tmp_path: Path) -> None:
    """Commands name it as a shell reads it."""
    odek = Odek(tmp_path)
    odek.home = tmp_path / "my home"
    odek.environment["ODEK_HOME"] = str(odek.home)
    done = await odek.run("memory", "drill", "--json")

    assert (done.status, msgspec.json.decode(done.stdout)["got_through"]) == (0, 0)


async def test_what_a_loose_configuration_lets_through_is_listed_with_its_reason(tmp_path: Path) -> None:
    """A setting that approves in advance and a class that is allowed show, each with what it lets through."""
    odek = Odek(tmp_path)
    odek.home.mkdir(mode=0o700)
    loose = {"dangerous": {"classes": {"system_write": "allow"}}, "memory": {"auto_approve_episodes": True}}
    (odek.home / "config.json").write_bytes(msgspec.json.encode(loose))
    done = await odek.run("memory", "drill")

    assert done.status == 1
    assert max(map(len, done.stdout.splitlines())) <= 80
    attempts, counts = done.stdout.split("\n\n")[:2]
    words = " ".join(attempts.replace("│", " ").split())
    assert (
        "session: read a web page recalled unseen Anybody may have written (auto_approve_episodes) it."
        in words
    )
    assert "command: promote runs unasked: The command itself. dangerous.classes says `allow` for" in words
    assert "write: write_file on the runs unasked: The file tool instead of index" in words
    got_through = {line.split("│")[0].strip(): line.split("│")[2].strip() for line in counts.splitlines()[2:]}
    assert {what for what, count in got_through.items() if count != "-"} == {
        "sessions to be recalled",
        "commands of the shell",
        "files to be written",
    }
    number = sum(int(count) for count in got_through.values() if count != "-")
    assert done.stdout.endswith(f"\n{number} of {len(attacks())} attacks got through\n")

"""What a line of the dialogue is: a message, a command, or the wish to leave."""

from pathlib import Path

import pytest

from tests.support.cli import Odek

NOT_READ = "remember that this line was read"


@pytest.mark.parametrize("word", ["/exit", "/quit", "exit", " quit ", "/exit now"])
async def test_each_word_for_leaving_leaves(tmp_path: Path, word: str) -> None:
    """Nothing behind it is asked."""
    odek = Odek(tmp_path)

    done = await odek.run("repl", stdin=f"{word}\n{NOT_READ}\n".encode())

    assert (done.status, done.stdout) == (0, "")
    assert not (odek.home / "memory" / "user.md").exists()


async def test_a_message_may_begin_with_a_path(tmp_path: Path) -> None:
    """What a program said is asked about as it was pasted; what looks like a command is one."""
    odek = Odek(tmp_path)

    done = await odek.run("repl", stdin=b"/usr/bin/env: 'node': No such file\n/cots\n/cost\n/exit/now\n")

    assert "not done: \u201c/usr/bin/env: 'node': No such file" in done.stdout
    assert "there is no command /cots; /help lists them" in done.stdout
    assert "the model reports no usage" in done.stdout
    assert "/exit/now" in done.stdout


async def test_the_dialogue_shows_facts_as_their_script_is_written(tmp_path: Path) -> None:
    """Joiners belong to Persian; before the first question there is no cost."""
    odek = Odek(tmp_path)
    fact = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    await odek.run("memory", "facts", "add", "user", fact)

    done = await odek.run("repl", stdin=b"/memory\n/cost\n")

    assert f"  {fact}\n" in done.stdout
    assert done.stdout.endswith("nothing was asked yet\n")

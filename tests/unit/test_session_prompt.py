"""What a project tells agents, on its way into the system prompt."""

import os
from pathlib import Path

import pytest

from odek.config.settings import Config
from odek.session_prompt import session_prompt


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Return a workspace with instructions under another name, and a neighbour."""
    (tmp_path / "work" / ".github").mkdir(parents=True)
    (tmp_path / "work" / "CLAUDE.md").write_text("Use tabs.\n")
    (tmp_path / "work" / ".github" / "copilot-instructions.md").write_text("Use tabs.\n")
    (tmp_path / "work" / "notes.md").write_text("Use spies.\n")
    (tmp_path / "work" / ".envrc").write_text("export KEY=spies\n")
    (tmp_path / "CLAUDE.md").write_text("Use spies.\n")
    return tmp_path / "work"


@pytest.mark.parametrize("target", ["CLAUDE.md", "./CLAUDE.md", ".github/copilot-instructions.md"])
def test_a_link_to_another_name_of_the_instructions_is_followed(workspace: Path, target: str) -> None:
    """Projects keep one file for all agents; a linked workspace is the same workspace."""
    (workspace / "AGENTS.md").symlink_to(target)
    (workspace.parent / "link").symlink_to("work")

    for place in (workspace, workspace.parent / "link"):
        prompt, notice = session_prompt(Config(), place, "")
        assert "# Project instructions (AGENTS.md)\n\nUse tabs." in prompt
        assert notice == ""


@pytest.mark.parametrize("target", ["../CLAUDE.md", "notes.md", ".envrc", "/etc/hostname", "AGENTS.md"])
def test_any_other_link_is_left_out_and_named(workspace: Path, target: str) -> None:
    """It could show a private file, or be changed by a write that nobody is asked about."""
    (workspace / "AGENTS.md").symlink_to(target)

    prompt, notice = session_prompt(Config(), workspace, "")

    assert "Project instructions" not in prompt
    assert "spies" not in prompt
    assert notice.startswith("the project's instructions are left out: ")
    assert str(workspace / "AGENTS.md") in notice


def test_a_link_to_nothing_tells_nothing(workspace: Path) -> None:
    """As no file."""
    (workspace / "CLAUDE.md").unlink()
    (workspace / "AGENTS.md").symlink_to("CLAUDE.md")

    assert session_prompt(Config(), workspace, "")[1] == ""


def test_a_pipe_behind_a_link_is_not_waited_for(workspace: Path) -> None:
    """Its name alone makes it no file."""
    (workspace / "CLAUDE.md").unlink()
    os.mkfifo(workspace / "CLAUDE.md")
    (workspace / "AGENTS.md").symlink_to("CLAUDE.md")

    assert "is no regular file" in session_prompt(Config(), workspace, "")[1]

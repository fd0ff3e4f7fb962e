"""The settings of the sandbox: a project may make it stricter, and nothing else."""

from pathlib import Path

import pytest

from odek.config.settings import Config
from odek.errors import ConfigError
from odek.sandbox.choice import find_program, shown_by
from tests.support.config_texts import made_of, problems_of


@pytest.mark.parametrize(
    ("home", "project", "network"),
    [
        ("{}", '{"sandbox_network": "allowed"}', "none"),
        ('{"sandbox_network": "allowed"}', '{"sandbox_network": "none"}', "none"),
        ('{"sandbox_network": "allowed"}', "{}", "allowed"),
    ],
)
def test_a_project_may_take_the_network_away_and_not_give_it(home: str, project: str, network: str) -> None:
    """Whoever checks a repository out decides what that repository reaches."""
    resolved = made_of(home=home, project=project)

    assert resolved.config.sandbox_network == network
    assert any("may only make stricter: sandbox_network" in n for n in resolved.notices) == (home == "{}")


@pytest.mark.parametrize(
    "setting",
    [
        '"sandbox_readable": ["/"]',
        '"sandbox_image": "own"',
        '"sandbox_backend": "docker"',
        '"sandbox": false',
    ],
)
def test_a_project_neither_shows_more_nor_chooses_the_sandbox(setting: str) -> None:
    """What it says of that is ignored, and told."""
    resolved = made_of(home='{"sandbox": true}', project=f"{{{setting}}}")

    assert resolved.config == made_of(home='{"sandbox": true}').config
    assert len(resolved.notices) == 1


def test_a_project_may_have_the_workspace_only_read() -> None:
    """That is stricter, and cannot be taken back by it."""
    assert made_of(project='{"sandbox_readonly": true}').config.sandbox_readonly
    both = made_of(home='{"sandbox_readonly": true}', project='{"sandbox_readonly": false}')
    assert both.config.sandbox_readonly


def test_a_wrong_network_says_what_there_is() -> None:
    """Not only allowed or not, but how it is written."""
    assert problems_of(home='{"sandbox_network": "bridge"}') == [
        '~/.odek/config.json: sandbox_network: expected one of none, allowed, got "bridge"'
    ]


def test_paths_to_show_are_written_from_the_root_or_the_home() -> None:
    """Relative to which directory else would be left to chance."""
    places = {"workspace": Path("/w"), "home": Path("/h"), "odek_home": Path("/h/.odek")}

    assert shown_by(Config(sandbox_readable=("~/.cargo", "/x")), **places).readable == (
        Path("~/.cargo").expanduser(),
        Path("/x"),
    )
    with pytest.raises(ConfigError, match="sandbox_readable: tools is not absolute; write it from / or ~"):
        shown_by(Config(sandbox_readable=("tools",)), **places)


def test_a_program_is_never_taken_from_the_workspace(tmp_path: Path) -> None:
    """Neither by its place nor by where a link leads; the next on the PATH is."""
    work, system, links = tmp_path / "work", tmp_path / "system", tmp_path / "links"
    for folder in (work, system, links):
        folder.mkdir()
    for folder in (work, system):
        (folder / "bwrap").write_text("#!/bin/sh\n")
        (folder / "bwrap").chmod(0o755)
    (links / "bwrap").symlink_to(work / "bwrap")

    assert find_program("bwrap", {"PATH": f"{work}:{links}:.::{system}"}, work) == f"{system}/bwrap"
    assert find_program("bwrap", {"PATH": f"{work}:{links}:."}, work) is None

"""Effects become a class, and a class becomes an action."""

from pathlib import Path
from typing import get_args

import msgspec
import pytest

from odek.config.settings import DangerousSettings
from odek.delegation import RiskName
from odek.trust.effects import Effects
from odek.trust.paths import Where
from odek.trust.policy import DEFAULT_ACTIONS, assess, decide
from odek.trust.risk import Part, Risk, Verdict

PROJECT = Path("/home/u/work/project")
HERE = Where(PROJECT, PROJECT, Path("/home/u"), Path("/home/u/.odek"))
DEFAULTS = DangerousSettings()


def of(*risks: Risk) -> Verdict:
    """Return a verdict of parts with these classes."""
    return Verdict.of(tuple(Part(risk.label, risk, "because") for risk in risks))


@pytest.mark.parametrize(
    ("effects", "risk"),
    [
        (Effects(), Risk.SAFE),
        (Effects(reads=(PROJECT / "a.py",)), Risk.SAFE),
        (Effects(reads=(Path("/usr/share/doc/x"),)), Risk.SAFE),
        (Effects(reads=(Path("/home/u/.ssh/id_rsa"),)), Risk.SYSTEM_WRITE),
        (Effects(reads=(PROJECT / "../../.netrc",)), Risk.SYSTEM_WRITE),
        (Effects(writes=(PROJECT / "a.py",)), Risk.LOCAL_WRITE),
        (Effects(writes=(PROJECT / "what?[x]*.py",)), Risk.LOCAL_WRITE),
        (Effects(writes=(PROJECT / ".git/hooks/pre-commit",)), Risk.SYSTEM_WRITE),
        (Effects(writes=(PROJECT / ".git/worktrees/x/config.worktree",)), Risk.SYSTEM_WRITE),
        (Effects(writes=(PROJECT / "vendor/.git",)), Risk.SYSTEM_WRITE),
        (Effects(writes=(Path("/etc/hosts"),)), Risk.SYSTEM_WRITE),
        (Effects(writes=(Path("/home/u/.odek/config.json"),)), Risk.SYSTEM_WRITE),
        (Effects(urls=("https://x.example",)), Risk.NETWORK_EGRESS),
        (Effects(writes_memory=True), Risk.LOCAL_WRITE),
        (Effects(spawns_agents=True), Risk.SAFE),
        (Effects(command="rm -rf /", reads=(PROJECT,)), Risk.DESTRUCTIVE),
    ],
)
def test_effects_have_the_class_of_their_worst(effects: Effects, risk: Risk) -> None:
    """A call is as dangerous as the worst thing that it declares."""
    assert assess(effects, HERE).risk is risk


def test_a_worktree_below_the_odek_home_is_a_workspace_like_any_other() -> None:
    """What lies in it is read and written; the rest of the home, other worktrees included, stays guarded."""
    home = Path("/home/u/.odek")
    top = home / "worktrees/odek-1"
    where = Where(top / "sub", top / "sub", Path("/home/u"), home)
    classes = {
        path: (assess(Effects(reads=(path,)), where).risk, assess(Effects(writes=(path,)), where).risk)
        for path in (
            top / "sub/a.py",
            top / "a.py",
            top / "sub/secrets.env",
            top / ".git",
            home / "worktrees/odek-1.json",
            home / "worktrees/odek-12/a.py",
            home / "config.json",
        )
    }

    guarded = (Risk.SYSTEM_WRITE, Risk.SYSTEM_WRITE)
    assert list(classes.values()) == [
        (Risk.SAFE, Risk.LOCAL_WRITE),
        (Risk.SAFE, Risk.SYSTEM_WRITE),
        (Risk.SYSTEM_WRITE, Risk.LOCAL_WRITE),
        (Risk.SAFE, Risk.SYSTEM_WRITE),
        *[guarded] * 3,
    ]


def test_a_link_planted_in_the_workspace_is_judged_as_its_target(tmp_path: Path) -> None:
    """Writing through a link is writing where it leads."""
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "x").symlink_to("/etc/hosts")
    where = Where(tmp_path / "w", tmp_path / "w", tmp_path, tmp_path / ".odek")

    assert assess(Effects(writes=(tmp_path / "w" / "x",)), where).risk is Risk.SYSTEM_WRITE


def test_defaults_cover_every_class() -> None:
    """No class is left without an action, and only what stays in the workspace runs unasked."""
    assert set(DEFAULT_ACTIONS) == set(Risk)
    assert {risk for risk, action in DEFAULT_ACTIONS.items() if action == "allow"} == {
        Risk.SAFE,
        Risk.LOCAL_WRITE,
    }
    for risk in Risk:
        assert decide(of(risk), DEFAULTS) == DEFAULT_ACTIONS[risk]


def test_settings_and_tasks_name_every_class_and_no_other() -> None:
    """What a configuration and a delegated task may write is what there is."""
    labels = {risk.label for risk in Risk}

    assert msgspec.convert({"classes": dict.fromkeys(labels, "deny")}, DangerousSettings).classes
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"classes": {"harmless": "deny"}}, DangerousSettings)
    assert set(get_args(RiskName)) == labels


def test_the_strictest_part_decides() -> None:
    """An allowed class does not carry a denied lower one along."""
    settings = DangerousSettings(classes={"code_execution": "allow", "network_egress": "deny"})

    assert decide(of(Risk.CODE_EXECUTION), settings) == "allow"
    assert decide(of(Risk.CODE_EXECUTION, Risk.NETWORK_EGRESS), settings) == "deny"
    assert decide(of(Risk.CODE_EXECUTION, Risk.INSTALL), settings) == "prompt"


def test_blocked_cannot_be_overridden() -> None:
    """Neither a class setting nor the allowlist lets a blocked command run."""
    settings = DangerousSettings(classes={"blocked": "allow"}, allowlist=("x",))

    assert decide(of(Risk.BLOCKED), settings, "x") == "deny"


def test_lists_name_exact_commands() -> None:
    """Listed commands match whole, white space around them aside; the denylist wins."""
    settings = DangerousSettings(allowlist=("make test", "rm x"), denylist=("rm x", "ls"))

    assert decide(of(Risk.CODE_EXECUTION), settings, " make test\n") == "allow"
    assert decide(of(Risk.CODE_EXECUTION), settings, "make test; id") == "prompt"
    assert decide(of(Risk.CODE_EXECUTION), settings, "make  test") == "prompt"
    assert decide(of(Risk.LOCAL_WRITE), settings, "rm x") == "deny"
    assert decide(of(Risk.SAFE), settings, "ls") == "deny"

"""Who is asked, what the session then trusts, and when asking costs effort."""

import pytest

from odek.config.settings import DangerousSettings
from odek.trust.approval import ApprovalRequest, ApprovalState, NobodyApprover, resolve
from odek.trust.risk import Part, Risk, Verdict

DEFAULTS = DangerousSettings()


def request(*risks: Risk) -> ApprovalRequest:
    """Return a request whose parts have these classes."""
    parts = tuple(Part(risk.label, risk, "because") for risk in risks)
    return ApprovalRequest("c1", "shell", "x", "x", Verdict.of(parts), command="x")


def test_each_request_is_ruled_by_policy() -> None:
    """Rulings come in the order of the requests and name their reason."""
    rulings = resolve(
        [request(Risk.SAFE), request(Risk.INSTALL), request(Risk.UNKNOWN)], DEFAULTS, ApprovalState()
    )

    assert [(ruling.action, ruling.by) for ruling in rulings] == [
        ("allow", "policy"),
        ("ask", "policy"),
        ("deny", "policy"),
    ]
    assert rulings[1].reason == "install: because"


def test_trust_covers_its_class_and_nothing_else() -> None:
    """A trusted class runs unasked; a compound only if every part is trusted or allowed."""
    state = ApprovalState()
    state.trust(Risk.CODE_EXECUTION)

    def action(*risks: Risk) -> tuple[str, str]:
        (ruling,) = resolve([request(*risks)], DEFAULTS, state)
        return ruling.action, ruling.by

    assert action(Risk.CODE_EXECUTION) == ("allow", "session_trust")
    assert action(Risk.CODE_EXECUTION, Risk.LOCAL_WRITE) == ("allow", "session_trust")
    assert action(Risk.CODE_EXECUTION, Risk.INSTALL) == ("ask", "policy")
    assert action(Risk.INSTALL) == ("ask", "policy")
    assert action(Risk.CODE_EXECUTION, Risk.DESTRUCTIVE) == ("deny", "policy")


def test_trust_is_offered_for_one_class_at_a_time() -> None:
    """A compound of two classes in question, or a class that may never be trusted, offers no trust."""
    settings = DangerousSettings(classes={"destructive": "prompt", "unknown": "prompt"})

    def trustable(*risks: Risk) -> bool:
        (ruling,) = resolve([request(*risks)], settings, ApprovalState())
        assert ruling.action == "ask"
        return ruling.request.trustable

    assert trustable(Risk.INSTALL)
    assert trustable(Risk.INSTALL, Risk.SAFE)
    assert not trustable(Risk.INSTALL, Risk.NETWORK_EGRESS)
    assert not trustable(Risk.DESTRUCTIVE)
    assert not trustable(Risk.UNKNOWN)


@pytest.mark.parametrize("risk", [Risk.UNKNOWN, Risk.DESTRUCTIVE, Risk.BLOCKED])
def test_the_worst_classes_are_never_trusted(risk: Risk) -> None:
    """No session trusts what is unknown, destructive or blocked."""
    with pytest.raises(ValueError, match=risk.label):
        ApprovalState().trust(risk)


def test_a_denial_in_the_settings_outranks_trust() -> None:
    """What the policy denies is not asked about, trusted or not."""
    state = ApprovalState()
    state.trust(Risk.INSTALL)

    (ruling,) = resolve([request(Risk.INSTALL)], DangerousSettings(classes={"install": "deny"}), state)

    assert ruling.action == "deny"


def test_the_fourth_approval_of_a_class_within_a_minute_costs_effort() -> None:
    """Three approvals of one class within 60 seconds bring friction; later ones or others do not."""
    state = ApprovalState()
    for now in (0.0, 10.0, 20.0):
        assert not state.needs_friction(Risk.INSTALL, now)
        state.record(Risk.INSTALL, now)

    assert state.needs_friction(Risk.INSTALL, 59.9)
    assert not state.needs_friction(Risk.INSTALL, 60.0)
    assert not state.needs_friction(Risk.NETWORK_EGRESS, 30.0)


async def test_without_a_terminal_the_settings_answer() -> None:
    """``non_interactive`` answers every request when nobody can be asked."""
    requests = [request(Risk.INSTALL), request(Risk.SYSTEM_WRITE)]

    assert await NobodyApprover("deny").ask(requests) == ["deny", "deny"]
    assert await NobodyApprover("allow").ask(requests) == ["approve", "approve"]

"""How an agent comes by the place where its commands run."""

from contextlib import AsyncExitStack
from functools import partial

import msgspec

from odek.events import Notice
from odek.home import person_home
from odek.sandbox.launcher import Here, Launcher
from odek.sessions.session import Session
from odek.setup import Setup

__all__ = ["goes_on_in_sandbox", "in_sandbox", "open_launcher"]


async def open_launcher(stack: AsyncExitStack, setup: Setup) -> Launcher:
    """Return what runs commands by the configuration; it lives as long as ``stack``.

    Raises:
        ConfigError: they are to run in a sandbox, and there is none.
    """
    config = setup.resolved.config
    if not config.sandbox:
        return Here()
    from odek.sandbox.choice import open_sandbox, shown_by

    shown = shown_by(config, workspace=setup.workspace, home=person_home(), odek_home=setup.home)
    warn = partial(_warn, setup)
    launcher = await stack.enter_async_context(open_sandbox(config, shown, setup.resolved.environment, warn))
    setup.emit(Notice(launcher.state))
    return launcher


def goes_on_in_sandbox(setup: Setup, session: Session) -> bool:
    """Whether a session that began in a sandbox has to go on in one, which nobody has asked for anew."""
    return session.sandbox and not setup.resolved.config.sandbox and "sandbox" not in setup.resolved.origins


def in_sandbox(setup: Setup) -> Setup:
    """Return ``setup`` with the sandbox switched on, for it and for its subagents."""
    config = msgspec.structs.replace(setup.resolved.config, sandbox=True)
    return msgspec.structs.replace(setup, resolved=msgspec.structs.replace(setup.resolved, config=config))


def _warn(setup: Setup, text: str) -> None:
    setup.emit(Notice(text, "warning"))

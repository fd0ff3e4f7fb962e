"""What a command says on its way out, without secrets: an error may quote whatever it met."""

import os
import sys
import traceback

__all__ = ["say", "say_where"]


def say(text: str) -> None:
    """Write a line about an error to stderr, with what to do where odek's files are closed to this user."""
    from odek.home import access_hint
    from odek.text import visible

    # A project's configuration, a file's name or a server's words may hold what a terminal obeys.
    print(f"odek: {visible(_masked(text + access_hint(text, os.environ)))}", file=sys.stderr)


def say_where(error: BaseException) -> None:
    """Write where an error happened to stderr, for whoever mends it."""
    sys.stderr.write(_masked("".join(traceback.format_exception(error))))


def _masked(text: str) -> str:
    from odek.trust.secrets import Masker

    return Masker(_known_values()).mask(text)


def _known_values() -> list[str]:
    """Return what this process may hold that is secret: by the names of variables, and in secrets.env."""
    from odek.config.files import read_secrets
    from odek.config.layers import secrets_of
    from odek.config.substitution import looks_like_credential
    from odek.errors import ConfigError
    from odek.home import home_directory

    try:
        brought = read_secrets(home_directory(os.environ), os.environ)
    except ConfigError:  # this may be the very error that is told
        brought = {}
    return [
        *secrets_of(brought),
        *(value for name, value in os.environ.items() if looks_like_credential(name)),
    ]

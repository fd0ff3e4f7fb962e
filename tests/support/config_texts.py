"""Configurations made of texts, for tests."""

from collections.abc import Mapping
from typing import Any

import pytest

from odek.config.layers import Resolved, Sources, SourceText, resolve
from odek.errors import ConfigError

HOME = "~/.odek/config.json"
PROJECT = "./odek.json"
SECRETS = "~/.odek/secrets.env"
KEY = "sk-abcdef-0123456789"


def made_of(
    home: str | None = None,
    project: str | None = None,
    secrets: str | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
    *,
    exposed: bool = False,
) -> Resolved:
    """Resolve the given texts."""
    return resolve(
        Sources(
            home=None if home is None else SourceText(HOME, home, exposed=exposed),
            project=None if project is None else SourceText(PROJECT, project),
            secrets=None if secrets is None else SourceText(SECRETS, secrets, exposed=exposed),
            environ=environ or {},
            flags=flags or {},
        )
    )


def problems_of(**sources: Any) -> list[str]:
    """Return the lines of the error that the sources cause."""
    with pytest.raises(ConfigError) as caught:
        made_of(**sources)
    return str(caught.value).splitlines()

"""Which model a configuration asks for: an endpoint, or the built-in offline model. Pure."""

import msgspec

from odek.config.addresses import COMPLETIONS, endpoint_url
from odek.config.settings import Config
from odek.errors import ConfigError
from odek.llm.endpoint import Endpoint
from odek.llm.profiles import PROVIDERS, Provider

__all__ = ["OFFLINE", "Choice", "choose"]

OFFLINE = "offline"
"""The model name that asks for the built-in model, key or not."""


class Choice(msgspec.Struct, frozen=True):
    """What was chosen; ``endpoint`` None is the offline model.

    ``notice`` is a line for the person where the choice was not entirely theirs.
    """

    endpoint: Endpoint | None
    notice: str = ""


def choose(config: Config, key_name: str) -> Choice:
    """Choose by ``config``; ``key_name`` names the variable or file that the API key came from.

    Raises:
        ConfigError: a model is named, and nothing says where to ask it.
    """
    if config.model == OFFLINE:
        return Choice(None)
    if config.base_url:
        asked = endpoint_url(config.base_url, COMPLETIONS)
        usual = next(
            (each.model for each in PROVIDERS if endpoint_url(each.base_url, COMPLETIONS) == asked), ""
        )
        return Choice(_endpoint(config, config.base_url, config.model or usual))
    if not config.api_key:
        if config.model:
            raise ConfigError(f'model "{config.model}" needs an endpoint: set ODEK_API_KEY, or --base-url')
        return Choice(
            None,
            "no API key or endpoint is set: using the built-in offline model (say `help`)",
        )
    provider = next((known for known in PROVIDERS if key_name.startswith(known.key_variable)), None)
    if provider is not None:
        return Choice(_endpoint(config, provider.base_url, config.model or provider.model))
    provider = _by_model(config.model)
    notice = f"no base_url is set: asking {provider.base_url} (set base_url for another endpoint)"
    return Choice(_endpoint(config, provider.base_url, config.model or provider.model), notice)


def _by_model(model: str) -> Provider:
    """Return the provider whose models are named like ``model``, else the first."""
    name = model.rsplit("/", 1)[-1]
    family = name.split("-", 1)[0]
    return next((known for known in PROVIDERS if family and known.model.startswith(family)), PROVIDERS[0])


def _endpoint(config: Config, base_url: str, model: str) -> Endpoint:
    return Endpoint(
        base_url=base_url,
        model=model,
        api_key=config.api_key,
        settings=config.llm,
        price=config.prices.get(model),
    )

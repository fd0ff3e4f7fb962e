"""Where a model is asked, as what, and with which limits and prices."""

from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit, urlunsplit

import msgspec

from odek.config.addresses import COMPLETIONS, endpoint_url, is_address
from odek.config.settings import LlmSettings, PriceSettings
from odek.errors import ConfigError
from odek.llm.profiles import ModelProfile, profile_of

__all__ = ["Endpoint", "is_loopback"]


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A chat-completions endpoint and the model to ask there.

    ``base_url`` is the root, such as ``https://api.openai.com/v1``. An empty ``api_key``
    sends none, which local servers are content with. ``profile`` None takes what is known
    of the model by its name.

    Raises:
        ConfigError: the address, the key or the model's name cannot be right.
    """

    base_url: str
    model: str
    api_key: str = ""
    settings: LlmSettings = LlmSettings()
    price: PriceSettings | None = None
    profile: ModelProfile | None = None

    def __post_init__(self) -> None:
        if not self.model:
            raise ConfigError(f"no model is named for {self.host or 'the endpoint'}; use --model")
        if not is_address(self.base_url):
            raise ConfigError(
                f"base_url {_without_user(self.base_url)!r} is no address of an endpoint;"
                " it must look like http://localhost:11434/v1"
            )
        if not (self.api_key.isascii() and self.api_key.isprintable()) or " " in self.api_key:
            raise ConfigError(
                "the API key holds white space, a control character or one outside ASCII; copy it again"
            )

    def __repr__(self) -> str:
        return f"Endpoint(base_url={_without_user(self.base_url)!r}, model={self.model!r})"  # never the key

    @property
    def url(self) -> str:
        """The address that requests go to."""
        return endpoint_url(self.base_url, COMPLETIONS)

    @property
    def shown_url(self) -> str:
        """The same for messages, without user and password."""
        return urlunsplit(urlsplit(self.url)._replace(netloc=self.host))

    @property
    def host(self) -> str:
        """The host, and the port if one is named, for messages."""
        return self._parts.netloc.rpartition("@")[2]

    @property
    def is_tls(self) -> bool:
        """Whether the endpoint is reached through TLS."""
        return self._parts.scheme == "https"

    @property
    def is_loopback(self) -> bool:
        """Whether the endpoint is on this machine."""
        return is_loopback(self._parts.hostname or "")

    @property
    def _parts(self) -> SplitResult:
        return urlsplit(self.base_url)

    @property
    def known_profile(self) -> ModelProfile:
        """The profile given, or the one known by the model's name."""
        return self.profile or profile_of(self.model)

    @property
    def context_window(self) -> int | None:
        """Tokens of request and answer together: as configured, else as known, else None."""
        return self.settings.context_window or self.known_profile.context_window

    @property
    def idle_timeout_seconds(self) -> float:
        """Longest silence inside an answer: the setting, or the family's where nobody set it."""
        usual = self.known_profile.idle_timeout_seconds
        chosen = self.settings.idle_timeout_seconds
        return chosen if usual is None or chosen != LlmSettings().idle_timeout_seconds else usual


def is_loopback(host: str) -> bool:
    """Tell whether ``host`` is this machine by its name: no proxy elsewhere can reach it.

    A proxy in the environment is often set without the exception for it.
    """
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _without_user(url: str) -> str:
    """Return ``url`` for a message, without the user and password that it may hold."""
    scheme, slashes, rest = url.partition("//")
    return f"{scheme}{slashes}{rest.rpartition('@')[2]}"

"""Layers → one configuration: defaults, home file, project file, environment, flags.

``resolve`` is a function of its inputs; ``odek.config.files`` gathers them.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from odek.config.checking import Checker, Invalid
from odek.config.jsonc import parse_object
from odek.config.keys import Key, build, default_of, secret_paths, table, variables
from odek.config.order import check_order
from odek.config.secrets_env import parse_secrets
from odek.config.settings import REFUSED_IN_PROJECTS, Config
from odek.config.substitution import looks_like_credential, names_in, substitute, substitute_public
from odek.config.variables import DEBUG_VARIABLE, HOME_VARIABLE, complaint, in_order, is_unused, parsed

__all__ = [
    "API_KEY_VARIABLES",
    "Layer",
    "Origin",
    "Resolved",
    "SourceText",
    "Sources",
    "resolve",
    "secrets_of",
]

Layer = Literal["home", "project", "environment", "flag"]

API_KEY_VARIABLES = ("ODEK_API_KEY", "DEEPSEEK_API_KEY", "OPENAI_API_KEY")
"""Where the key of the endpoint is looked for, first match first."""

BASE_URL_VARIABLES = {"OPENAI_API_KEY": "OPENAI_BASE_URL"}
"""Where a key of that variable is good for, by its name: other programs read both."""

_SHORTEST_SECRET = 6  # characters; a shorter one would be found in harmless text everywhere


class SourceText(msgspec.Struct, frozen=True):
    """A file's text, its name as people know it, and whether others may read it.

    ``identity`` is the same for two names of one file, such as device and inode.
    """

    name: str
    text: str
    exposed: bool = False
    identity: tuple[int, int] | None = None


class Sources(msgspec.Struct, frozen=True):
    """All that a configuration is made of.

    ``flags`` maps key paths to values; None stands for a flag that was not given.
    """

    home: SourceText | None = None
    project: SourceText | None = None
    secrets: SourceText | None = None
    environ: Mapping[str, str] = {}
    flags: Mapping[str, Any] = {}


class Origin(msgspec.Struct, frozen=True):
    """The layer that gave a value, and the name of the file, variable or flag."""

    layer: Layer
    name: str


class Resolved(msgspec.Struct, frozen=True):
    """A configuration and where it comes from.

    ``origins`` has an entry for every key that a layer above the defaults has set.
    ``notices`` are lines the person should see. ``environment`` is what tools and
    subagents inherit: no credential that feeds one of the keys, nothing that only
    ``secrets.env`` brought. ``secrets`` are texts never to be shown or stored.
    """

    config: Config
    origins: Mapping[str, Origin]
    notices: tuple[str, ...]
    environment: Mapping[str, str]
    secrets: tuple[str, ...]


def secrets_of(brought: Mapping[str, str]) -> list[str]:
    """Return the texts of ``secrets.env`` that are secret: all but the settings, such as a model's name."""
    settings = {name for name, key in variables().items() if not key.facets.secret}
    settings.update(BASE_URL_VARIABLES.values())
    return [text for name, text in brought.items() if name not in settings]


def resolve(sources: Sources) -> Resolved:
    """Join all layers; an empty variable counts as one that is not set.

    Raises:
        ConfigError: the problems of the first source that has any, one a line; or those of
            values that are right each by itself, and not together.
    """
    return _Resolution(sources).run()


class _Resolution:
    """One ``resolve``: holds what the layers so far have given."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._values: dict[str, Any] = {}
        self._origins: dict[str, Origin] = {}
        self._notices: list[str] = []
        self._brought: dict[str, str] = {}  # by secrets.env, without what was set already
        self._variables: dict[str, str] = dict(sources.environ)
        self._key_names = set(API_KEY_VARIABLES)

    def run(self) -> Resolved:
        if self._sources.secrets is not None:
            self._read_secrets(self._sources.secrets)
        if self._sources.home is not None:
            self._read_home(self._sources.home)
        if self._sources.project is not None and not self._is_home(self._sources.project):
            self._read_project(self._sources.project)
        self._read_environment()
        self._read_flags()
        self._find_api_key()
        self._inherit("memory.embedding", "embedding")
        self._inherit("memory.extended.embedding", "memory.embedding")
        config = build(self._values)
        check_order(config, self._origins)
        return Resolved(
            config=config,
            origins=self._origins,
            notices=tuple(self._notices),
            environment=self._tool_environment(),
            secrets=self._secret_texts(),
        )

    def _is_home(self, project: SourceText) -> bool:
        """Say whether the project's file is the person's own: one file cannot be two layers."""
        home = self._sources.home
        return home is not None and project.identity is not None and project.identity == home.identity

    def _read_secrets(self, source: SourceText) -> None:
        if source.exposed:
            self._notices.append(f"{source.name} can be read by others: chmod 600 {source.name}")
        for name, value in parse_secrets(source.text, source.name).items():
            if name not in self._sources.environ:
                self._brought[name] = self._variables[name] = value
        if HOME_VARIABLE in self._brought:
            self._notices.append(f"{source.name}: {HOME_VARIABLE} has no effect in here; set it outside")

    def _read_home(self, source: SourceText) -> None:
        mapping = parse_object(source.text, source.name)
        checker = Checker(lambda text: substitute(text, self._variables))
        given, unused = checker.flatten(source.name, mapping)
        for path, raw in given.items():
            value = checker.check(f"{source.name}: {path}", table()[path], raw)
            self._set(path, value, Origin("home", source.name))
        if self._values.get("dangerous.classes", {}).get("blocked", "deny") != "deny":
            checker.report(f"{source.name}: dangerous.classes.blocked", "cannot be changed; remove it")
        checker.finish()
        self._note(source.name, "not used by this version:", unused)
        keys = [key for path in secret_paths() if (key := given.get(path))]
        self._key_names.update(*map(names_in, keys))
        if source.exposed and not all(map(names_in, keys)):
            self._notices.append(
                f"{source.name} holds a key and can be read by others: chmod 600 {source.name}"
            )

    def _read_project(self, source: SourceText) -> None:
        mapping, refused = _without_refused(parse_object(source.text, source.name))
        secret_names = {*self._brought, *self._key_names}
        checker = Checker(lambda text: substitute_public(text, self._sources.environ, secret_names))
        given, unused = checker.flatten(source.name, mapping)
        looser: list[str] = []
        for path, raw in given.items():
            if table()[path].facets.project == "refused":
                refused.append(path)
                continue
            value = checker.check(f"{source.name}: {path}", table()[path], raw)
            if isinstance(value, Invalid) or self._allows(table()[path], value):
                self._set(path, value, Origin("project", source.name))
            elif value != self._values.get(path, default_of(path)):
                looser.append(path)
        checker.finish()
        self._note(source.name, "ignored, a project file may not set:", refused)
        self._note(source.name, "ignored, a project file may only make stricter:", looser)
        self._note(source.name, "not used by this version:", unused)

    def _allows(self, key: Key, value: Any) -> bool:
        """Say whether a project may put ``value`` in the place of what the person chose."""
        match key.facets.project:
            case "switch_on":
                return bool(value)
            case "default":
                return bool(value == key.default)
            case "lower":
                current = self._values.get(key.path, key.default)
                return bool(value) and (not current or value < current)
            case _:
                return True

    def _read_environment(self) -> None:
        names = [name for name, value in self._variables.items() if name.startswith("ODEK_") and value]
        checker = Checker()
        unused: list[str] = []
        for name in in_order(names):
            if key := variables().get(name):
                raw = parsed(key, self._variables[name].strip())
                value = checker.check(name, key, raw, hidden=name in self._brought)
                self._set(key.path, value, Origin("environment", self._variable_name(name)))
            elif is_unused(name):
                unused.append(name)
            elif name not in {HOME_VARIABLE, DEBUG_VARIABLE}:
                self._notices.append(f"environment: {complaint(name)}")
        checker.finish()
        self._note("environment", "not used by this version:", unused)

    def _read_flags(self) -> None:
        checker = Checker()
        for path, raw in self._sources.flags.items():
            if raw is not None:
                key = table()[path]
                name = key.facets.flag or path
                self._set(path, checker.check(name, key, raw), Origin("flag", name))
        checker.finish()

    def _find_api_key(self) -> None:
        if self._values.get("api_key"):
            return
        checker = Checker()
        for name in API_KEY_VARIABLES:
            if text := self._variables.get(name, "").strip():
                value = checker.check(name, table()["api_key"], text)
                self._set("api_key", value, Origin("environment", self._variable_name(name)))
                self._find_base_url(BASE_URL_VARIABLES.get(name, ""), checker)
                break
        checker.finish()

    def _find_base_url(self, name: str, checker: Checker) -> None:
        """Take the address that goes with a key, unless one was named: a key must not go elsewhere."""
        text = self._variables.get(name, "").strip()
        if text and not self._values.get("base_url"):
            value = checker.check(name, table()["base_url"], text)
            self._set("base_url", value, Origin("environment", self._variable_name(name)))

    def _inherit(self, section: str, other: str) -> None:
        """Give a section of which no key was set what was set of the ``other``."""
        if any(path.startswith(f"{section}.") for path in self._origins):
            return
        for path in [path for path in self._origins if path.startswith(f"{other}.")]:
            own = section + path.removeprefix(other)
            self._values[own], self._origins[own] = self._values[path], self._origins[path]

    def _set(self, path: str, value: Any, origin: Origin) -> None:
        if isinstance(value, Invalid):
            return
        before = self._origins.get(path)
        if before is not None and table()[path].facets.additive:
            value = tuple(dict.fromkeys((*self._values[path], *value)))
            origin = Origin(origin.layer, f"{before.name}, {origin.name}")
        self._values[path], self._origins[path] = value, origin

    def _variable_name(self, name: str) -> str:
        return f"{name} in secrets.env" if name in self._brought else name

    def _note(self, source: str, what: str, names: list[str]) -> None:
        if names:
            self._notices.append(f"{source}: {what} {', '.join(names)}")

    def _tool_environment(self) -> dict[str, str]:
        keys = self._credentials()

        def holds(value: str) -> bool:
            return any(
                value.strip() == key or (len(key) >= _SHORTEST_SECRET and key in value) for key in keys
            )

        return {
            name: value
            for name, value in self._sources.environ.items()
            if name not in self._key_names
            and not holds(value)
            and not (name.startswith("ODEK_") and name not in variables() and looks_like_credential(name))
        }

    def _credentials(self) -> list[str]:
        return [key for path in secret_paths() if (key := self._values.get(path))]

    def _secret_texts(self) -> tuple[str, ...]:
        found = self._credentials() + secrets_of(self._brought)
        found += [self._variables.get(name, "").strip() for name in sorted(self._key_names)]
        return tuple(dict.fromkeys(text for text in found if len(text) >= _SHORTEST_SECRET))


def _without_refused(mapping: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Split off what a project file may not set, one level deep; what is in there is not looked at."""
    kept: dict[str, Any] = {}
    refused: list[str] = []
    for name, value in mapping.items():
        if name in REFUSED_IN_PROJECTS:
            refused.append(name)
            continue
        kept[name] = value
        if isinstance(value, dict):
            refused += [path for inner in value if (path := f"{name}.{inner}") in REFUSED_IN_PROJECTS]
    return kept, refused

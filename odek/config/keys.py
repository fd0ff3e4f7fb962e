"""The keys of the configuration as a flat table, read off the Structs of ``settings``."""

from collections.abc import Iterator, Mapping
from functools import cache, reduce
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from odek.config.section import Facets, Section
from odek.config.settings import REFUSED_IN_PROJECTS, Config

__all__ = [
    "Key",
    "bare",
    "build",
    "credentials_in",
    "default_of",
    "describe_type",
    "secret_paths",
    "section_types",
    "sections",
    "table",
    "variables",
    "with_values",
]


class Key(msgspec.Struct, frozen=True):
    """One key: its dotted path, annotated type, default, meaning, and the rest of its facets."""

    path: str
    annotation: Any
    default: Any
    meaning: str
    facets: Facets

    @property
    def variable(self) -> str:
        """The environment variable of this key, or "" if its type has no text form."""
        if not _has_text_form(bare(self.annotation)):
            return ""
        return self.facets.env or _general_variable(self.path)


@cache
def table() -> Mapping[str, Key]:
    """Return every key by its path, in the order of the Structs."""
    return {key.path: key for key in _walk(Config(), "")}


@cache
def sections() -> Mapping[str, str]:
    """Return the meaning of every section by its path, outer ones first."""
    return {path: _meaning(kind) for path, kind in section_types().items() if path}


@cache
def section_types() -> Mapping[str, type[Section]]:
    """Return the Struct of every section by its path, outer ones first; "" is the whole."""
    return dict(_walk_sections(Config(), ""))


@cache
def variables() -> Mapping[str, Key]:
    """Return the key of every environment variable, general and special names alike."""
    found: dict[str, Key] = {}
    for key in table().values():
        if key.variable:
            found[_general_variable(key.path)] = key
            found[key.variable] = key
    return found


@cache
def secret_paths() -> tuple[str, ...]:
    """Return the paths of the keys that hold a credential."""
    return tuple(key.path for key in table().values() if key.facets.secret)


def credentials_in(config: Config) -> dict[str, str]:
    """Return the credentials of a configuration by their paths, without those that are not set."""
    found = {path: str(reduce(getattr, path.split("."), config)) for path in secret_paths()}
    return {path: text for path, text in found.items() if text}


def build(values: Mapping[str, Any]) -> Config:
    """Return the configuration in which ``values``, checked and keyed by path, replace the defaults."""
    return with_values(Config(), values)


def with_values(config: Config, values: Mapping[str, Any]) -> Config:
    """Return ``config`` with other ``values``, checked and keyed by path."""
    changed: Config = _replaced(config, "", values)
    return changed


def default_of(path: str) -> Any:
    """Return the default of the key at ``path``."""
    return table()[path].default


def bare(annotation: Any) -> Any:
    """Return the type without its annotations."""
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def describe_type(annotation: Any) -> str:
    """Return what a value of this type looks like, as the object of "expected …"."""
    if expected := _facets(annotation).expected:
        return expected
    base, bounds = bare(annotation), _bounds(annotation)
    origin = get_origin(base)
    if origin is Literal:
        return "one of " + ", ".join(str(choice) or '""' for choice in get_args(base))
    if origin in (Union, UnionType):
        inner = next(arg for arg in get_args(base) if arg is not type(None))
        return f"{describe_type(inner)}, or null"
    if origin is tuple:
        return "a list of texts"
    if base is bool:
        return "true or false"
    if base is int or base is float:
        return f"{'an integer' if base is int else 'a number'}{_range(bounds)}"
    if base is str:
        return "text that is not empty" if bounds.get("min_length") else "text"
    return "an object"


def _walk(section: Section, prefix: str) -> Iterator[Key]:
    annotations = type(section).__annotations__
    for name in section.__struct_fields__:
        path, default, annotation = f"{prefix}{name}", getattr(section, name), annotations[name]
        if isinstance(default, Section):
            yield from _walk(default, f"{path}.")
        else:
            meaning: str = annotation.__metadata__[0].description
            facets = _facets(annotation)
            if prefix.partition(".")[0] in REFUSED_IN_PROJECTS:
                facets = msgspec.structs.replace(facets, project="refused")
            yield Key(path, annotation, default, meaning, facets)


def _walk_sections(section: Section, path: str) -> Iterator[tuple[str, type[Section]]]:
    yield path, type(section)
    for name in section.__struct_fields__:
        inner = getattr(section, name)
        if isinstance(inner, Section):
            yield from _walk_sections(inner, f"{path}.{name}" if path else name)


def _replaced(section: Any, prefix: str, values: Mapping[str, Any]) -> Any:
    changes: dict[str, Any] = {}
    for name in section.__struct_fields__:
        path, current = f"{prefix}{name}", getattr(section, name)
        if isinstance(current, Section):
            changed = _replaced(current, f"{path}.", values)
            if changed is not current:
                changes[name] = changed
        elif path in values:
            changes[name] = values[path]
    return msgspec.structs.replace(section, **changes) if changes else section


def _meaning(section: type[Section]) -> str:
    return (section.__doc__ or "").strip().split("\n", 1)[0]


def _general_variable(path: str) -> str:
    return "ODEK_" + path.replace(".", "_").upper()


def _has_text_form(base: Any) -> bool:
    """Lists have one where no element can hold a comma: names of tools, but not commands."""
    origin = get_origin(base)
    if origin is tuple:
        return get_args(base)[0] is str
    return origin is not dict


def _facets(annotation: Any) -> Facets:
    for meta in getattr(annotation, "__metadata__", ()):
        if meta.extra and "facets" in meta.extra:
            found: Facets = meta.extra["facets"]
            return found
    return Facets()


def _bounds(annotation: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for meta in getattr(annotation, "__metadata__", ()):
        for name in ("ge", "gt", "le", "min_length"):
            if (value := getattr(meta, name)) is not None:
                found[name] = value
    return found


def _range(bounds: Mapping[str, Any]) -> str:
    low, above, high = bounds.get("ge"), bounds.get("gt"), bounds.get("le")
    if above is not None:
        return f" above {above:g}" + ("" if high is None else f" and at most {_plain(high)}")
    if low is not None and high is not None:
        return f" from {_plain(low)} to {_plain(high)}"
    return "" if low is None else f" of at least {_plain(low)}"


def _plain(number: float) -> str:
    if number != int(number):
        return str(number)
    return f"{int(number):,}" if number >= 10_000 else str(int(number))

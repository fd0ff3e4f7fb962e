"""The configuration described."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from odek.config.describe import reference, schema, template
from odek.config.jsonc import parse_object
from odek.config.keys import section_types, table
from odek.config.settings import UNUSED, Config
from tests.support.config_texts import made_of

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "configuration.md"
COMMENTED_KEY = re.compile(r'^(\s*)// (".*,)$', re.MULTILINE)


def test_the_reference_page_is_up_to_date() -> None:
    """The page in the repository is what the code says."""
    assert REFERENCE.read_text(encoding="utf-8") == reference()


def test_the_reference_page_names_every_key() -> None:
    """Every key and every unused key is on the page."""
    page = reference()

    assert all(f"`{path}`" in page for path in (*table(), *UNUSED))


@pytest.mark.parametrize("project", [True, False])
def test_a_template_sets_nothing_as_it_is(*, project: bool) -> None:
    """The fresh file is valid and changes nothing."""
    text = template(project=project)

    resolved = made_of(project=text) if project else made_of(home=text)

    assert resolved.config == Config()
    assert resolved.origins == {}
    assert resolved.notices == ()


def paths_of(given: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the paths of the keys that an object sets, sections opened."""
    for name, value in given.items():
        path = f"{prefix}{name}"
        if path in table():
            yield path
        else:
            yield from paths_of(value, f"{path}.")


@pytest.mark.parametrize("project", [True, False])
def test_every_line_of_a_template_can_be_switched_on(*, project: bool) -> None:
    """With all comments before keys removed, the file is valid and sets every key to its default."""
    text = COMMENTED_KEY.sub(r"\1\2", template(project=project))

    resolved = made_of(project=text) if project else made_of(home=text)

    assert resolved.config == Config()
    assert resolved.notices == ()
    expected = {
        key.path
        for key in table().values()
        if not key.facets.secret and (not project or key.facets.project != "refused")
    }
    assert set(paths_of(parse_object(text, "template"))) == expected


def test_a_template_reads_well() -> None:
    """No line is wider than an editor shows; there is no line of blanks."""
    lines = template(project=False).splitlines()

    assert max(map(len, lines)) <= 100
    assert all(line == line.rstrip() for line in lines)


def test_the_schema_knows_every_key() -> None:
    """Each key has a meaning; nothing else is allowed beside the keys that are not used."""
    definitions = schema()["$defs"]
    top = definitions["Config"]["properties"]

    for path, key in table().items():
        section, _, name = path.rpartition(".")
        owner = definitions[section_types()[section].__name__]
        assert owner["properties"][name]["description"] == key.meaning
        assert owner["additionalProperties"] is False
    assert top["telegram"]["deprecated"] is True
    assert top["max_iterations"]["maximum"] == 1000

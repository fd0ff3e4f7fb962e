"""The picture and the table of recall's speed are made of what was measured."""

import importlib.util
import json
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    """Return the program that makes both."""
    spec = importlib.util.spec_from_file_location("make_recall_svg", DOCS / "images" / "make_recall_svg.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_documents_show_what_the_report_says(maker: ModuleType) -> None:
    """Neither is edited by hand: a new measurement makes both anew."""
    documents = json.loads((DOCS / "images" / "recall.json").read_text())["documents"]
    page = (DOCS / "explanation" / "performance.md").read_text()

    assert (DOCS / "images" / "recall.svg").read_text() == maker.draw(documents)
    assert "\n".join(maker.table(documents)) in page


def test_labels_of_near_lines_do_not_cover_one_another(maker: ModuleType) -> None:
    """They keep a line's height between them, and their order."""
    places = maker.apart({"odek": 200.0, "rp": 100.0, "bm25s": 201.0, "fts5": 202.0})

    assert places["rp"] == 100
    assert sorted(places, key=places.__getitem__) == ["rp", "odek", "bm25s", "fts5"]
    heights = sorted(places.values())
    assert all(below - above >= maker.LABEL_HEIGHT for above, below in pairwise(heights))


def test_the_picture_is_well_formed_and_tells_light_from_dark(maker: ModuleType) -> None:
    """A ground of its own, and colours for both."""
    engines = {name: {"query_ms": {"p50": 0.1 * at}} for at, name in enumerate(maker.NAMES, 1)}
    picture = maker.draw({"500": engines, "5000": engines})

    root = ET.fromstring(picture)  # noqa: S314 - made by us
    assert root.tag.endswith("svg")
    assert "prefers-color-scheme: dark" in picture
    assert len(root.findall("{*}polyline")) == len(maker.NAMES)

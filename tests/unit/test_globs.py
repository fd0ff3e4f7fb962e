"""Which paths a glob matches, and at what cost."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odek.tools.globs import Glob


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("*.py", ["a.py", "d/a.py", ".py"], ["a.pyc", "a.py/x"]),
        ("src/*.py", ["src/a.py"], ["src/d/a.py", "x/src/a.py"]),
        ("src/**/*.py", ["src/a.py", "src/d/e/a.py"], ["a.py"]),
        ("**/test/**", ["test/x", "a/test/b/c"], ["testing/x"]),
        ("**", ["a", "a/b/c"], []),
        ("*.{js,ts{,x}}", ["a.js", "a.ts", "b/a.tsx"], ["a.jsx"]),
        ("[ab]?.c", ["ax.c", "d/b1.c"], ["c1.c", "a.c"]),
        ("./a/*", ["a/b"], ["b"]),
        ("{a}", ["{a}"], ["a"]),
        ("a[", [], ["a[", "a"]),
        (r"\*[\]]\[", ["*]["], ["a]["]),
        ("[!a-c-][[:digit:]]", ["d1"], ["a1", "-1", "dd"]),
        ("a*b*c", ["abc", "axbxbxc"], ["acb", "ab"]),
        ("*", ["a", "d/b"], []),
        ("src/**", ["src/a"], ["src"]),
        ("**/a/**/b", ["a/b", "x/a/y/a/z/b"], ["a/b/c"]),
    ],
)
def test_glob_patterns(pattern: str, matching: list[str], other: list[str]) -> None:
    """Each part of the pattern language does what its description says."""
    glob = Glob(pattern)

    assert [path for path in matching if not glob.matches(path)] == []
    assert [path for path in other if glob.matches(path)] == []


def test_hostile_glob_is_linear() -> None:
    """A pattern of many stars on a long name ends at once."""
    glob = Glob("**/" * 30 + "*a" * 40 + "b")

    assert not glob.matches("/".join(["a" * 200] * 50))


@pytest.mark.parametrize("pattern", ["[" * 40_000, "[" + "[:" * 20_000, "{" + "," * 40_000, "/[" * 20_000])
def test_what_is_never_closed_is_read_once(pattern: str) -> None:
    """Brackets and braces without an end match nothing, and take no longer than their length."""
    assert not Glob(f"a{pattern}").matches("a")


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from(["**", "a", "b", "*"]), min_size=2, max_size=6),
    st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=6),
)
def test_stars_of_two_match_like_recursion(parts: list[str], names: list[str]) -> None:
    """The greedy match agrees with the definition: ``**`` is any number of names, at the end at least one."""

    def defined(parts: list[str], names: list[str]) -> bool:
        if not parts:
            return not names
        if parts == ["**"]:
            return bool(names)
        if parts[0] == "**":
            return any(defined(parts[1:], names[taken:]) for taken in range(len(names) + 1))
        return bool(names) and parts[0] in {"*", names[0]} and defined(parts[1:], names[1:])

    assert Glob("/".join(parts)).matches("/".join(names)) == defined(parts, names)

"""The documents say what is: links lead somewhere, commands exist, examples run."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from odek.cli.main import COMMANDS, build_parser
from odek.cli.reference import PAGES
from odek.config.files import load
from tests.support.cli import Odek
from tests.support.model_server import open_model_server, text_answer

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def blocks(text: str, *languages: str) -> Iterator[str]:
    """Yield the code blocks of the languages."""
    yield from (body for language, body in BLOCK.findall(text) if language in languages)


def odek_commands(text: str) -> Iterator[list[str]]:
    """Yield the arguments of every ``odek`` in the shell blocks, assignments and pipes taken off."""
    for block in blocks(text, "sh", "console"):
        for line in block.splitlines():
            for part in re.split(r"\s(?:\||&&)\s", line.removeprefix("$ ").split("   #")[0]):
                words = shlex.split(part, comments=True)
                while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                    del words[0]
                if words[:1] == ["odek"]:
                    yield list(_before_redirection(words[1:]))


def _before_redirection(words: list[str]) -> Iterator[str]:
    for word in words:
        if re.match(r"\d*>", word):
            return
        yield word


@pytest.mark.parametrize("path", DOCUMENTS, ids=NAMES)
def test_relative_links_lead_somewhere(path: Path) -> None:
    """No page points at a file that is not there."""
    for target in LINK.findall(path.read_text()):
        if "://" not in target:
            assert (path.parent / target).exists(), target


@pytest.mark.parametrize("path", DOCUMENTS, ids=NAMES)
def test_commands_in_examples_exist(path: Path) -> None:
    """Every `odek` line of a page parses: no flag or command that does not exist."""
    for words in odek_commands(path.read_text()):
        if words and words[0] in COMMANDS:
            build_parser(words[0]).parse_args([word.replace("…", "x") for word in words])
        else:
            assert words[:1] in ([], ["COMMAND"], ["--help"]), words


@pytest.mark.parametrize("path", DOCUMENTS, ids=NAMES)
def test_configuration_examples_are_valid(path: Path, tmp_path: Path) -> None:
    """Every jsonc block is a configuration that loads without a complaint."""
    for block in blocks(path.read_text(), "jsonc"):
        (tmp_path / "config.json").write_text(block)
        (tmp_path / "config.json").chmod(0o600)
        resolved = load(tmp_path, tmp_path / "elsewhere", {"HOME": str(tmp_path)}, {})
        assert resolved.notices == ()


@pytest.mark.parametrize("name", PAGES)
def test_reference_pages_are_what_the_code_says(name: str) -> None:
    """`make docs` would change nothing."""
    assert (ROOT / "docs" / "reference" / f"{name}.md").read_text() == PAGES[name]()


def test_the_readme_names_every_command() -> None:
    """A person finds each command in the table."""
    readme = (ROOT / "README.md").read_text()
    for name in COMMANDS:
        assert f"odek {name}" in readme, name


def test_the_two_commands_of_the_readme_are_targets() -> None:
    """`make demo` and `make test` are there to be run."""
    done = subprocess.run(
        ["make", "-n", "demo", "test"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert "benchmarks.demo" in done.stdout
    assert "pytest" in done.stdout


async def test_the_readmes_own_commands_run(tmp_path: Path) -> None:
    """Copied from the page and run, each ends well."""
    odek = Odek(tmp_path)
    (odek.workspace / "Makefile").write_text("all:\n")
    (odek.workspace / "src").mkdir()
    (odek.workspace / "src" / "main.c").write_text("int main(void) { return 0; }\n")
    async with open_model_server(default=text_answer("It is fine.")) as server:
        ran = 0
        for words in odek_commands((ROOT / "README.md").read_text()):
            here = [re.sub(r"http://localhost:\d+/v1", server.base_url, word) for word in words]
            if here[0] in {"run", "continue"} and "--base-url" not in here:
                here += ["--base-url", server.base_url, "--model", "m"]
            done = await odek.run(*here)
            assert done.status == 0, (here, done.stderr)
            ran += 1

    assert ran >= 4


async def test_the_tutorial_runs_as_it_is_written(tmp_path: Path) -> None:
    """Step by step, each command ends well, and the memory holds what the page says."""
    tutorial = (
        (ROOT / "docs" / "tutorial" / "first-session.md").read_text().partition("## Use a real model")[0]
    )
    odek = Odek(tmp_path)
    outputs = [await odek.run(*words) for words in odek_commands(tutorial)]

    assert [done.status for done in outputs] == [0] * len(outputs)
    assert (odek.workspace / "notes.txt").read_text() == "buy milk\n"
    assert "I prefer short answers" in (odek.home / "memory" / "user.md").read_text()
    assert "I prefer short answers" in outputs[-3].stdout

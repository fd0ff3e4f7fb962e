"""A short story in a throw-away home: tools, a session continued, a memory that lasts.

``make demo`` runs it. Each command is the real one, run as a child process; what is
printed is its output and then what is on disk. Nothing outside of a temporary
directory is touched, which is removed at the end. Exit status 1 if a step goes wrong.
"""

import json
import os
import shlex
import stat
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
WIDTH = 80

# A step takes about a second; beyond this it hangs.
STEP_LIMIT_SECONDS = 60

NOTES = """\
The release is on Friday.
TODO: write the changelog
TODO: tag the commit
"""


class StoryError(Exception):
    """A step did not do what the story says it does."""


class Stage:
    """The throw-away home and workspace, and how their story is told."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.workspace = root / "project"
        self.workspace.mkdir()
        colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        self._bold, self._plain = ("\x1b[1m", "\x1b[0m") if colour else ("", "")
        own = ("ODEK_", "DEEPSEEK_", "OPENAI_")
        self._environment = {
            name: value for name, value in os.environ.items() if not name.startswith(own)
        } | {
            "HOME": str(root),
            "ODEK_HOME": str(self.home),
            "PYTHONPATH": str(ROOT),
            "COLUMNS": str(WIDTH),
            "NO_COLOR": "1",
        }

    def scene(self, title: str) -> None:
        """Begin a new part."""
        print(f"\n{self._bold}── {title} {'─' * max(WIDTH - len(title) - 4, 0)}{self._plain}")

    def odek(self, *arguments: str) -> str:
        """Run ``odek`` without a terminal, print what it prints, and return that."""
        print(f"\n{self._bold}$ odek {shlex.join(arguments)}{self._plain}", flush=True)
        done = subprocess.run(
            [sys.executable, "-m", "odek", *arguments],
            cwd=self.workspace,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # no terminal to ask at, also when the story has one
            timeout=STEP_LIMIT_SECONDS,
            check=False,
        )
        output = done.stdout.decode("utf-8", "replace")
        print("\n".join(map(folded, output.rstrip("\n").splitlines())), flush=True)
        check(done.returncode == 0, f"odek {arguments[0]} ended with status {done.returncode}")
        return output

    def show(self, path: Path) -> str:
        """Print a file and return its text."""
        check(path.is_file(), f"{path.name} is not there")
        print(f"\n{self._bold}{path.relative_to(self.home.parent)}{self._plain}")
        text = path.read_text()
        print("\n".join(f"  {line}" for line in text.splitlines()))
        return text

    def files(self) -> Iterator[tuple[str, int, Path]]:
        """Yield mode, size and path of all that odek has written below its home."""
        for path in [self.home, *sorted(self.home.rglob("*"))]:
            status = path.lstat()
            yield stat.filemode(status.st_mode), status.st_size, path


def folded(line: str) -> str:
    """Return ``line`` on as many lines as a terminal of the story's width takes for it."""
    return line if len(line) <= WIDTH else textwrap.fill(line, WIDTH)


def check(fulfilled: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as an assertion
    """Go on only if the story is true so far.

    Raises:
        StoryError: with ``otherwise``, when it is not.
    """
    if not fulfilled:
        raise StoryError(otherwise)


def tell(stage: Stage) -> None:
    """Tell the story, step by step."""
    (stage.workspace / "notes.txt").write_text(NOTES)
    print("odek with its built-in offline model: no key, no network, no language model.")
    stage.show(stage.workspace / "notes.txt")

    stage.scene("1. A task: files are read and written, a preference is remembered")
    stage.odek("run", "read notes.txt, then write todo.md: - changelog\nremember that I prefer short answers")
    check(stage.show(stage.workspace / "todo.md") == "- changelog\n", "todo.md holds something else")

    stage.scene("2. The same session goes on")
    stage.odek("continue", "search for TODO in notes.txt, then run wc -l todo.md")
    sessions = list((stage.home / "sessions").glob("*.json"))
    check(len(sessions) == 1, f"one session was continued, but there are {len(sessions)}")
    check(json.loads(sessions[0].read_bytes())["turns"] == 2, "the session does not have two turns")

    stage.scene("3. A new session already knows")
    answer = stage.odek("run", "what do you know about short answers?")
    check("I prefer short answers" in answer, "the new session does not know the preference")

    stage.scene("4. What is on disk: plain files, for their owner only")
    stage.odek("session", "list")
    stage.odek("memory", "facts")
    stage.show(stage.home / "memory" / "user.md")
    print()
    for mode, size, path in stage.files():
        depth = len(path.relative_to(stage.home).parts)
        print(f"  {mode} {size:>7,}  {'  ' * depth}{path.name}")
        check(mode.endswith("------"), f"{path} is open to others")

    stage.scene("5. Code that nobody approved does not run")
    stage.odek("run", "run python3 -m venv made-by-code")
    check(not (stage.workspace / "made-by-code").exists(), "the refused command ran")
    print("\nThere is no made-by-code: nobody could be asked, so the command did not run.")


def main() -> int:
    """Tell the story in a temporary directory and return the exit status."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="odek-demo-") as directory:
        try:
            tell(Stage(Path(directory)))
        except (StoryError, OSError, subprocess.TimeoutExpired) as error:
            print(f"\ndemo: {error}", file=sys.stderr)
            return 1
    print(f"\nAll of this took {time.monotonic() - started:.1f} s; the temporary home is gone again.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

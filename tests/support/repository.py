"""A git repository for a test: real git, and nothing of the person's own configuration."""

import os
import subprocess
from pathlib import Path

__all__ = ["Repository"]


class Repository:
    """A repository at ``path``; ``environment`` is for whoever shall see it as the test does."""

    def __init__(self, path: Path, *options: str) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        person = {"NAME": "A Person", "EMAIL": "person@example.org"}
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        self.environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        self.environment |= {f"GIT_AUTHOR_{name}": value for name, value in person.items()}
        self.environment |= {f"GIT_COMMITTER_{name}": value for name, value in person.items()}
        self.git("init", "-q", "-b", "main", *options, ".")

    def git(self, *arguments: str, stdin: str = "", folder: Path | None = None) -> str:
        """Run git there, or in ``folder``, and return what it wrote."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=folder or self.path,
            env=self.environment,
            input=os.fsencode(stdin),
            capture_output=True,
            check=False,
        )
        if done.returncode != 0:
            raise AssertionError(f"git {' '.join(arguments)}: {done.stderr.decode('utf-8', 'replace')}")
        return os.fsdecode(done.stdout)

    def commit(self, files: dict[str, str | bytes], message: str = "more") -> str:
        """Write ``files`` and commit everything; return the commit."""
        for name, content in files.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        self.git("add", "--all")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD").strip()

    def state(self, *, objects: bool = True) -> dict[str, object]:
        """Return all that a guest must leave as it is, ``objects`` included if it commits nothing."""
        left_out = {"index"} if objects else {"index", "objects"}
        return {
            "worktrees": self.git("worktree", "list", "--porcelain"),
            "refs": self.git("for-each-ref"),
            "head": self.git("rev-parse", "--symbolic-full-name", "HEAD"),
            "status": self.git("status", "--porcelain", "--ignored"),
            "config": self.git("config", "--list", "--local"),
            "files": sorted(
                str(path.relative_to(self.path))
                for path in (self.path / ".git").rglob("*")
                if not left_out & set(path.parts)
            ),
        }

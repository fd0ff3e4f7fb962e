"""What is known of programs: the table in ``programs.txt``, whose head explains its notation."""

from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

from odek.trust.risk import Risk

__all__ = ["LOOKED_FOR", "Option", "Rule", "canonical", "names_matching", "rule_for"]


_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_COMPOSE_FILES = ("compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml", "Dockerfile")
LOOKED_FOR: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("make", "gmake"), _MAKEFILES),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), ("package.json",)),
    **dict.fromkeys(("docker", "docker-compose", "podman"), _COMPOSE_FILES),
    **dict.fromkeys(("gradle", "gradlew"), ("build.gradle", "build.gradle.kts")),
    **dict.fromkeys(("mvn", "mvnw"), ("pom.xml",)),
    "cargo": ("Cargo.toml", "build.rs"),
    "cmake": ("CMakeLists.txt",),
    "composer": ("composer.json",),
    "invoke": ("tasks.py",),
    "just": ("justfile", "Justfile"),
    "nox": ("noxfile.py",),
    "pre-commit": (".pre-commit-config.yaml",),
    "pytest": ("conftest.py", "pyproject.toml"),
    "rake": ("Rakefile",),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "tox": ("tox.ini",),
    "vagrant": ("Vagrantfile",),
}
"""What programs run or obey from the current directory without being told its name."""

# No file name is longer.
_PATTERN_CHARACTERS_LIMIT = 255


class Option(msgspec.Struct, frozen=True):
    """One option: the kind of its value ("" when it takes none), and the class it raises to.

    ``risk`` is None where the option does not change the class.
    """

    value: str = ""
    risk: Risk | None = None


class Rule(msgspec.Struct, frozen=True):
    """What is known of a program or of one of its subcommands."""

    risk: Risk
    operands: str
    options: dict[str, Option]
    check: str = ""
    single_dash: bool = False

    def find(self, name: str) -> Option | None:
        """Return the option called ``name``, abbreviated or not; of several, the riskiest."""
        if (option := self.options.get(name)) is not None or not name.startswith("--"):
            return option
        candidates = [
            option for known, option in self.options.items() if known.startswith(name) and len(name) > 3
        ]
        return max(candidates, key=_danger, default=None)


def _danger(option: Option) -> int:
    return (option.risk or 0) + {"run": Risk.CODE_EXECUTION, "write": Risk.LOCAL_WRITE}.get(option.value, 0)


@lru_cache(maxsize=1)
def _rules() -> tuple[dict[str, Rule], dict[str, str]]:
    """Read the table once, at the first command."""
    rules: dict[str, Rule] = {}
    aliases: dict[str, str] = {}
    source = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    for line in source.replace("\n    ", " ").splitlines():
        if not line or line.startswith("#"):
            continue
        names, risk, operands, *tokens = line.replace(", ", ",").split()
        if risk == "alias":
            aliases |= dict.fromkeys(names.split(","), operands)
            continue
        options = dict(_option(token) for token in tokens if token[0] in "-+")
        check = next((token[1:] for token in tokens if token.startswith(":")), "")
        rule = Rule(Risk[risk.upper()], operands, options, check, "oneline" in tokens)
        rules |= dict.fromkeys(names.split(","), rule)
    return rules, aliases


def _option(token: str) -> tuple[str, Option]:
    token, raises, risk = token.partition("!")
    name, _, value = token.partition("=")
    return name, Option(value, Risk[risk.upper()] if raises and risk else None)


def rule_for(name: str) -> Rule | None:
    """Return the rule of ``name``, a program or ``program/subcommand``, or None."""
    return _rules()[0].get(canonical(name))


def canonical(name: str) -> str:
    """Return the name under which the table keeps ``name``."""
    return _rules()[1].get(name, name)


@lru_cache(maxsize=64)
def names_matching(pattern: str) -> tuple[str, ...]:
    """Return the programs that a file name pattern may stand for."""
    if len(pattern) > _PATTERN_CHARACTERS_LIMIT:
        return ()
    return tuple(name for name in _rules()[0] if "/" not in name and fnmatchcase(name, pattern))

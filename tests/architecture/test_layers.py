"""The house's rules, held by its own tests."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Lower number = lower layer. A module imports its own layer and lower ones. The longest prefix counts.
LAYERS = {
    "odek": 0,
    "odek.errors": 0,
    "odek.messages": 0,
    "odek.events": 0,
    "odek.text": 0,
    "odek.timestamps": 0,
    "odek.patterns": 0,
    "odek.first_answer": 0,
    "odek.home": 0,
    "odek.config": 0,
    "odek.background": 1,
    "odek.storage": 1,
    "subagent": 1,
    "odek.llm": 2,
    "odek.trust": 2,
    "odek.embedding": 2,
    "odek.guard": 2,
    "odek.sandbox": 2,
    "odek.index": 2,
    "odek.memory": 2,
    "odek.tools": 3,
    "odek.sessions": 3,
    "odek.prompt": 3,
    "odek.session_prompt": 3,
    "odek.context": 3,
    "odek.budget": 3,
    "odek.ledger": 3,
    "odek.event_queue": 3,
    "odek.attachments": 3,
    "odek.audit": 3,
    "odek.batch": 3,
    "odek.gate": 3,
    "odek.masked_events": 3,
    "odek.agent": 3,
    "odek.completion": 3,
    "odek.loop": 3,
    "odek.delegation": 3,
    "odek.output_schema": 3,
    "odek.processes": 3,
    "odek.app": 4,
    "odek.ground": 4,
    "odek.setup": 4,
    "odek.tool_choice": 4,
    "odek.sandbox_wiring": 4,
    "odek.audit_wiring": 4,
    "odek.memory_wiring": 4,
    "odek.extended_wiring": 4,
    "odek.subagents": 4,
    "odek.rehearsal": 4,
    "odek.drill": 4,
    "odek.bench": 4,
    "odek.delegation_wiring": 4,
    "odek.worker": 4,
    "odek.cli": 5,
    "odek.__main__": 5,
}

TRIO_FREE = (
    "odek.errors",
    "odek.messages",
    "odek.events",
    "odek.text",
    "odek.timestamps",
    "odek.home",
    "odek.config",
    "odek.storage",
    "odek.index",
    "odek.trust",
    "odek.prompt",
    "odek.context",
    "odek.budget",
    "odek.ledger",
    "odek.llm.sse",
    "odek.llm.wire",
    "odek.llm.profiles",
)

MAX_LINES = 400


def sources(*folders: str) -> Iterator[tuple[str, Path]]:
    """Yield (module name, path) of each Python file below the folders."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports(path: Path, *, top_level_only: bool = False) -> Iterator[str]:
    """Yield the modules that a file imports."""
    tree = ast.parse(path.read_text())
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            yield node.module


def layer(module: str) -> int:
    """Return the layer of a module by its longest known prefix."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        if (prefix := ".".join(parts[:length])) in LAYERS and (
            length > 1 or len(parts) == 1 or prefix != "odek"
        ):
            return LAYERS[prefix]
    raise AssertionError(f"{module} has no layer: add it to LAYERS, in the right place")


def test_a_module_imports_its_own_layer_and_lower_ones() -> None:
    """The direction of dependencies is downward, late imports included."""
    for module, path in sources("odek", "subagent"):
        own = layer(module)
        for imported in imports(path):
            if imported.split(".")[0] in {"odek", "subagent"}:
                assert layer(imported) <= own, f"{module} (layer {own}) imports {imported}"


def test_the_page_of_the_architecture_names_every_module_in_its_layer() -> None:
    """A reader finds each module of the top level in the table, and the number that is held here."""
    page = (ROOT / "docs/explanation/architecture.md").read_text()
    table = {
        name.rstrip("/"): int(number)
        for number, names in re.findall(r"^\| (\d)[^|]*\| ((?:`[\w/]+` ?)+)\|", page, re.MULTILINE)
        for name in re.findall(r"`([\w/]+)`", names)
    }
    expected = {
        name: layer(name if name == "subagent" else f"odek.{name.replace('/', '.')}") for name in table
    }
    modules = {module.split(".")[1] for module, _ in sources("odek") if "." in module}
    assert table == expected
    assert modules | {"subagent"} == {name for name in table if "/" not in name}


def test_subagent_knows_nothing_of_odek() -> None:
    """The process library stands on its own."""
    for module, path in sources("subagent"):
        for imported in imports(path):
            assert not imported.startswith("odek"), f"{module} imports {imported}"


def test_pure_modules_do_not_import_trio() -> None:
    """Decisions and storage are synchronous; trio lives above them."""
    for module, path in sources("odek"):
        if module.startswith(TRIO_FREE):
            assert "trio" not in set(imports(path)), f"{module} imports trio"


def test_nothing_imports_asyncio() -> None:
    """There is one event loop in the process."""
    for module, path in sources("odek", "subagent", "tests", "benchmarks"):
        assert "asyncio" not in set(imports(path)), module


def test_only_the_client_and_http_get_know_the_http_library() -> None:
    """Foreign exceptions stop at their module."""
    users = {module for module, path in sources("odek") if "httpx2" in set(imports(path))}
    known = ("odek.llm.", "odek.tools.http", "odek.embedding.http")
    assert all(module.startswith(known) for module in users), users


def test_only_the_faces_print() -> None:
    """A library module reports through events, errors and return values."""
    for module, path in sources("odek", "subagent"):
        if module.startswith("odek.cli") or module in {"odek.config.describe", "subagent.warden"}:
            continue
        names = {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}
        assert "print" not in names, module


def test_files_stay_small() -> None:
    """No file is beyond the size that a reader can hold."""
    for module, path in sources("odek", "subagent", "tests", "benchmarks"):
        lines = len(path.read_text().splitlines())
        assert lines <= MAX_LINES, f"{module} has {lines} lines"


def test_every_module_says_what_it_is() -> None:
    """Each module begins with a docstring."""
    for module, path in sources("odek", "subagent"):
        assert ast.get_docstring(ast.parse(path.read_text())), module


def test_public_names_exist() -> None:
    """What a module lists in ``__all__`` is defined in it, once."""
    for module, path in sources("odek", "subagent"):
        tree = ast.parse(path.read_text())
        listed = [
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets)
        ]
        if not listed:
            continue
        names = listed[0]
        defined = {name for node in ast.walk(tree) for name in _defined(node)}
        assert len(names) == len(set(names)), module
        assert set(names) <= defined, f"{module}: {set(names) - defined}"


def _defined(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name
        case ast.Name(id=name, ctx=ast.Store()):
            yield name
        case ast.ImportFrom(names=names) | ast.Import(names=names):
            yield from (alias.asname or alias.name for alias in names)


@pytest.mark.parametrize(
    ("command", "forbidden"),
    [
        (["version"], ["trio", "httpx2", "msgspec", "numpy", "json", "tree_sitter"]),
        (["--help"], ["trio", "httpx2", "msgspec", "numpy", "tree_sitter"]),
        (["session", "list"], ["trio", "httpx2", "msgspec", "numpy", "tree_sitter"]),
        (["config", "show"], ["trio", "httpx2", "numpy", "tree_sitter"]),
    ],
    ids=" ".join,
)
def test_light_commands_load_nothing_heavy(command: list[str], forbidden: list[str], tmp_path: Path) -> None:
    """Commands that need no agent do not pay for one."""
    code = (
        "import sys\n"
        "from odek.cli.main import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print('LOADED', *sorted(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={"ODEK_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
    )
    loaded = set(done.stderr.split("LOADED", 1)[1].split())
    assert not loaded & set(forbidden)

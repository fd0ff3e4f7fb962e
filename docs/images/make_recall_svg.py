"""Make docs/images/recall.svg and the table of docs/explanation/performance.md of what was measured.

    python benchmarks/bench_recall.py --sets DIRECTORY --out docs/images/recall.json
    python docs/images/make_recall_svg.py

writes the picture and prints the table. The picture has a ground of its own, light or dark as the reader's.
"""

import json
import math
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 64, 190, 76, 52
LABEL_HEIGHT = 17

NAMES = {
    "odek": "odek",
    "semantic": "odek, word vectors",
    "fts5": "SQLite FTS5",
    "tantivy": "tantivy, plain",
    "bm25s": "bm25s",
    "rp": "cosine (rp)",
}
# (light, dark): told apart without colour sight too, by their brightness and by the labels at their ends.
COLOURS = {
    "odek": ("#0b62c4", "#6cb6ff"),
    "semantic": ("#5b3fb8", "#b3a1ff"),
    "fts5": ("#b84a00", "#ff9b5e"),
    "tantivy": ("#00745a", "#4fd1a5"),
    "bm25s": ("#9a4383", "#e3a0d0"),
    "rp": ("#6b7280", "#9aa4b2"),
}
STYLE = """\
.ground { fill: #ffffff; } .text { fill: #1f2430; } .quiet { fill: #5b6472; } .rule { stroke: #d9dee6; }
@media (prefers-color-scheme: dark) {
.ground { fill: #1d2330; } .text { fill: #e6eaf2; } .quiet { fill: #a3acbb; }
.rule { stroke: #384152; }
}"""

TITLE = "Time to answer a question"
SUBTITLE = "median; lower is better; both scales grow by factors of ten"

Documents = Mapping[str, Mapping[str, Any]]


def main() -> None:
    """Write the picture and print the table."""
    report = json.loads((HERE / "recall.json").read_text(encoding="utf-8"))
    (HERE / "recall.svg").write_text(draw(report["documents"]), encoding="utf-8")
    sys.stdout.write("\n".join([*table(report["documents"]), ""]))


def table(documents: Documents) -> Iterator[str]:
    """Yield the lines of the table, in Markdown."""
    yield (
        "| documents | engine | question p50 · p95 · p99 | p50 by ours | opened and asked | one added · seen "
        "| own memory | built | files |"
    )
    yield "|---:|---|---:|---:|---:|---:|---:|---:|---:|"
    for size, engines in sorted(documents.items(), key=lambda each: int(each[0])):
        for name, each in engines.items():
            query = each["query_ms"]
            cells = [
                f"{int(size):,}",
                NAMES[name],
                " · ".join(short(query[part]) for part in ("p50", "p95", "p99")),
                short(each["times_ours"]),
                short(each["open_ms"]),
                f"{short(each['add_ms'])} · {short(each['seen_ms'])}" if each["add_ms"] else "all anew",
                f"{each['private_mb']:g} MB",
                f"{short(each['build_s'])} s",
                f"{each['files_mb']:,.0f} MB",
            ]
            yield f"| {' | '.join(cells)} |"


def short(value: float) -> str:
    """Return a number with the digits that count."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


class Axes:
    """Where a number of documents and a time in milliseconds lie, both by their logarithm."""

    def __init__(self, documents: Documents) -> None:
        self.sizes = sorted(map(int, documents))
        times = [each["query_ms"]["p50"] for engines in documents.values() for each in engines.values()]
        self.least, self.most = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))

    def x(self, size: int) -> float:
        """Return the place of a size."""
        first, last = math.log10(self.sizes[0]), math.log10(self.sizes[-1])
        return LEFT + (math.log10(size) - first) / ((last - first) or 1) * (WIDTH - LEFT - RIGHT)

    def y(self, milliseconds: float) -> float:
        """Return the place of a time."""
        share = (math.log10(milliseconds) - self.least) / (self.most - self.least)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def draw(documents: Documents) -> str:
    """Return the chart: a line for each engine, its name and its last time at its end."""
    axes = Axes(documents)
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    label = "Time to answer a question by number of documents, for odek and other engines"
    font = 'font-family="system-ui, sans-serif" font-size="13"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{label}" {font}>',
            f"<style>\n{STYLE}\n{''.join(colours())}</style>",
            '<rect class="ground" width="100%" height="100%" rx="8"/>',
            f'<text class="text" x="20" y="30" font-size="17" font-weight="600">{TITLE}</text>',
            f'<text class="quiet" x="20" y="52">{SUBTITLE}</text>',
            *grid(axes),
            *curves(axes, documents),
            "</svg>",
            "",
        ]
    )


def colours() -> Iterator[str]:
    """Yield the style of each engine."""
    for name, (light, dark) in COLOURS.items():
        yield f".{name} {{ stroke: {light}; }} .of-{name} {{ fill: {light}; }}\n"
        yield (
            "@media (prefers-color-scheme: dark) "
            f"{{ .{name} {{ stroke: {dark}; }} .of-{name} {{ fill: {dark}; }} }}\n"
        )


def grid(axes: Axes) -> Iterator[str]:
    """Yield a line and a name for each power of ten of time, and a name for each size."""
    for power in range(axes.least, axes.most + 1):
        y = axes.y(10**power)
        yield f'<line class="rule" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        name = f"{10**power:g} ms" if power < 3 else f"{10 ** (power - 3):g} s"
        yield f'<text class="quiet" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{name}</text>'
    for size in axes.sizes:
        y = HEIGHT - BOTTOM + 20
        yield f'<text class="quiet" x="{axes.x(size):.1f}" y="{y}" text-anchor="middle">{size:,}</text>'
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield f'<text class="quiet" x="{middle}" y="{HEIGHT - 12}" text-anchor="middle">documents</text>'


def curves(axes: Axes, documents: Documents) -> Iterator[str]:
    """Yield each engine's line, its points and its label."""
    found: dict[str, list[tuple[int, float]]] = {}
    for size in axes.sizes:
        for name, each in documents[str(size)].items():
            found.setdefault(name, []).append((size, each["query_ms"]["p50"]))
    for name, points in sorted(found.items(), key=lambda each: each[0] == "odek"):  # ours lies on top
        places = [(axes.x(size), axes.y(time)) for size, time in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        width = 3.5 if name == "odek" else 2
        yield (
            f'<polyline class="{name}" points="{path}" fill="none" stroke-width="{width}" '
            'stroke-linejoin="round"/>'
        )
        yield from (
            f'<circle class="of-{name}" cx="{x:.1f}" cy="{y:.1f}" r="{width + 1}"/>' for x, y in places
        )
    ends = {name: axes.y(points[-1][1]) for name, points in found.items()}
    for name, y in apart(ends).items():
        weight = ' font-weight="700"' if name == "odek" else ""
        x = axes.x(found[name][-1][0]) + 12
        text = f"{NAMES[name]} {short(found[name][-1][1])} ms"
        yield f'<text class="of-{name}" x="{x:.1f}" y="{y + 4:.1f}"{weight}>{text}</text>'


def apart(ends: Mapping[str, float]) -> dict[str, float]:
    """Return where labels stand so that none covers another, each near its line."""
    placed: dict[str, float] = {}
    floor = -math.inf
    for name, y in sorted(ends.items(), key=lambda each: each[1]):
        placed[name] = floor = max(y, floor + LABEL_HEIGHT)
    beyond = max(floor - (HEIGHT - BOTTOM), 0.0)
    return {name: y - beyond for name, y in placed.items()}


if __name__ == "__main__":
    main()

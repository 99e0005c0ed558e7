"""Plots of the tables of docs/benchmarks.md, as SVG: `python3 tests/book/plots.py` writes them to docs/images.

Each row of a table is a line, and each of its figures a dot on a logarithmic axis, so that equal ratios have equal
lengths. A plot brings its own background, dark where the reader prefers that.
"""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLES = ROOT / "docs/benchmarks.md"

WIDTH, ROW, TOP, BOTTOM, MARGIN = 900, 22, 56, 44, 16
# Colours that differ in lightness as well, on a light and on a dark background.
COLOURS = ["#2e86ab", "#d1495b", "#e8a33d", "#6b9e5b", "#8d6bb8", "#7a7a7a", "#3fb8af", "#b5651d"]
STYLE = """
.ground { fill: #ffffff; stroke: #d0d0d0 } text { font: 12px sans-serif; fill: #303030 } .title { font-weight: bold }
.grid { stroke: #e2e2e2 } .one { stroke: #808080; stroke-dasharray: 4 3 } .spread { stroke: #9a9a9a; stroke-width: 3 }
.goal { stroke: #303030; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
  .ground { fill: #1c1f24; stroke: #444a52 } text { fill: #d6d6d6 } .grid { stroke: #343a42 } .one { stroke: #9a9a9a }
  .spread { stroke: #707680 } .goal { stroke: #d6d6d6 }
}"""


@dataclass
class Line:
    """A row of a plot: its name, the figure of each series, and a spread and a goal if there are any."""

    name: str
    figures: dict
    spread: tuple = ()
    goal: float | None = None


@dataclass
class Plot:
    """A plot of one table: its file in docs/images, its title and unit, and how its rows are read."""

    file: str
    title: str
    # The text of the page behind which the first table is the one to plot.
    behind: str
    # Makes a line of a row, which is a dict by the heads of the columns; or None to leave it out.
    line: Callable[[dict], Line | None]


def number(text: str) -> float | None:
    """The first number of a cell."""
    found = re.search(r"\d+(?:\.\d+)?", text.replace(",", ""))
    return float(found[0]) if found else None


def ratio(row: dict) -> Line | None:
    """A ratio that has a goal. The goal for memory is an amount, and the goal for a disconnect is a time."""
    goal, _, verdict = row["goal"].partition(": ")
    if not verdict or re.search("KiB for|disconnect", row["figure"]):
        return None
    spread = tuple(map(float, re.findall(r"[\d.]+", row["spread"])))
    figures = {f"goal {word}": number(row["ratio"]) if word == verdict else None for word in ("met", "missed")}
    return Line(row["figure"], figures, spread, number(goal))


def decoders(row: dict) -> Line:
    names = [name for name in row if name != "events" and "/" not in name]
    return Line(row["events"], {name.strip("`"): number(row[name]) for name in names})


def columns(first: str, names: list) -> Callable[[dict], Line]:
    """A reader of rows whose figures are these columns."""
    return lambda row: Line(row[first], {name: number(row[name]) for name in names})


PLOTS = [
    Plot(
        "gateway.svg",
        "Gateway / bare proxy: the median of the ratios, their spread, and the goal (a stroke)",
        "<!-- results: gateway",
        ratio,
    ),
    Plot("decode.svg", "Decoding server-sent events, GB/s", "<!-- results: decode", decoders),
    Plot(
        "limits.svg",
        "The ledger of limits, µs",
        "<!-- results: limits",
        columns("request", ["admission, p50", "end, p50"]),
    ),
    Plot(
        "tenants.svg",
        "Small requests of one key beside another one, µs",
        "\n## Tenants",
        columns("small requests, µs", ["alone", "greedy key elsewhere", "at this gateway"]),
    ),
]


def table(page: str, behind: str) -> list:
    """The rows of the first table behind this text, each a dict by the heads of the columns."""
    lines = page.split(behind, 1)[1].splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[first:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    head, _, *body = rows
    return [dict(zip(head, row, strict=True)) for row in body]


class Drawing:
    """The elements of a plot, as SVG."""

    def __init__(self, plot: Plot, lines: list[Line]) -> None:
        self.title, self.lines = plot.title, lines
        self.series = list(dict.fromkeys(name for line in lines for name in line.figures))
        self.left = 2 * MARGIN + 7 * max(len(line.name) for line in lines)
        self.bottom = TOP + ROW * len(lines)
        every = [value for line in lines for value in (*line.figures.values(), *line.spread, line.goal) if value]
        self.low, self.high = math.log10(min(every) * 0.9), math.log10(max(every) * 1.1)

    def text(self) -> str:
        height = self.bottom + BOTTOM
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
                f"<title>{escape(self.title)}</title>",
                f"<style>{STYLE}</style>",
                f'<rect class="ground" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="6"/>',
                text(MARGIN, 22, self.title, "title"),
                *self.axis(),
                *self.rows(),
                *self.legend(height - 14),
                "</svg>\n",
            ]
        )

    def axis(self) -> Iterator[str]:
        has_goals = any(line.goal for line in self.lines)
        for tick in ticks(self.low, self.high):
            yield stroke("one" if tick == 1 and has_goals else "grid", self.x(tick), TOP - 8, self.x(tick), self.bottom)
            yield text(self.x(tick), self.bottom + 16, f"{tick:g}", anchor="middle")

    def rows(self) -> Iterator[str]:
        for at, line in enumerate(self.lines):
            y = TOP + ROW * at + ROW // 2
            yield text(self.left - 10, y + 4, line.name, anchor="end")
            if line.spread:
                yield stroke("spread", self.x(line.spread[0]), y, self.x(line.spread[1]), y)
            if line.goal:
                yield stroke("goal", self.x(line.goal), y - 7, self.x(line.goal), y + 7)
            for name, value in line.figures.items():
                if value:
                    yield self.dot(name, self.x(value), y)

    def legend(self, y: float) -> Iterator[str]:
        x = MARGIN
        for name in self.series:
            yield self.dot(name, x + 5, y)
            yield text(x + 15, y + 4, name)
            x += 30 + 7 * len(name)

    def dot(self, series: str, x: float, y: float) -> str:
        colour = COLOURS[self.series.index(series) % len(COLOURS)]
        return f'<circle cx="{x}" cy="{y}" r="5" fill="{colour}"/>'

    def x(self, value: float) -> float:
        """The place of a value on the axis."""
        part = (math.log10(value) - self.low) / (self.high - self.low)
        return round(self.left + part * (WIDTH - self.left - 2 * MARGIN), 1)


def stroke(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'


def ticks(low: float, high: float) -> list[float]:
    """Round values between two powers of ten: the fewer powers, the more values."""
    steps = [1, 2, 5] if high - low < 2 else [1]
    if high - low < 1:
        steps = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8]
    powers = range(math.floor(low), math.ceil(high) + 1)
    values = [step * 10.0**power for power in powers for step in steps]
    return [value for value in values if low <= math.log10(value) <= high]


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    kind = f' class="{kind}"' if kind else ""
    return f'<text x="{x}" y="{y}"{kind} text-anchor="{anchor}">{escape(words)}</text>'


def drawn() -> dict:
    """The plots by their files."""
    page = TABLES.read_text()
    files = {}
    for plot in PLOTS:
        lines = [line for line in map(plot.line, table(page, plot.behind)) if line]
        files[ROOT / "docs/images" / plot.file] = Drawing(plot, lines).text()
    return files


def outdated() -> list:
    """A sentence for each plot that does not show its table."""
    return [
        f"{file.relative_to(ROOT)} is not its table of docs/benchmarks.md: run tests/book/plots.py"
        for file, plot in drawn().items()
        if not file.exists() or file.read_text() != plot
    ]


if __name__ == "__main__":
    for file, plot in drawn().items():
        file.write_text(plot)
        print(f"wrote {file.relative_to(ROOT)}")

# SPDX-License-Identifier: Apache-2.0
"""Draws the rows of the modules from the table in CONTRIBUTING.md: ``python docs/diagram.py``."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import matplotlib

matplotlib.use("agg")
from matplotlib import pyplot as plt
from matplotlib.patches import FancyBboxPatch

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^\| (\d+) \| (.+?) \| (.+?) \|$", re.MULTILINE)
KNOWS = {  # by words of the row
    "Pyro": ("#f6c7ad", "knows Pyro"),
    "without torch": ("#bfe3d0", "knows xarray, not torch"),
    "xarray": ("#bfe3d0", "knows xarray"),
    "calls": ("#f3e3a8", "knows all"),
    "": ("#c5dcf0", "tensors alone"),
}
LEFT, RIGHT, WIDTH, GAP = 0.6, 6.9, 10.2, 0.24  # inches
LETTER, LINE = 0.088, 0.36  # width of a letter of a box, height of a line of boxes


def rows() -> list[tuple[int, list[str], str]]:
    """The number of each row, its modules, and what it takes and gives."""
    found = ROW.findall((ROOT / "CONTRIBUTING.md").read_text())
    return [(int(number), re.findall(r"`(.+?)`", modules), text.replace("`", "")) for number, modules, text in found]


def in_lines(modules: list[str]) -> list[list[str]]:
    """The modules in lines that fit into a band."""
    lines: list[list[str]] = [[]]
    for module in modules:
        if sum(len(name) * LETTER + 0.34 for name in [*lines[-1], module]) > RIGHT - LEFT - 0.2:
            lines.append([])
        lines[-1].append(module)
    return lines


def draw(path: Path) -> None:
    plan = [(number, in_lines(modules), text) for number, modules, text in rows()]
    bands = [max(2, len(lines)) * LINE + 0.1 for _, lines, _ in plan]
    height = sum(bands) + GAP * (len(plan) + 1)
    figure = plt.figure(figsize=(WIDTH, height))
    ax = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(height, 0))
    ax.axis("off")
    top = GAP
    for (number, lines, text), band in zip(plan, bands, strict=True):
        color, knows = next(look for words, look in KNOWS.items() if words in text)
        _box(ax, LEFT, top, RIGHT - LEFT, band, color, radius=0.12)
        ax.text(LEFT / 2, top + band / 2, str(number), ha="center", va="center", fontsize=15, color="0.35")
        for depth, line in enumerate(lines):
            x, y = LEFT + 0.15, top + band / 2 + (depth - len(lines) / 2) * LINE
            for name in line:
                width = len(name) * LETTER + 0.2
                _box(ax, x, y + 0.03, width, LINE - 0.06, "white", radius=0.06)
                ax.text(x + width / 2, y + LINE / 2, name, ha="center", va="center", fontsize=9.5, family="monospace")
                x += width + 0.14
        ax.text(RIGHT + 0.2, top + 0.04, knows, va="top", fontsize=9.5, weight="bold", color="0.25")
        ax.text(RIGHT + 0.2, top + 0.25, textwrap.fill(text, 44), va="top", fontsize=9, linespacing=1.15)
        if top > GAP:
            middle = (LEFT + RIGHT) / 2
            arrow = {"arrowstyle": "-|>", "color": "0.35", "shrinkA": 0, "shrinkB": 0}
            ax.annotate("", (middle, top - 0.01), (middle, top - GAP + 0.01), arrowprops=arrow)
        top += band + GAP
    modules = " ".join(name for _, lines, _ in plan for line in lines for name in line)
    with plt.rc_context({"svg.hashsalt": "pyro_ksd"}):
        figure.savefig(path, metadata={"Date": None, "Description": modules})


def _box(ax: plt.Axes, x: float, y: float, width: float, height: float, color: str, radius: float) -> None:
    inner = FancyBboxPatch(
        (x + radius, y + radius), width - 2 * radius, height - 2 * radius, boxstyle=f"round,pad={radius}"
    )
    inner.set(facecolor=color, edgecolor="0.6", linewidth=0.8)
    ax.add_patch(inner)


if __name__ == "__main__":
    draw(ROOT / "docs" / "images" / "modules.svg")

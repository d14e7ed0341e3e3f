# SPDX-License-Identifier: Apache-2.0
"""Draws the folders of the package from its code: ``python docs/diagram.py``.

A folder stands below all folders that it imports from. Its words are the first sentence of its docstring.
"""

from __future__ import annotations

import ast
import textwrap
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import matplotlib

matplotlib.use("agg")
from matplotlib import pyplot as plt
from matplotlib.patches import FancyBboxPatch

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "pyro_ksd"
PICTURE = ROOT / "docs" / "images" / "modules.svg"
KNOWS = {"pyro": "Pyro", "xarray": "xarray", "matplotlib": "matplotlib", "torch": "torch"}
COLORS = {"Pyro": "#f6c7ad", "xarray": "#bfe3d0", "matplotlib": "#f3e3a8", "torch": "#c5dcf0"}
LEFT, RIGHT, WIDTH, GAP = 0.3, 8.0, 11.6, 0.24  # inches
LETTER, LINE = 0.082, 0.34  # width of a letter of a box, height of a line of boxes


@dataclass(frozen=True)
class Folder:
    """A folder of the package."""

    path: Path

    @property
    def words(self) -> str:
        """The first line of its docstring."""
        return str(ast.get_docstring(ast.parse((self.path / "__init__.py").read_text()))).splitlines()[0]

    @cached_property
    def modules(self) -> list[str]:
        """Its modules, those of folders within it with their folder."""
        files = sorted(self.path.rglob("*.py"), key=lambda file: (len(file.parts), file))
        names = [file.relative_to(self.path).with_suffix("") for file in files if file.name != "__init__.py"]
        return ["/".join(name.parts) for name in names]

    @cached_property
    def imports(self) -> set[str]:
        """The full names of what its modules import."""
        found = set()
        for name in self.modules:
            for node in ast.walk(ast.parse((self.path / f"{name}.py").read_text())):
                if isinstance(node, ast.ImportFrom):
                    found.add(node.module or "")
                elif isinstance(node, ast.Import):
                    found |= {alias.name for alias in node.names}
        return found

    @property
    def above(self) -> set[str]:
        """The folders that it imports from."""
        own = {target.split(".")[1] for target in self.imports if target.startswith("pyro_ksd.")}
        return own - {self.path.name}

    @property
    def knows(self) -> list[str]:
        """Which of the large packages it imports; Pyro's R-hat alone does not count."""
        found = {target.split(".")[0] for target in self.imports - {"pyro.ops.stats"}}
        return [words for package, words in KNOWS.items() if package in found]


def folders() -> list[Folder]:
    """The folders, each below all that it imports from."""
    left = {file.parent.name: Folder(file.parent) for file in PACKAGE.glob("*/__init__.py")}
    ordered: list[Folder] = []
    while left:
        ready = [name for name, folder in left.items() if not folder.above & left.keys()]
        if not ready:
            raise ValueError(f"the folders {sorted(left)} import from each other in a circle")
        ordered.append(left.pop(min(ready, key=lambda name: (len(left[name].above), name))))
    return ordered


def in_lines(modules: list[str]) -> list[list[str]]:
    """The modules in lines that fit into a band, those of a folder within it on lines of their own."""
    lines: list[list[str]] = [[]]
    for module in modules:
        wide = sum(len(name) * LETTER + 0.28 for name in [*lines[-1], module]) > RIGHT - LEFT - 0.2
        other = bool(lines[-1]) and Path(lines[-1][-1]).parent != Path(module).parent
        if wide or other:
            lines.append([])
        lines[-1].append(module)
    return lines


def described() -> str:
    """All modules in the order of the picture, which the picture keeps for a test."""
    return " ".join(f"{folder.path.name}/{module}" for folder in folders() for module in folder.modules)


def draw(path: Path) -> None:
    plan = [(folder, in_lines(folder.modules)) for folder in folders()]
    bands = [0.34 + max(2, len(lines)) * LINE for _, lines in plan]
    height = sum(bands) + GAP * (len(plan) + 1)
    figure = plt.figure(figsize=(WIDTH, height))
    ax = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(height, 0))
    ax.axis("off")
    top = GAP
    for (folder, lines), band in zip(plan, bands, strict=True):
        known = folder.knows
        _box(ax, LEFT, top, RIGHT - LEFT, band, COLORS[known[0]] if known else "0.92", radius=0.1)
        ax.text(LEFT + 0.15, top + 0.19, f"{folder.path.name}/", va="center", fontsize=11, weight="bold")
        for depth, line in enumerate(lines):
            x, y = LEFT + 0.15, top + 0.34 + depth * LINE
            for name in line:
                width = len(name) * LETTER + 0.16
                _box(ax, x, y + 0.02, width, LINE - 0.08, "white", radius=0.05)
                ax.text(
                    x + width / 2, y + LINE / 2 - 0.02, name, ha="center", va="center", fontsize=8.5, family="monospace"
                )
                x += width + 0.12
        ax.text(RIGHT + 0.2, top + 0.06, _listed(known), va="top", fontsize=9.5, weight="bold", color="0.25")
        ax.text(RIGHT + 0.2, top + 0.27, textwrap.fill(folder.words, 48), va="top", fontsize=9, linespacing=1.15)
        if top > GAP:
            middle = (LEFT + RIGHT) / 2
            arrow = {"arrowstyle": "-|>", "color": "0.35", "shrinkA": 0, "shrinkB": 0}
            ax.annotate("", (middle, top - 0.01), (middle, top - GAP + 0.01), arrowprops=arrow)
        top += band + GAP
    with plt.rc_context({"svg.hashsalt": "pyro_ksd"}):
        figure.savefig(path, metadata={"Date": None, "Description": described()})


def _listed(known: list[str]) -> str:
    return f"knows {', '.join(known)}" if known else "knows plain Python"


def _box(ax: plt.Axes, x: float, y: float, width: float, height: float, color: str, radius: float) -> None:
    inner = FancyBboxPatch(
        (x + radius, y + radius), width - 2 * radius, height - 2 * radius, boxstyle=f"round,pad={radius}"
    )
    inner.set(facecolor=color, edgecolor="0.6", linewidth=0.8)
    ax.add_patch(inner)


if __name__ == "__main__":
    draw(PICTURE)

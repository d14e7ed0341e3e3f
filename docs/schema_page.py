# SPDX-License-Identifier: Apache-2.0
"""Writes the page on the schema of results from ``pyro_ksd/results/schema.py``: ``python docs/schema_page.py``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from pyro_ksd.results.schema import GROUPS, POWER, POWER_ATTRIBUTES, SCHEMA_VERSION
from pyro_ksd.results.schema_entries import SOURCES, Attribute, Result, Variable

PAGE = Path(__file__).parent / "schema.md"

_INTRODUCTION = f"""# The schema of results

*This page is written from the code, by `python docs/schema_page.py`.*

A result is an `xarray.DataTree` of flat groups. This page states which groups each kind of result has, and for every
group its variables, with their dimensions, types and values. `pyro_ksd.load(path)` checks files against it.

The root of a result has the attribute `schema_version`, which is {SCHEMA_VERSION} now. It is raised only if something
changes its meaning or goes away. `load` reads the files of all earlier versions, and refuses those of later ones. New
variables and groups may appear without a new version: ignore names that you do not know. Results of the command line
also have `title`, `command` and, for a model that it has fitted, `model`: texts for the report.

Floating-point numbers are finite unless NaN or ∞ is listed. Besides the attributes listed here, every group says when
and by what it was made: `created_at`, `creation_library`, `creation_library_version`, `inference_library`,
`inference_library_version`. Groups with the dimensions `chain` and `draw` have the attribute `sample_dims` for ArviZ.
Groups of other packages, such as a posterior, can be in the same file.
"""

_POWER = """## The table of `power`

`pyro_ksd.power(model, fault, n)` gives a pandas table, not groups: one row for each view and a last one, `overall`. Its
columns have two levels, first the names below, then the sample size `n`.
"""


def page() -> str:
    """The text of the page."""
    parts = [
        _INTRODUCTION,
        "## Kinds of results\n",
        _table(
            ["result", "made by", "groups that it always has"],
            ([kind, f"`{call}`", _code(_required_groups(kind))] for kind, call in SOURCES.items()),
        ),
    ]
    for name, group in GROUPS.items():
        always = f" Always in: {', '.join(group.required_in)}." if group.required_in else ""
        parts += [f"## `{name}`\n", f"{group.meaning[0].upper()}{group.meaning[1:]}.{always}\n"]
        variables = [*group.variables.items(), *group.coordinates.items()]
        parts.append(_variables(variables))
        if group.attributes:
            rows = (
                [f"`{key}`", own.type, _values(own), _when(own), own.meaning] for key, own in group.attributes.items()
            )
            parts.append(_table(["attribute", "type", "values", "in results", "meaning"], rows))
    attributes = ([f"`{key}`", meaning] for key, meaning in POWER_ATTRIBUTES.items())
    parts += [_POWER, _variables(POWER.items()), _table(["in `table.attrs`", "meaning"], attributes)]
    return "\n".join(parts)


def _required_groups(kind: Result) -> list[str]:
    return [name for name, group in GROUPS.items() if kind in group.required_in]


def _variables(variables: Iterable[tuple[str, Variable]]) -> str:
    rows = (
        [f"`{name}`", _code(own.dims) or "none", own.type, _values(own), _when(own), own.meaning]
        for name, own in variables
    )
    return _table(["variable", "dimensions", "type", "values", "in results", "meaning"], rows)


def _values(own: Variable | Attribute) -> str:
    """The range, or the choices."""
    if isinstance(own, Attribute) and own.choices:
        return ", ".join(own.choices)
    bounds = [] if own.least is None else [f"≥ {own.least:g}"]
    if own.most is not None:
        bounds = [f"{own.least:g} to {'∞' if own.most == math.inf else f'{own.most:g}'}"]
    return ", ".join([*bounds, *(["NaN"] if isinstance(own, Variable) and own.unknown else [])])


def _when(own: Variable | Attribute) -> str:
    """In which results it is."""
    if own.required_in is None:
        return "every one"
    return ", ".join(own.required_in) or "some"


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page())

# SPDX-License-Identifier: Apache-2.0
"""The pages of the documentation about the paper, from saved results: ``python -m benchmarks.paper.page``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

from benchmarks.paper.agreement import FAR, agreement, asked, outside, share_near, shared_null_text
from benchmarks.paper.catalog import EXPERIMENTS
from benchmarks.paper.claims import claims
from benchmarks.paper.discrepancies import discrepancies
from benchmarks.paper.results import (
    PUBLISHED,
    deviations,
    is_saved,
    label,
    load,
    markdown,
    mean_rates,
    rates,
    table,
)

DIRECTORY = Path(__file__).parents[2] / "docs" / "paper"


def write(directory: Path = DIRECTORY) -> None:
    """Writes the pages and their pictures, of all experiments whose results are saved."""
    (directory / "images").mkdir(parents=True, exist_ok=True)
    results = {name: load(name) for name in EXPERIMENTS if is_saved(name)}
    for name, result in results.items():
        figure = EXPERIMENTS[name].draw(result)
        figure.savefig(directory / "images" / f"{name}.png", dpi=110)
        plt.close(figure)
    (directory / "results.md").write_text(reproduction(results), encoding="utf-8")
    (directory / "discrepancies.md").write_text(discrepancies(results), encoding="utf-8")


def reproduction(results: dict[str, xr.Dataset]) -> str:
    """The page of all experiments."""
    sections = [_section(result, _BODIES.get(name, table)) for name, result in results.items()]
    missing = [f"`{name}`" for name in EXPERIMENTS if name not in results]
    waiting = [f"Not here yet, as their full runs have not been made: {', '.join(missing)}."] if missing else []
    hours = sum(float(result.attrs["minutes"]) for result in results.values()) / 60
    time = (
        f"All experiments together took {hours:.1f} hours by the clock, on a shared machine with two processors. "
        "The run with the Hamming kernel was suspended for about an hour of this time."
    )
    return "\n\n".join([_HEAD, time, *waiting, _claims(results), *agreement(results), *sections]) + "\n"


_HEAD = """# The paper, reproduced

The experiments of Baum, Kanagawa and Gretton, *A Kernel Stein Test of Goodness of Fit for Sequential Models* (ICML
2023), repeated with this package. [The summary](summary.md) has the results on one page.

`python -m benchmarks.paper NAME` runs one experiment and saves the result, with all settings and seeds, in
`benchmarks/paper/results/NAME.nc`. `python -m benchmarks.paper.page` wrote this page from these files. In tables, the
published figures are in brackets. In pictures, they are open marks, and bars are two standard errors. The paper prints
its other curves without numbers, so you can compare these only by eye.

Tests by parametric bootstrap share a pool of null draws. This does not change the level and power of a run
(`benchmarks/paper/testing.py` explains why). If the text of the paper and its numbers disagree, the settings are those
of the numbers: [](discrepancies.md)."""


def _section(result: xr.Dataset, body: Callable[[xr.Dataset], str]) -> str:
    settings = json.loads(result.attrs["settings"])
    shown = "; ".join(f"{key}: {value}" for key, value in settings.items() if key != "quick")
    name = result.attrs["experiment"]
    workers = int(result.attrs["workers"])
    processes = "1 process" if workers == 1 else f"{workers} processes"
    return f"""({name})=
## {result.attrs["title"]}

![{result.attrs["title"]}](images/{name}.png)

{body(result)}

`python -m benchmarks.paper {name}`: {result.attrs["minutes"]:.0f} minutes with {processes}. \
{shown}."""


def scenario_tables(result: xr.Dataset) -> str:
    """One table for each kernel and kind of edits, and how far all figures are from the published ones."""
    far = deviations(result)
    names = [str(test) for test in result["test"].values]
    parts = [
        f"{share_near(asked(far))} of the cells with J = 1, 3 and ∞, and {share_near(far)} of all published cells, "
        f"lie within {FAR} standard errors (of both estimates) of the published figure; the others are in bold.",
        outside(far) + (" The random walks are another matter: [](#ring_kernel)." if "Hamming" in names[0] else ""),
    ]
    for group in dict.fromkeys(name.split(" J=")[0] for name in names if " J=" in name):
        columns = [name for name in names if name.startswith(f"{group} J=")]
        parts.append(_scenario_table(result, columns, [name.removeprefix(f"{group} ") for name in columns], group))
    columns = [name for name in names if name.endswith("MMD")]
    parts.append(_scenario_table(result, columns, columns, "MMD"))
    return "\n\n".join(parts)


def _scenario_table(result: xr.Dataset, tests: list[str], heads: list[str], title: str) -> str:
    rate = rates(result)
    published = result["published"]
    far = deviations(result)
    rows = []
    for point in result["point"].values:
        row = [str(point)]
        for test in tests:
            here = {"point": point, "test": test}
            text = f"{float(rate.sel(here)):.3f}{_bracket(float(published.sel(here)))}"
            row.append(f"**{text}**" if float(far.sel(here)) > FAR else text)
        rows.append(row)
    means = rate.mean("point")
    theirs = published.mean("point", skipna=False)
    rows.append(
        ["average", *(f"{float(means.sel(test=test)):.3f}{_bracket(float(theirs.sel(test=test)))}" for test in tests)]
    )
    return f"**{title}**\n\n{markdown(['scenario', *heads], rows)}"


def _bracket(published: float) -> str:
    return "" if np.isnan(published) else f" ({published:.3f})"


def spread_table(result: xr.Dataset) -> str:
    """Mean, smallest and largest rate over the repetitions, with the published figure."""
    each = result["rejected"] / result["runs"]
    rows = []
    for point in result["point"].values:
        row = [label(point)]
        for test in result["test"].values:
            found = each.sel(point=point, test=test)
            theirs = float(result["published"].sel(point=point, test=test))
            row.append(
                f"{float(found.mean()):.2f} [{float(found.min()):.2f}, {float(found.max()):.2f}]{_bracket(theirs)}"
            )
        rows.append(row)
    head = [result["point"].attrs["long_name"], *map(str, result["test"].values)]
    shown = f"Mean [smallest, largest] rate of {result.sizes['repetition']} draws, the points of the picture."
    return f"{shown}\n\n{markdown(head, rows)}"


def symbol_table(result: xr.Dataset) -> str:
    """The means over the scenarios against the radius."""
    means = mean_rates(result)
    names = [str(test) for test in result["test"].values]
    groups = dict.fromkeys(name.split(" d=")[0] for name in names)
    radii = list(dict.fromkeys(name.split(" d=")[1] for name in names))
    rows = [
        [
            group,
            *(
                f"{float(means.sel(test=f'{group} d={radius}')):.3f}"
                f" ({PUBLISHED['symbols'][f'{group} d={radius}']:.3f})"
                for radius in radii
            ),
        ]
        for group in groups
    ]
    head = ["mean over the scenarios", *(f"d = {radius}" for radius in radii)]
    return markdown(head, rows)


def balancing_table(result: xr.Dataset) -> str:
    """The rates, and beside them the two columns that the paper prints."""
    rate = rates(result)
    tests = [str(test) for test in result["test"].values]
    rows = []
    for point in map(str, result["point"].values):
        published = PUBLISHED["balancing"][point]
        own = [f"{float(rate.sel(point=point, test=test)):.3f}" for test in tests]
        rows.append([point, f"{published['barker']:.2f}", f"{published['mpf']:.2f}", *own])
    means = [f"{float(mean_rates(result).sel(test=test)):.3f}" for test in tests]
    paper = [np.mean([row[name] for row in PUBLISHED["balancing"].values()]) for name in ("barker", "mpf")]
    rows.append(["average", *(f"{value:.3f}" for value in paper), *means])
    return markdown(["scenario", "paper, Barker", "paper, MPF", *tests], rows)


_BODIES: dict[str, Callable[[xr.Dataset], str]] = {
    "scenarios_csk": scenario_tables,
    "scenarios_hamming": scenario_tables,
    "redrawn": spread_table,
    "mmd_one_sample": spread_table,
    "shared_null": lambda result: f"{shared_null_text(result)}\n\n{table(result)}",
    "symbols": symbol_table,
    "balancing": balancing_table,
}


def _claims(results: dict[str, xr.Dataset]) -> str:
    rows = [
        [claim.text, claim.figures, f"[{claim.where}](#{claim.where})", "yes" if claim.holds else "**no**"]
        for claim in claims(results)
    ]
    return "## What the paper claims\n\n" + markdown(["claim", "our figures", "experiment", "holds"], rows)


if __name__ == "__main__":
    write()

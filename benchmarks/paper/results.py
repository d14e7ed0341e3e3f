# SPDX-License-Identifier: Apache-2.0
"""Results of experiments: xarray data sets, files, comparison with the paper, tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from benchmarks.paper.experiment import LEVEL, Cell, Experiment
from pyro_ksd.results.containers import provenance

DIRECTORY = Path(__file__).with_name("results")
PUBLISHED = json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))
"""The figures that the paper prints."""


def as_dataset(cells: Sequence[Cell], experiment: Experiment, *, quick: bool, seed: int) -> xr.Dataset:
    """The counts over ``(repetition, point, test)``, and what is published over ``(point, test)``.

    Points and tests keep the order in which they were measured.
    """
    table = pd.DataFrame([asdict(cell) for cell in cells])
    points = list(dict.fromkeys(table["point"]))
    tests = list(dict.fromkeys(table["test"]))
    keys = ["repetition", "point", "test"]
    result = xr.Dataset.from_dataframe(table.groupby(keys).agg({"runs": "sum", "rejected": "sum", "seconds": "mean"}))
    result = result.sel(point=points, test=tests)
    published = [[experiment.published.get((point, test), np.nan) for test in tests] for point in points]
    result["published"] = (("point", "test"), published)
    result["point"].attrs["long_name"] = experiment.axis
    settings = {"level": LEVEL, **experiment.settings, "quick": int(quick), "seed": seed}
    result.attrs = {
        "experiment": experiment.name,
        "title": experiment.title,
        "published_runs": experiment.published_runs,
        "settings": json.dumps(settings, ensure_ascii=False),
        **provenance(),
    }
    return result


def save(result: xr.Dataset, directory: Path) -> Path:
    """Writes the result as netCDF."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{result.attrs['experiment']}.nc"
    result.to_netcdf(path, engine="h5netcdf")
    return path


def is_saved(name: str) -> bool:
    """Whether there is a result of the full run of an experiment."""
    return (DIRECTORY / f"{name}.nc").exists()


def load(name: str, directory: Path = DIRECTORY) -> xr.Dataset:
    """A result that was saved, by the name of the experiment."""
    return xr.load_dataset(directory / f"{name}.nc", engine="h5netcdf")


def rates(result: xr.Dataset) -> xr.DataArray:
    """How often each test rejected at each point, over all repetitions."""
    return result["rejected"].sum("repetition") / _runs(result)


def mean_rates(result: xr.Dataset) -> xr.DataArray:
    """The rates of the tests, averaged over the points."""
    return rates(result).mean("point")


def standard_errors(result: xr.Dataset) -> xr.DataArray:
    """The standard errors of the rates.

    Repetitions may have random models of their own, so with several of them the spread of their rates is taken; the
    binomial error is the least.
    """
    rate = rates(result)
    count = result.sizes["repetition"]
    binomial = (rate * (1 - rate) / _runs(result)) ** 0.5
    if count == 1:
        return binomial
    spread = (result["rejected"] / result["runs"]).std("repetition", ddof=1) / count**0.5
    larger: xr.DataArray = xr.where(spread > binomial, spread, binomial)
    return larger


def deviations(result: xr.Dataset) -> xr.DataArray:
    """The distance of measured and published rate in standard errors of their difference; NaN where none is published.

    Both rates are estimates. Their variance is taken at the mean of the two, weighted by the numbers of runs, with one
    success and one failure added: a rate of 0 or 1 is not known without error.
    """
    ours = _runs(result)
    theirs = result.attrs["published_runs"]
    pooled = (rates(result) * ours + result["published"] * theirs + 1) / (ours + theirs + 2)
    error = (pooled * (1 - pooled) * (1 / ours + 1 / theirs)) ** 0.5
    distance: xr.DataArray = abs(rates(result) - result["published"]) / error
    return distance


def table(result: xr.Dataset) -> str:
    """The rates in Markdown, points in rows and tests in columns, with the published figure in brackets."""
    rate = rates(result)
    head = [result["point"].attrs["long_name"], *map(str, result["test"].values)]
    rows = [
        [label(point), *(_cell(rate, result["published"], point, test) for test in result["test"].values)]
        for point in result["point"].values
    ]
    return markdown(head, rows)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _runs(result: xr.Dataset) -> xr.DataArray:
    return result["runs"].sum("repetition")


def label(point: Any) -> str:
    """A point as a person writes it."""
    return f"{point:g}" if isinstance(point, float) else str(point)


def _cell(rate: xr.DataArray, published: xr.DataArray, point: Any, test: Any) -> str:
    here = {"point": point, "test": test}
    theirs = float(published.sel(here))
    return f"{float(rate.sel(here)):.3f}" + ("" if np.isnan(theirs) else f" ({theirs:.3f})")

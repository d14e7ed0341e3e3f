# SPDX-License-Identifier: Apache-2.0
"""How often the wild bootstrap rejects true models of all kinds: ``python -m benchmarks.levels``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.processes import WORKERS, as_finished
from benchmarks.rejections import LEVEL, WHOLE, MakeViews, WildRates, band, default_check, seeded, table, wild_rates
from benchmarks.true_models import true_models
from pyro_ksd.models import SequenceModel
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.views import View, default_views

SIZES = (30, 100, 300)
_PAGE = Path(__file__).parents[1] / "docs" / "levels.md"


@dataclass(frozen=True)
class Settings:
    """How much is computed.

    :param runs: data sets of each model and size.
    :param draws: null draws of each check.
    :param seed: of all random numbers.
    :param views: names of the views that are measured; all of them if there are none.
    """

    runs: int = 500
    draws: int = 200
    seed: int = 0
    views: tuple[str, ...] = ()


@dataclass(frozen=True)
class Level:
    """How often one true model was rejected with data sets of one size."""

    model: str
    size: int
    rates: WildRates


def measure(name: str, size: int, settings: Settings, make_views: MakeViews) -> Level:
    """The level for one model, which depends on nothing but the arguments."""
    model = true_models()[name]
    make_views = partial(_chosen_views, make_views, settings.views) if settings.views else make_views
    generator = seeded(settings.seed, name, size)
    return Level(name, size, wild_rates(model, model.draw, size, make_views, settings.runs, settings.draws, generator))


def _chosen_views(make_views: MakeViews, names: Sequence[str], model: SequenceModel, data: Sequences) -> Sequence[View]:
    """The views with these names; all of them for a check without any of these."""
    views = make_views(model, data)
    return [view for view in views if view.name in names] or views


def measure_all(
    settings: Settings,
    models: Sequence[str],
    sizes: Sequence[int] = SIZES,
    make_views: MakeViews = default_check,
    workers: int = WORKERS,
    saved: Path | None = None,
) -> list[Level]:
    """The levels for the models at all sizes, model by model.

    :param make_views: makes the views; a function that other processes can import.
    :param saved: a file for each finished result, from which those with the same settings and views are taken.
    """
    names = [view.name for view in default_views()]
    known = {} if saved is None else _read(saved, settings, names)
    wanted = [(model, size) for model in models for size in sizes]
    jobs = [(*key, settings, make_views) for key in wanted if key not in known]
    for _, level in as_finished(measure, jobs, workers, "levels", "level"):
        known[level.model, level.size] = level
        if saved is not None:
            with saved.open("a", encoding="utf-8") as file:
                file.write(json.dumps({**_key(settings, names), "level": asdict(level)}) + "\n")
    return [known[key] for key in wanted]


def _read(saved: Path, settings: Settings, names: Sequence[str]) -> dict[tuple[str, int], Level]:
    """The results in a file that have these settings and views, by model and size."""
    found = {}
    lines = saved.read_text(encoding="utf-8").splitlines() if saved.exists() else []
    for entry in map(json.loads, lines):
        if {name: entry[name] for name in ("settings", "views")} == _key(settings, names):
            level = Level(entry["level"]["model"], entry["level"]["size"], WildRates(**entry["level"]["rates"]))
            found[level.model, level.size] = level
    return found


def _key(settings: Settings, names: Sequence[str]) -> dict[str, Any]:
    """What a saved result depends on, as it is read from a file."""
    key: dict[str, Any] = json.loads(json.dumps({"settings": asdict(settings), "views": names}))
    return key


def page(levels: Sequence[Level], settings: Settings) -> str:
    """The result in Markdown."""
    lowest, highest = band(settings.runs)
    names = list(levels[0].rates.rejected)
    sizes = " ".join(str(size) for size in dict.fromkeys(level.size for level in levels))
    high = {name: sum(level.rates.rejected[name] > highest for level in levels) for name in names}
    head = ["model", "n", *names, "left out", "refused"]
    total = ["**too high**", "", *(f"**{high[name]}**" for name in names), "", ""]
    return f"""# Levels of the wild bootstrap

How often the wild bootstrap with {settings.draws} draws rejects a true model at level {LEVEL}, with \
{settings.runs} data sets each.
Written by `python -m benchmarks.levels --runs {settings.runs} --draws {settings.draws} --seed {settings.seed} \
--sizes {sizes}{_chosen(levels)}{_only(settings)}`.

`benchmarks/true_models.py` defines the models.{_missing(levels)}
The 99.9 % binomial band of {settings.runs} runs is {lowest:.3f} to {highest:.3f}. Rates above it are bold.
If the check leaves a view out or raises an error, this counts as no rejection. The last two columns have the shares of
such checks.

{table(head, [*(_row(level, highest) for level in levels), total])}

The level of the whole check is at most that of the band in {len(levels) - high[WHOLE]} of {len(levels)} rows.
{_reasons(levels)}"""


def _chosen(levels: Sequence[Level]) -> str:
    """The option that names the models, if they are not all."""
    names = list(dict.fromkeys(level.model for level in levels))
    return "" if len(names) == len(true_models()) else f" --models {' '.join(map(repr, names))}"


def _only(settings: Settings) -> str:
    """The option that names the views, if they are not all."""
    return f" --views {' '.join(settings.views)}" if settings.views else ""


def _missing(levels: Sequence[Level]) -> str:
    """A sentence that names the models that were not measured."""
    missing = [name for name in true_models() if all(level.model != name for level in levels)]
    return f" Not measured here: {'; '.join(missing)}." if missing else ""


def _row(level: Level, highest: float) -> list[str]:
    rates = level.rates
    cells = [f"**{rate:.3f}**" if rate > highest else f"{rate:.3f}" for rate in rates.rejected.values()]
    left_out = ", ".join(f"{name} {share:.0%}" for name, share in rates.left_out.items() if share)
    refused = f"{rates.refused:.0%}" if rates.refused else ""
    return [level.model, str(level.size), *cells, left_out, refused]


def _reasons(levels: Sequence[Level]) -> str:
    reasons = [f"- {level.model}, n = {level.size}: {level.rates.reason}" for level in levels if level.rates.reason]
    return (
        "\n".join(["", "Why checks were refused, the first message of each row:", "", *reasons, ""]) if reasons else ""
    )


def main() -> None:
    names = list(true_models())
    parser = argparse.ArgumentParser(prog="python -m benchmarks.levels", description="levels of the wild bootstrap")
    parser.add_argument("--runs", type=int, default=Settings.runs, help="data sets of each model and size")
    parser.add_argument("--draws", type=int, default=Settings.draws, help="null draws of each check")
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--models", nargs="+", default=names, choices=names, metavar="MODEL", help="some of the models")
    views = [view.name for view in default_views()]
    parser.add_argument("--views", nargs="+", default=[], choices=views, metavar="VIEW", help="some of the views")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of sequences")
    parser.add_argument("--workers", type=int, default=WORKERS, help="processes")
    parser.add_argument("--saved", type=Path, help="keep finished results in this file and go on from there")
    parser.add_argument("--output", type=Path, default=_PAGE, help="the page to write")
    arguments = parser.parse_args()
    settings = Settings(arguments.runs, arguments.draws, arguments.seed, tuple(arguments.views))
    levels = measure_all(settings, arguments.models, arguments.sizes, workers=arguments.workers, saved=arguments.saved)
    text = page(levels, settings)
    arguments.output.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()

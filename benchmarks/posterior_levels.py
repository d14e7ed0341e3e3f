# SPDX-License-Identifier: Apache-2.0
"""How often checks after an inference reject true and wrong models: ``python -m benchmarks.posterior_levels``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast
from unittest import mock

import torch
from torch import Tensor

from benchmarks.posterior_cases import STOP, Case, KnownPosterior, cases, second_order, typical
from benchmarks.processes import as_finished
from benchmarks.rejections import LEVEL, WHOLE, band, seeded, table
from pyro_ksd.common.draw_counts import draws_in_all
from pyro_ksd.common.random_numbers import drawn_seed
from pyro_ksd.edits import zs
from pyro_ksd.fit_tests import posterior_predictive, predictive
from pyro_ksd.fit_tests.held_out import compare_held_out
from pyro_ksd.fit_tests.held_out_decision import split_predictive
from pyro_ksd.sequences import Sequences
from pyro_ksd.sequences.splitting import fold_rows
from pyro_ksd.stein import View, default_views

if TYPE_CHECKING:
    from pyro_ksd.models.posterior.posterior_models import PosteriorModels

VIEWS = ("content-2", "content-3")
EDITED = 2  # places at the end of a sequence, which are enough here
_PAGE = Path(__file__).parents[1] / "docs" / "posterior_levels.md"
_BLOCK = 20  # runs of one job

Source = Literal["prior", "truth", "fault"]
"""Where data come from: a model that is drawn from the prior for each data set, one true model, or a wrong one."""


@dataclass(frozen=True)
class Settings:
    """How much is computed.

    :param runs: data sets of each model.
    :param size: sequences of each of them.
    :param folds: of the divided check.
    :param seed: of all random numbers.
    """

    runs: int
    size: int = 30
    folds: int = 5
    seed: int = 0


Found = dict[str, dict[str, float]]
"""p-values by kind of check, and by view; that of all views together is the last one."""


def run(case: Case, source: Source, settings: Settings, seed: int) -> Found:
    """The p-values of all kinds of checks for one data set."""
    torch.manual_seed(seed)
    data = second_order().draw(settings.size) if source == "fault" else _data(case, source, settings.size)
    folds = fold_rows(settings.size, settings.folds, seed=seed)
    half = torch.arange(settings.size // 2, settings.size)
    seen = torch.stack([_without(settings.size, rows) for rows in (torch.arange(0), half, *folds)])
    draws = case.posteriors(data, seen, draws_in_all(case.replicates))
    whole, other_half, *others = [cast("PosteriorModels", KnownPosterior(case, values)) for values in draws]
    with mock.patch.object(predictive, "_LOCALIZED", 1):  # only p-values are needed
        ppc = posterior_predictive(whole.of_draws(slice(case.replicates)), data, _views(), seed=seed)
    return {
        "posterior predictive": _named(ppc.p_value, ppc.p_value_overall),
        "split predictive": _held_out([other_half], data, [half], seed),
        "divided predictive": _held_out(others, data, folds, seed),
    }


def _data(case: Case, source: Source, size: int) -> Sequences:
    values = case.prior() if source == "prior" else typical(case)
    return case.drawn({name: value[None] for name, value in values.items()}, size)


def _without(size: int, rows: Tensor) -> Tensor:
    return torch.ones(size, dtype=torch.bool).index_fill_(0, rows, False)


def _held_out(
    posteriors: Sequence[PosteriorModels], data: Sequences, rows: Sequence[Tensor], seed: int
) -> dict[str, float]:
    """The p-values of a check of some rows of the data, each part of them with its posterior."""
    generator = torch.Generator().manual_seed(seed)
    parts = [
        compare_held_out(posterior, data[own], _views(), generator, localize=False)
        for posterior, own in zip(posteriors, rows, strict=True)
    ]
    counts = [len(own) for own in rows]
    found = split_predictive(parts, torch.arange(sum(counts)).split(counts), _views())
    return _named(found.p_value, found.p_value_overall)


@cache
def _views() -> list[View]:
    known = {view.name: view for view in default_views(zs(locations=EDITED))}
    return [replace(known[name], weight=1.0) for name in VIEWS]


def _named(each: Tensor, overall: float) -> dict[str, float]:
    return dict(zip((*VIEWS, WHOLE), (*each.tolist(), overall), strict=True))


def measure(name: str, source: Source, block: int, settings: Settings) -> tuple[str, Source, list[Found]]:
    """Some runs of one case, which depend on nothing but the arguments."""
    torch.set_num_threads(1)
    case = cases()[name]
    numbers = range(block, min(block + _BLOCK, settings.runs))
    return name, source, [run(case, source, settings, _seed(settings, name, source, index)) for index in numbers]


def _seed(settings: Settings, name: str, source: Source, index: int) -> int:
    return drawn_seed(seeded(settings.seed, name, source, index))


def measure_all(
    settings: Settings,
    wanted: Sequence[tuple[str, Source]],
    workers: int = 1,
    saved: Path | None = None,
) -> dict[tuple[str, Source], list[Found]]:
    """All runs of some cases.

    :param wanted: the names of cases, and where their data come from.
    :param saved: a file for finished runs, from which those with the same settings are taken.
    """
    found: dict[tuple[str, Source], dict[int, list[Found]]] = {key: {} for key in wanted}
    words = {key: value for key, value in asdict(settings).items() if key != "runs"}
    if saved is not None and saved.exists():
        for entry in map(json.loads, saved.read_text(encoding="utf-8").splitlines()):
            if entry["settings"] == words and (entry["name"], entry["source"]) in found:
                found[entry["name"], entry["source"]][entry["block"]] = entry["found"]
    blocks = range(0, settings.runs, _BLOCK)
    jobs = [(*key, block, settings) for key in wanted for block in blocks if block not in found[key]]
    for index, (name, source, values) in as_finished(measure, jobs, workers, "posterior levels", "block"):
        block = jobs[index][2]
        found[name, source][block] = values
        if saved is not None:
            entry = {"settings": words, "name": name, "source": source, "block": block, "found": values}
            with saved.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
    return {key: [one for block in blocks for one in own[block]][: settings.runs] for key, own in found.items()}


def rates(found: Sequence[Found], kind: str) -> dict[str, float]:
    """How often each view, and all of them together, reject, by name."""
    return {view: sum(one[kind][view] <= LEVEL + 1e-9 for one in found) / len(found) for view in found[0][kind]}


def page(found: Mapping[tuple[str, Source], Sequence[Found]], settings: Settings, command: str) -> str:
    """The result in Markdown."""
    sections = [
        f"""# Levels of checks after an inference

How often checks after an inference reject at level {LEVEL}. Data sets have {settings.size} sequences over three
symbols, with {1 / STOP:.0f} symbols on average. The views are {" and ".join(map("`{}`".format, VIEWS))}.
Edits are at the last {EDITED} places. For the split check, half of the data is put aside; the divided check has
{settings.folds} folds.

`benchmarks/posterior_cases.py` states the models: a Markov chain with Dirichlet priors, whose posterior is known, and a
hidden Markov model with two states, whose posterior is drawn by Gibbs samplers.
{_replicates()}.

This command has written the page:

```text
{command}
```

The median is that of the p-values of the whole check. Where a check is calibrated, it is near 0.5. Rates of true models
outside of the 99.9 % binomial band are bold.
"""
    ]
    for source, (title, words) in _TITLES.items():
        runs = {name: values for (name, its), values in found.items() if its == source and values}
        if runs:
            sections.append(f"## {title}\n\n{words}\n")
            sections.append(_table(runs, is_true=source != "fault") + "\n")
    return "\n".join(sections)


_TITLES: dict[Source, tuple[str, str]] = {
    "prior": ("True models from the prior", "Each data set has parameters of its own, drawn from the prior."),
    "truth": ("One true model", "All data sets have the same parameters."),
    "fault": (
        "A wrong model",
        "The data come from a chain of order 2, in which the symbol before the last one says which symbol comes next.",
    ),
}


def _replicates() -> str:
    counts = [f"{case.replicates} for the {name}" for name, case in cases().items()]
    return f"Each check, or each fold, has replicated data sets: {' and '.join(counts)}"


def _table(found: Mapping[str, Sequence[Found]], *, is_true: bool) -> str:
    rows = []
    for name, runs in found.items():
        lowest, highest = band(len(runs))
        for kind in runs[0]:
            own = rates(runs, kind).values()
            bold = [is_true and not lowest <= rate <= highest for rate in own]
            cells = [f"**{rate:.3f}**" if marked else f"{rate:.3f}" for rate, marked in zip(own, bold, strict=True)]
            median = torch.tensor([one[kind][WHOLE] for one in runs]).median()
            limits = [f"{lowest:.3f} to {highest:.3f}"] if is_true else []
            rows.append([name, str(len(runs)), kind, *cells, f"{median:.2f}", *limits])
    limits = ["99.9 % band"] if is_true else []
    return table(["model", "data sets", "check", *VIEWS, WHOLE, "median", *limits], rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.posterior_levels", description=__doc__)
    names = list(cases())
    for option, default, words in (
        ("--runs", [400, 400], "from the prior"),
        ("--fixed-runs", [100, 100], "of one true model"),
        ("--faulty-runs", [60, 60], "of the wrong model"),
    ):
        words = f"data sets {words}, for each of: {', '.join(names)}"
        parser.add_argument(option, type=int, nargs=len(names), default=default, help=words)
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--saved", type=Path, help="keep finished runs in this file and go on from there")
    parser.add_argument("--output", type=Path, default=_PAGE, help="the page to write")
    arguments = parser.parse_args()
    counts: dict[Source, list[int]] = {
        "prior": arguments.runs,
        "fault": arguments.faulty_runs,
        "truth": arguments.fixed_runs,
    }
    found: dict[tuple[str, Source], list[Found]] = {}
    for source, of_cases in counts.items():
        for name, runs in zip(names, of_cases, strict=True):
            settings = Settings(runs=runs, seed=arguments.seed)
            found |= measure_all(settings, [(name, source)], arguments.workers, arguments.saved)
    command = "python -m benchmarks.posterior_levels"
    for option, of_cases in zip(("runs", "faulty-runs", "fixed-runs"), counts.values(), strict=True):
        command += f" --{option} {' '.join(map(str, of_cases))}"
    command += f" --seed {arguments.seed}"
    text = page(found, Settings(0, seed=arguments.seed), command)
    arguments.output.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()

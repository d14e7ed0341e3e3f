# SPDX-License-Identifier: Apache-2.0
r"""How often a check would see a fault: simulated checks.

A parametric bootstrap draws its null data sets from the model, whatever the data are. So one *pool* of them is drawn
for each sample size, and every simulated check takes its null draws from the pool, at random and without replacement.
Under a true model the data and any part of the pool are exchangeable, so that every simulated check has exactly the
level, and the power, that it would have with fresh draws. Only the checks are no longer independent of each other: the
pool of :math:`P` draws adds a standard error of about :math:`\sqrt{\alpha (1 - \alpha) / P}` to the level, 0.003 for
:math:`P` = 5,000.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution

from pyro_ksd.checks.check_setup import model_and_views
from pyro_ksd.checks.fit_options import check_options
from pyro_ksd.checks.views_argument import is_read_off_data, views_beside_draws
from pyro_ksd.common.option_checks import check_function, check_number, found
from pyro_ksd.common.progress import progress_bar
from pyro_ksd.common.random_numbers import Seed, drawn_seed, seeded_generator
from pyro_ksd.common.user_warnings import warn_user
from pyro_ksd.edits.neighborhoods import Neighborhood
from pyro_ksd.fit_tests.absolute import Bootstrap, GoodnessOfFit, bootstrap_kind, goodness_of_fit
from pyro_ksd.fit_tests.combination import harmonic_p
from pyro_ksd.fit_tests.null_draws import parametric_bootstrap
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.duck_typing import adapted
from pyro_ksd.models.impossible_sequences import find_impossible
from pyro_ksd.models.programs.call_conventions import generates, is_loop
from pyro_ksd.results.p_values import draws_needed
from pyro_ksd.results.power_table import PowerTable, tabulated
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.balancing import Balancing
from pyro_ksd.stein.views import View

_POOL = 10  # times the null draws of one check
_OVERALL = "overall"
_IMPOSSIBLE = "impossible"

Source = Callable[[int, torch.Generator], Sequences]
"""Draws a data set with the fault: takes its size and a generator."""


def power(
    model: Any,
    fault: Any,
    n: int | Sequence[int],
    *,
    example: Any = None,
    views: str | View | Sequence[str | View] | None = None,
    neighborhood: Neighborhood | None = None,
    balancing: str | Balancing | None = None,
    bootstrap: Bootstrap = "auto",
    num_bootstrap: int = 500,
    level: float = 0.05,
    runs: int = 200,
    seed: Seed = 0,
    progress: bool = True,
) -> PowerTable:
    """The power of a check of ``n`` sequences: how often it sees a given fault of the model.

    For each ``n``, ``runs`` data sets with the fault are drawn and checked as :func:`~pyro_ksd.ksd_check` would check
    them. A check sees the fault if it rejects the model, or if the model gives probability 0 to a sequence.

    :param model: what ``ksd_check`` takes; it must be a model that can be sampled.
    :param fault: what is wrong, either another model that can be sampled, from which the data come; or a function
        ``fault(sequences, generator)`` that takes the :class:`~pyro_ksd.sequences.Sequences` of one data set, drawn
        from the model, and returns the data with the fault: as many sequences over the same symbols, as ``Sequences``
        or anything that :meth:`~pyro_ksd.sequences.Sequences.of` takes.
    :param n: the number of sequences of a data set, or several such numbers.
    :param example: some sequences of the kind that will be checked, for a Pyro program or a torch distribution, which
        do not define their symbols. Convert a program with parameters to a model first:
        ``as_model(program, data, parameters=values)``, from ``pyro_ksd.models``.
    :param views: as for ``ksd_check``.
    :param neighborhood: as for ``ksd_check``.
    :param balancing: as for ``ksd_check``.
    :param bootstrap: as for ``ksd_check``.
    :param num_bootstrap: the number of null draws of each check, the same as for the check that is planned. A warning
        says if it is too small for a fault that only one view sees.
    :param level: a check rejects if its p-value is at most this.
    :param runs: the number of simulated checks for each ``n``.
    :param seed: the seed of all random numbers: an integer, or a ``torch.Generator`` from which it is drawn. The same
        seed gives the same result.
    :param progress: whether to show progress bars.
    :returns: a table with the power of each view and of all together, ``table["power"]``, and the ends of 95 %
        intervals, ``table["lower"]`` and ``table["upper"]``, by view and ``n``. If some data sets have sequences with
        probability 0 under the model, the row ``impossible`` says how often.

    >>> from pyro_ksd.examples import random_walk
    >>> options = {"runs": 50, "num_bootstrap": 99, "progress": False}
    >>> table = power(random_walk(5), random_walk(5, hold=0.1), [5, 40], views="content-2", **options)
    >>> table.attrs["verdict"]
    'visible in 80 % of the checks from about n = ...'
    >>> table["power"].loc["overall"].round(1).to_dict()
    {5: 0.4, 40: 1.0}

    A function damages data that the model drew:

    >>> def cut(sequences, generator):
    ...     return [row[:2] for row in sequences.to_lists()]
    >>> power(random_walk(5), cut, 30, views="length", **options).attrs["verdict"]
    'visible in 100 % of the checks at n = 30'
    """
    num_bootstrap, seed = check_options(num_bootstrap, level, seed, progress, bootstrap=bootstrap)
    runs = check_number("runs", runs, least=1)
    sizes = _sizes(n)
    known = None if example is None else Sequences.of(example)
    drawn = _sampleable("model", model, known)
    source = _source(fault, drawn, known)
    generator = seeded_generator(seed)
    seen = []
    meaning: dict[str, str] = {}
    kinds = {}
    for size in sizes:
        first = source(size, generator)
        setup = model_and_views(drawn, first, views, neighborhood, balancing)
        if not meaning:
            _warn_of_few_draws(num_bootstrap, [view.weight for view in setup.views], level)
        meaning |= {view.name: view.kernel.meaning for view in setup.views}
        asked: Bootstrap = "wild" if bootstrap == "auto" and is_read_off_data(first) else bootstrap
        beside_draws = views_beside_draws(setup.views, views, setup.drawn)
        checks = _Checks(setup.model, setup.views, beside_draws, asked, num_bootstrap, level, generator, progress)
        counts: Counter[str] = Counter()
        for run in progress_bar(range(runs), desc=f"checks of {size:,}", unit="check", show=progress):
            counts.update(checks.seeing(first if run == 0 else source(size, generator)))
        seen.append(counts)
        kinds[size] = checks.usual_kind
    names = [*meaning, *([_IMPOSSIBLE] if any(counts[_IMPOSSIBLE] for counts in seen) else []), _OVERALL]
    meaning |= {_IMPOSSIBLE: "sequences of probability 0", _OVERALL: "all of the above together"}
    by_view = {name: [counts[name] for counts in seen] for name in names}
    table = tabulated(by_view, runs, {name: meaning[name] for name in names}, kinds, level)
    table.attrs["seed"] = seed
    return table


def _warn_of_few_draws(num_bootstrap: int, weights: Sequence[float], level: float) -> None:
    """Warns if checks with so few null draws cannot find a fault that only one view sees, however large it is."""
    needed = draws_needed(weights, level)
    if num_bootstrap < needed:
        warn_user(
            f"num_bootstrap: {num_bootstrap} null draws are too few for a fault that only one view sees: the p-value "
            f"of all views together may stay above the level {level:g}, so that the power is low; take "
            f"num_bootstrap={needed} or more, as for the check itself"
        )


@dataclass(frozen=True, eq=False)
class _Checks:
    """The checks of data sets of about one size, which share their null draws.

    :param beside_draws: the views where these come from the model.
    """

    model: SequenceModel
    views: Sequence[View]
    beside_draws: Sequence[View]
    bootstrap: Bootstrap
    num_bootstrap: int
    level: float
    generator: torch.Generator
    progress: bool
    kinds: dict[int, str] = field(default_factory=dict)
    pools: dict[int, Tensor] = field(default_factory=dict)

    def seeing(self, data: Sequences) -> list[str]:
        """The views that reject the model on a data set, ``overall`` and ``impossible`` among them."""
        impossible = find_impossible(self.model, data)
        possible = data[impossible.others]
        p_values = self._p_values(possible) if len(possible) > 1 else {}
        rejecting = [name for name, p in p_values.items() if p <= self.level]
        if not len(impossible):
            return rejecting
        return [*(name for name in rejecting if name != _OVERALL), _IMPOSSIBLE, _OVERALL]

    @property
    def usual_kind(self) -> str:
        """Where the null draws of the largest data sets came from."""
        return self.kinds[max(self.kinds)] if self.kinds else self.bootstrap

    def _p_values(self, data: Sequences) -> dict[str, float]:
        size = len(data)
        if size not in self.kinds:
            self.kinds[size] = bootstrap_kind(self.model, data, self.views, self.bootstrap)
        if self.kinds[size] == "wild":
            result = self._fit(data, self.views, "wild", self.num_bootstrap)
            each, overall = result.p_value, result.p_value_overall
        else:
            result = self._fit(data, self.beside_draws, "parametric", 1)
            weights = torch.tensor([view.weight for view in result.views], dtype=torch.double)
            each, together = harmonic_p(result.statistic, self._null(size, result.views), weights)
            overall = float(together)
        names = [view.name for view in result.views]
        return dict(zip([*names, _OVERALL], [*each.tolist(), overall], strict=True))

    def _fit(self, data: Sequences, views: Sequence[View], kind: Bootstrap, num_bootstrap: int) -> GoodnessOfFit:
        with warnings.catch_warnings():
            # One check would say so once; what its views miss shows in the table.
            warnings.filterwarnings("ignore", "the model hardly ever allows", UserWarning)
            seed = drawn_seed(self.generator)
            options: dict[str, Any] = {"bootstrap": kind, "num_bootstrap": num_bootstrap, "seed": seed}
            return goodness_of_fit(self.model, data, views, **options)

    def _null(self, size: int, seen_by: Sequence[View]) -> Tensor:
        """Null draws of one check by some views, out of the pool for data sets of its size; ``[B, V]``."""
        if size not in self.pools:
            count = _POOL * self.num_bootstrap
            views = self.beside_draws
            null = parametric_bootstrap(self.model, size, views, count, self.generator, progress=self.progress)
            self.pools[size] = null.statistic
        rows = torch.randperm(len(self.pools[size]), generator=self.generator)[: self.num_bootstrap]
        return self.pools[size][rows][:, [self.beside_draws.index(view) for view in seen_by]]


def _sizes(n: Any) -> list[int]:
    """The sample sizes, ascending."""
    several = [n] if isinstance(n, int) or not isinstance(n, Sequence) else list(n)
    if not several:
        raise ValueError("n: expected at least one sample size, found none; pass n=50, or n=[50, 100, 200]")
    return sorted({check_number("n", size, least=2) for size in several})


def _sampleable(name: str, model: Any, example: Sequences | None) -> SequenceModel:
    """A model that can be sampled, made from what the user passes."""
    model = adapted(model)
    if example is not None:
        if example.covariates is not None:
            raise ValueError("example: expected sequences without covariates, found some; leave them out")
        model = as_model(model, example)
    if not isinstance(model, SequenceModel):
        raise ValueError(
            f"{name}: expected a model that states its symbols, found {found(model)}; pass some sequences of the kind "
            "that will be checked, example=data"
        )
    if not model.can_draw:
        raise ValueError(
            f"{name}: expected one that can be sampled, found {model.name}, which cannot; let a program draw sequences "
            "where it is given num_sequences=, or add a sampler: with_sampler(model, sampler)"
        )
    return model


def _source(fault: Any, model: SequenceModel, example: Sequences | None) -> Source:
    """What draws data sets with the fault."""
    symbols = model.alphabet_size if example is None else example.alphabet
    fault = adapted(fault)
    if isinstance(fault, SequenceModel | Distribution) or _is_program(fault):
        wrong = _sampleable("fault", fault, example)
        if wrong.alphabet_size != model.alphabet_size:
            raise ValueError(
                f"fault: expected a model of the same {model.alphabet_size} symbols, found one of {wrong.alphabet_size}"
            )
        return lambda size, generator: wrong.draw(size, generator).over(symbols)
    check_function("fault", fault, "sequences", "generator")

    def damaged(size: int, generator: torch.Generator) -> Sequences:
        made = fault(model.draw(size, generator).over(symbols), generator)
        data = made if isinstance(made, Sequences) else Sequences.of(made, symbols)
        if len(data) != size or data.alphabet_size != model.alphabet_size:
            raise ValueError(
                f"fault: expected {size} sequences over {model.alphabet_size} symbols, as many as it was passed, found "
                f"{len(data)} over {data.alphabet_size}"
            )
        return data

    return damaged


def _is_program(fault: Any) -> bool:
    """Whether a function is a Pyro program that draws sequences, rather than one that damages them."""
    return callable(fault) and not isinstance(fault, type) and (is_loop(fault) or generates(fault))

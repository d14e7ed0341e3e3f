# SPDX-License-Identifier: Apache-2.0
"""The test of fit for partitioned data: sums over all parts, and a second visit of the parts to localize the misfit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import torch
from torch import Tensor

from pyro_ksd.common.checkpoints import Checkpoint, versions
from pyro_ksd.common.part_runs import TreeSum, run_and_add
from pyro_ksd.common.progress import progress_bar
from pyro_ksd.common.random_numbers import Seed, as_seed, seeded_generator
from pyro_ksd.edits.counts import Count, count_values
from pyro_ksd.edits.weighted_edits import even_rows, num_in_chunks
from pyro_ksd.fit_tests.absolute import SAMPLED_CHUNKS, GoodnessOfFit, fingerprint, lacking
from pyro_ksd.fit_tests.combination import harmonic_p
from pyro_ksd.fit_tests.count_rates import CountTotals
from pyro_ksd.fit_tests.fault_sizes import outstanding
from pyro_ksd.fit_tests.informative import informative_views, recurring_views
from pyro_ksd.fit_tests.localization import Localization, PartLocalization, localize_part, top_features
from pyro_ksd.fit_tests.null_draws import draws_in_turn
from pyro_ksd.fit_tests.statistics import check_sample_size, u_statistic
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.part_survey import InSession, PossiblePart, Survey
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.part_sums import check_summable, run_in_threads, sum_parts
from pyro_ksd.stein.signs import Signs
from pyro_ksd.stein.summation import SteinState, Summed
from pyro_ksd.stein.sums import SteinSums
from pyro_ksd.stein.views import View
from pyro_ksd.stein.visits import Visits


def partitioned_goodness_of_fit(
    model: SequenceModel,
    survey: Survey,
    views: Sequence[View],
    some: Sequences,
    *,
    num_bootstrap: int = 500,
    seed: Seed = 0,
    checkpoint: Checkpoint | None = None,
    progress: bool = False,
) -> GoodnessOfFit:
    """Tests by the wild bootstrap whether partitioned data could have come from the model.

    The statistics are those of :func:`~pyro_ksd.fit_tests.goodness_of_fit` of all data in memory, but for rounding, and
    the p-values are the same.

    :param survey: of the data under the model.
    :param some: sequences of the data that the model allows, which show whether n-grams recur.

    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.models.part_survey import surveyed
    >>> from pyro_ksd.sequences import PartitionedSequences
    >>> from pyro_ksd.stein import default_views
    >>> data = PartitionedSequences.of([["aabb", "bbccc"], ["caa", "abbc"]], "abc")
    >>> walk = random_walk(3)
    >>> found = partitioned_goodness_of_fit(walk, surveyed(walk, data), default_views(), data.load(), num_bootstrap=9)
    >>> found.statistic.shape, found.num_sequences
    (torch.Size([10]), 4)
    """
    size = survey.num_possible
    check_sample_size(size)
    seed = as_seed(seed)
    views = [views[index] for index in recurring_views(views, some)]
    check_summable(model, views, some)
    started = perf_counter()
    signs = Signs(seed, num_bootstrap)
    if checkpoint is not None:
        checkpoint.begin(
            {
                **versions(),
                "data": survey.digest,
                "parts": ", ".join(str(part.num_rows) for part in survey.data.parts),
                "views": ", ".join(view.name for view in views),
                "model or views": fingerprint(Visits(model, some, views, kept_bytes=0), None),
                "bootstrap": "wild",
                "num_bootstrap": str(num_bootstrap),
                "seed": str(seed),
            }
        )
    summed = sum_parts(model, survey.parts(), views, signs, checkpoint=checkpoint, progress=progress)
    first = next(summed)
    kept = informative_views(views, first.rates, size)
    views = [views[index] for index in kept]
    states = _of_views(first, kept).under(0)
    observed = torch.stack([u_statistic(own) for own in states])
    assembled = perf_counter()
    sample = _sample(model, survey, views)
    missing = lacking(sample, _of_views(first, kept), observed, signs, seeded_generator(seed))
    found = (_of_views(own, kept) for own in (first, *summed))
    null = draws_in_turn(views, found, signs, missing)
    weights = torch.tensor([view.weight for view in views], dtype=torch.double)
    each, overall = harmonic_p(observed, null.statistic, weights)
    return GoodnessOfFit(
        views=tuple(views),
        statistic=observed,
        null=null,
        p_value=each,
        p_value_overall=float(overall),
        kind="wild",
        visits=None,
        sample=sample,
        states=tuple(own.without_signs() if isinstance(own, SteinSums) else own for own in states),
        verified_form=None,
        seconds={"kernels": assembled - started, "bootstrap": perf_counter() - assembled},
    )


def _of_views(found: Summed, kept: Sequence[int]) -> Summed:
    return replace(found, of_views=[found.of_views[index] for index in kept])


def _sample(model: SequenceModel, survey: Survey, views: Sequence[View]) -> Visits:
    """Visits of possible sequences at even distances, the same ones however the data are cut into parts."""
    around = {view.operator.neighborhood for view in views}
    size = survey.num_possible
    alphabet = survey.data.alphabet
    num_symbols = alphabet if isinstance(alphabet, int) else len(alphabet)
    count = num_in_chunks(around, survey.lengths, num_symbols, SAMPLED_CHUNKS)
    return Visits(model, survey.data.take(survey.rows(even_rows(size, count))).narrowed(), views)


@dataclass(frozen=True, eq=False)
class _PartPlaces:
    """Where the misfit sits in a part of the data, for each view, and the totals of what its features count."""

    places: list[PartLocalization]
    totals: list[CountTotals]

    def __add__(self, other: _PartPlaces) -> _PartPlaces:
        return _PartPlaces(
            [one + more for one, more in zip(self.places, other.places, strict=True)],
            [one + more for one, more in zip(self.totals, other.totals, strict=True)],
        )


@dataclass(frozen=True, eq=False)
class _LocalizePart:
    """Localizes the misfit in one part."""

    model: SequenceModel
    views: Sequence[View]
    states: Sequence[SteinState]
    extreme: Tensor
    num_sequences: int
    counts: list[list[Count]]

    def __call__(self, part: PossiblePart) -> _PartPlaces:
        sequences = part.load()
        visits = Visits(self.model, sequences, self.views, kept_bytes=0, first_row=part.first_row)
        places = localize_part(visits, self.states, self.extreme, self.num_sequences)
        none = torch.zeros(len(sequences), 0, dtype=torch.double)
        values = [count_values(own, sequences) if own else none for own in self.counts]
        return _PartPlaces(places, [CountTotals.of(own) for own in values])


def localize_parts(
    result: GoodnessOfFit, survey: Survey, *, level: float = 0.05, progress: bool = False
) -> tuple[list[Localization], list[CountTotals]]:
    """Where the misfit sits, for each view of a test of partitioned data.

    :param survey: of the data under the model.
    :param level: the p-value up to which the model is rejected, and a feature stands out.
    :returns: the places, and the totals over all sequences of what the features count that stand out.
    """
    model = result.sample.model
    if not isinstance(model, SequenceModel):
        raise ValueError("result: expected a test of one model")
    parts = survey.parts()
    size = result.sample.sequences.alphabet_size
    draws = result.null.extreme.unbind(1)
    features = [top_features(*own, size) for own in zip(result.views, result.states, draws, strict=True)]
    counts = [own.counts for own in outstanding(result, features, level)]
    task = _LocalizePart(model, result.views, result.states, result.null.extreme, result.num_sequences, counts)
    tree = TreeSum()
    with progress_bar(total=len(parts), desc="localization", unit="parts", show=progress) as bar:
        in_threads = run_in_threads(model, result.views)
        for done in run_and_add(InSession.of(task, model), parts, tree, name="model", in_threads=in_threads):
            bar.update(done)
    total: _PartPlaces = tree.value()
    places = [
        Localization(contribution=None, shown=own.shown, edits=own.edits, features=known, pushes=own.pushes)
        for own, known in zip(total.places, features, strict=True)
    ]
    return places, total.totals

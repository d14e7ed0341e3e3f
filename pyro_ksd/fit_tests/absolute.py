# SPDX-License-Identifier: Apache-2.0
"""The test of fit: statistics, null draws and p-values of several views, in tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Literal

import torch
from torch import Tensor

from pyro_ksd.common.checkpoints import Checkpoint, digest, versions
from pyro_ksd.common.chunk_sizes import PAIR_BYTES
from pyro_ksd.common.option_checks import check_flag, check_number
from pyro_ksd.common.random_numbers import Seed, as_seed, seeded_generator
from pyro_ksd.edits.weighted_edits import edit_bounds
from pyro_ksd.fit_tests.combination import harmonic_p
from pyro_ksd.fit_tests.informative import informative_views, recurring_views
from pyro_ksd.fit_tests.lookahead import FEW_CHUNKS, missing_rows
from pyro_ksd.fit_tests.null_draws import (
    NullDraws,
    parametric_bootstrap,
    refitted_bootstrap,
    signed_draws,
    wild_bootstrap,
)
from pyro_ksd.fit_tests.sampler_agreement import check_null_draws
from pyro_ksd.fit_tests.statistics import check_sample_size, p_value, u_statistic
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.duck_typing import required_model
from pyro_ksd.models.impossible_sequences import check_possible
from pyro_ksd.models.wrappers.verified_stand_in import DisagreementError, Form, VerifiedStandIn, with_stand_in
from pyro_ksd.sequences.argument_checks import check_sequences
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.signs import Signs
from pyro_ksd.stein.summation import SteinState, Summed, sum_views
from pyro_ksd.stein.sums import SteinSums
from pyro_ksd.stein.views import View, check_views
from pyro_ksd.stein.visits import Visits

SMALL_SAMPLE = 100
"""With fewer sequences than this, null draws come from the model where it can be sampled."""

FEW_EDITS = 20_000
"""The same holds for data with at most so many edits, or, if the model scores each edited sequence as a whole, with so
many symbols in them: 500 null draws take seconds. For larger data the wild bootstrap costs far less, keeps its level,
and has about the same power."""

SAMPLED_CHUNKS = 100
"""Of large data, so many chunks of edits around a sample of the sequences, about 13 million, are enough to estimate the
sizes of faults, and fit into memory."""

_DOUBTFUL = 0.2
"""Views with a larger p-value of the wild bootstrap need no look at what the data lack, which would only raise it."""

Bootstrap = Literal["auto", "parametric", "wild"]
"""Where null draws are to come from."""

Kind = Literal["parametric", "wild", "refit"]
"""What a p-value is: how its null draws were made."""


@dataclass(frozen=True, eq=False)
class GoodnessOfFit:
    """What a test of fit found.

    :ivar views: the ``V`` views.
    :ivar statistic: double ``[V]``, the U-statistics.
    :ivar null: their null draws, ``[B, V]``.
    :ivar p_value: double ``[V]``, the p-value of each view by itself.
    :ivar p_value_overall: the p-value of all views together.
    :ivar kind: how the null draws were made.
    :ivar visits: of the data, to look again at their edits and features; ``None`` if they are not all in memory.
    :ivar sample: visits of some of the data at even distances, of all of them if they are not large.
    :ivar states: what is known of each view: the sums of its features, or its Stein kernel matrix.
    :ivar seconds: the time that each stage took.
    :ivar verified_form: that of the table or automaton that stood in for the model in the statistics of null draws,
        ``None`` if none did; see ``models/wrappers/verified_stand_in``.
    """

    views: tuple[View, ...]
    statistic: Tensor
    null: NullDraws
    p_value: Tensor
    p_value_overall: float
    kind: Kind
    visits: Visits | None
    sample: Visits
    states: tuple[SteinState, ...]
    seconds: Mapping[str, float]
    verified_form: Form | None

    @property
    def num_sequences(self) -> int:
        """The number of sequences of the test."""
        return len(self.states[0])

    def visits_of_all(self, purpose: str) -> Visits:
        """The visits of the data.

        :param purpose: what they are needed for.
        :raises ValueError: if the data are not all in memory.
        """
        if self.visits is None:
            raise ValueError(f"{purpose}: expected a test of data in memory, found one of partitioned data")
        return self.visits


def goodness_of_fit(
    model: SequenceModel,
    sequences: Sequences,
    views: Sequence[View],
    *,
    bootstrap: Bootstrap = "auto",
    refit: Callable[[Sequences], SequenceModel] | None = None,
    log_joint: Tensor | None = None,
    num_bootstrap: int = 500,
    verified_stand_in: bool = False,
    seed: Seed = 0,
    checkpoint: Checkpoint | None = None,
    max_bytes: int = PAIR_BYTES,
    progress: bool = False,
) -> GoodnessOfFit:
    """Tests whether the sequences could have come from the model.

    :param views: what to look at; one view alone gives the paper's test.
    :param bootstrap: ``"parametric"`` draws data sets from the model, ``"wild"`` flips the signs of the sequences'
        contributions, ``"auto"`` is parametric where the model can be sampled and the data are small,
        fewer than 100 sequences or at most 20,000 edits, unless the model scores one sequence at a time.
    :param refit: for a model that was fitted to the sequences: fits it to a data set. The null draws are then those of
        :func:`~pyro_ksd.fit_tests.refitted_bootstrap`.
    :param log_joint: ``[N]``, the log-joints of the sequences, if they are known already.
    :param num_bootstrap: the number of null draws; p-values are multiples of ``1 / (num_bootstrap + 1)``.
    :param verified_stand_in: whether a table or automaton may stand in for the model in the statistics of data sets
        that are drawn from it, see ``models/wrappers/verified_stand_in``.
    :param seed: of all random numbers; the same seed gives the same result.
    :param checkpoint: where finished null draws are kept, so that the same call can go on from there.
    :param max_bytes: the memory for a block of the kernel matrix of kernels without features.

    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.stein import default_views
    >>> data = Sequences.of(["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"])
    >>> found = goodness_of_fit(random_walk(3), data, default_views(), num_bootstrap=199)
    >>> found.kind, found.p_value_overall < 0.05
    ('parametric', True)
    """
    model = required_model(model)
    check_sequences("sequences", sequences)
    check_sample_size(len(sequences))
    check_views(views)
    if len({view.name for view in views}) < len(views):
        raise ValueError(f"views: expected distinct names, found {[view.name for view in views]}")
    check_number("num_bootstrap", num_bootstrap, least=1)
    check_flag("verified_stand_in", verified_stand_in)
    seed = as_seed(seed)
    form: Form | None = None
    check_possible(model, sequences, log_joint)
    kind = bootstrap_kind(model, sequences, views, bootstrap, refitted=refit is not None)
    if kind == "wild":
        views = [views[index] for index in recurring_views(views, sequences)]
    started = perf_counter()
    visits = Visits(model, sequences, views)
    signs = Signs(seed, num_bootstrap if kind == "wild" else 0)
    if checkpoint is not None:
        checkpoint.begin(
            {
                **versions(),
                "data": digest(sequences.tokens, sequences.lengths),
                "views": ", ".join(view.name for view in views),
                "model or views": fingerprint(visits, log_joint),
                "bootstrap": kind,
                "num_bootstrap": str(num_bootstrap),
                "seed": str(seed),
            }
        )
    found = sum_views(visits, signs, max_bytes, checkpoint=checkpoint, progress=progress)
    kept = informative_views(views, found.rates, len(sequences))
    views = [views[index] for index in kept]
    visits = visits.seen_by(views)
    sample = visits.thinned(SAMPLED_CHUNKS)
    states = [found.under(0)[index] for index in kept]
    observed = torch.stack([u_statistic(own) for own in states])
    assembled = perf_counter()
    model_seconds = visits.model_seconds
    generator = seeded_generator(seed)
    if kind == "wild":
        first = replace(found, of_views=[[own] for own in states])
        null = _wild_draws(visits, sample, first, observed, signs, generator, max_bytes, checkpoint, progress)
        states = [own.without_signs() if isinstance(own, SteinSums) else own for own in states]
    else:
        options: dict[str, Any] = {
            "covariates": sequences.covariates,
            "max_bytes": max_bytes,
            "checkpoint": checkpoint,
            "progress": progress,
        }
        if refit is None:
            verified = with_stand_in(model, sequences) if verified_stand_in else None
            null, form = _parametric_draws(model, verified, len(sequences), views, num_bootstrap, generator, options)
            check_null_draws(null, views)
        else:
            null = refitted_bootstrap(model, refit, len(sequences), views, num_bootstrap, generator, **options)
    weights = torch.tensor([view.weight for view in views], dtype=torch.double)
    each, overall = harmonic_p(observed, null.statistic, weights)
    return GoodnessOfFit(
        views=tuple(views),
        statistic=observed,
        null=null,
        p_value=each,
        p_value_overall=float(overall),
        kind=kind,
        visits=visits,
        sample=sample,
        states=tuple(states),
        seconds={
            "model": model_seconds,
            "kernels": assembled - started - model_seconds,
            "bootstrap": perf_counter() - assembled,
        },
        verified_form=form,
    )


def _parametric_draws(
    model: SequenceModel,
    verified: tuple[SequenceModel, VerifiedStandIn] | None,
    size: int,
    views: Sequence[View],
    num_draws: int,
    generator: torch.Generator,
    options: Mapping[str, Any],
) -> tuple[NullDraws, Form | None]:
    """The null draws of the parametric bootstrap, and the form of the table or automaton that made them, if any.

    :param verified: the model with what stands in for it, and the latter alone.
    """
    if verified is not None:
        quick, stand_in = verified
        state = generator.get_state()
        try:
            null = parametric_bootstrap(quick, size, views, num_draws, generator, stand_in=stand_in, **options)
        except DisagreementError:
            generator.set_state(state)  # the same data sets again, so that nothing of it is left in the result
        else:
            return null, stand_in.form
    return parametric_bootstrap(model, size, views, num_draws, generator, **options), None


def _wild_draws(
    visits: Visits,
    sample: Visits,
    found: Summed,
    observed: Tensor,
    signs: Signs,
    generator: torch.Generator,
    max_bytes: int,
    checkpoint: Checkpoint | None,
    progress: bool,
) -> NullDraws:
    """The null draws of the wild bootstrap, with a look at what the data lack where the first draws show a misfit."""
    missing = lacking(sample, found, observed, signs, generator)
    return signed_draws(
        visits, signs, found, missing=missing, max_bytes=max_bytes, checkpoint=checkpoint, progress=progress
    )


def lacking(
    sample: Visits, found: Summed, observed: Tensor, signs: Signs, generator: torch.Generator
) -> list[FeatureMatrix | None]:
    """Stein features that stand in for sequences that the data lack, for each view whose first draws show a misfit.

    :param sample: visits of some of the data.
    :param found: the sums over all data with the first draws of signs.
    :param observed: ``[V]``, the statistics.
    :param signs: all of them.
    """
    null = wild_bootstrap(found.under(0), sample.views, found.signs or signs)
    small = (p_value(observed, null.statistic) <= _DOUBTFUL).tolist()
    few = sample.thinned(FEW_CHUNKS)
    return [
        missing_rows(few, view, own.norms, generator, len(own)) if is_small and isinstance(own, SteinSums) else None
        for view, own, is_small in zip(sample.views, found.under(0), small, strict=True)
    ]


def fingerprint(visits: Visits, log_joint: Tensor | None) -> str:
    """A short word for the scores of all sequences, and what the views say of the edits of the first ones."""
    told = [visits.model.log_joint(visits.sequences) if log_joint is None else log_joint]
    for around in visits.neighborhoods:
        for chunk in visits.chunks(around, range(1)):
            told.append(chunk.scored.log_ratio)
            for view in visits.views_of(around):
                told.append(chunk.weighted(view.operator).weights)
                if view.kernel.has_features and (features := chunk.features(view)[0].features) is not None:
                    told.append(features.total)
    return digest(*told)


def bootstrap_kind(
    model: SequenceModel, sequences: Sequences, views: Sequence[View], bootstrap: str, *, refitted: bool = False
) -> Kind:
    """How the null draws of :func:`goodness_of_fit` are made, with the same arguments.

    :param refitted: whether the model is fitted anew to each data set.
    """
    if bootstrap not in ("auto", "parametric", "wild"):
        raise ValueError(f"bootstrap: expected 'auto', 'parametric' or 'wild', found {bootstrap!r}")
    if refitted and bootstrap == "wild":
        raise ValueError("bootstrap: expected 'parametric' with refit=, found 'wild', which draws no data to refit on")
    if not model.can_draw and (refitted or bootstrap == "parametric"):
        draws = "let the program draw sequences where it is given num_sequences=, or pass sampler="
        instead = draws if refitted else f"{draws}, or use bootstrap='wild'"
        raise ValueError(
            f"bootstrap: expected a model with a draw() method for the parametric bootstrap, found "
            f"{model.name} without one; {instead}"
        )
    if refitted:
        return "refit"
    if bootstrap == "parametric" or (bootstrap == "auto" and _suits_parametric(model, sequences, views)):
        return "parametric"
    return "wild"


def _suits_parametric(model: SequenceModel, sequences: Sequences, views: Sequence[View]) -> bool:
    """Whether null draws from the model take no more than seconds."""
    if not model.can_draw or model.is_costly:
        return False
    if len(sequences) < SMALL_SAMPLE:
        return True
    work = torch.ones_like(sequences.lengths) if model.has_quick_ratios else sequences.lengths + 1
    around = {view.operator.neighborhood for view in views}
    return max(int((edit_bounds(one, sequences) * work).sum()) for one in around) <= FEW_EDITS

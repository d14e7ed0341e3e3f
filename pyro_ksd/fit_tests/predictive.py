# SPDX-License-Identifier: Apache-2.0
r"""Posterior predictive checks: the discrepancy of the data and of replicated data, for every posterior draw.

For a draw :math:`\theta` of the posterior, :math:`T(y, \theta)` is the U-statistic of the data :math:`y` under the
model with the parameters :math:`\theta`, and :math:`T(y^{rep}, \theta)` that of data which this model draws. The
posterior predictive p-value is :math:`P(T(y^{rep}, \theta) \ge T(y, \theta) \mid y)` (Gelman, Meng and Stern, 1996). As
the data have been used to find the posterior, it is not uniform under a true model but closer to 1/2: a small value
is evidence against the model; one near a half is weak evidence of a good fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pyro_ksd.common.block_runs import DrawBlock, draw_blocks, run_blocks, spread
from pyro_ksd.common.checkpoints import Checkpoint, digest, versions
from pyro_ksd.common.chunk_sizes import PAIR_BYTES, WEIGHTED_PAIRS
from pyro_ksd.common.lazy_values import computed_once
from pyro_ksd.common.option_checks import check_flag, check_number, found
from pyro_ksd.common.progress import PartOfBar, ProgressBar, progress_bar
from pyro_ksd.common.random_numbers import Seed, as_seed, seeded_generator
from pyro_ksd.common.tensor_checks import check_tensor
from pyro_ksd.edits.weighted_edits import edit_bounds
from pyro_ksd.fit_tests.informative import informative_views
from pyro_ksd.fit_tests.localization import Localization, LocalizationSum, localize_under_each, mean_of_sums
from pyro_ksd.fit_tests.null_draws import NullDraws, null_statistics
from pyro_ksd.fit_tests.replicates import Replicates, check_replicates_differ, counted_symbols
from pyro_ksd.fit_tests.sampler_agreement import check_null_draws
from pyro_ksd.fit_tests.statistics import TIE_TOLERANCE, check_sample_size, u_statistics_under_each
from pyro_ksd.models.impossible_sequences import check_possible
from pyro_ksd.models.part_survey import InSession
from pyro_ksd.models.session_state import Session
from pyro_ksd.models.wrappers.verified_stand_in import DisagreementError, Form, kept_as
from pyro_ksd.sequences.argument_checks import check_sequences
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.signs import Signs
from pyro_ksd.stein.summation import SteinState, Summed, sum_views
from pyro_ksd.stein.views import View, check_views
from pyro_ksd.stein.visits import Visits

if TYPE_CHECKING:
    from pyro_ksd.models.posterior.posterior_models import PosteriorModels

_LOCALIZED = 25  # posterior draws, evenly spaced, over which the places of the misfit are averaged


@dataclass(frozen=True, eq=False)
class PosteriorPredictive:
    """What a posterior predictive check found.

    :ivar views: the ``V`` views.
    :ivar num_chains: the number of chains that the ``D`` posterior draws come from.
    :ivar realized: double ``[D, V]``, the statistics of the data.
    :ivar replicated: the statistics of the replicated data, ``[D, V]``.
    :ivar p_value: double ``[V]``, the posterior predictive p-value of each view.
    :ivar p_value_overall: that of the largest standardized statistic of all views.
    :ivar places: where the misfit of each view sits, a mean over posterior draws.
    :ivar replicates: the replicated data in numbers.
    :ivar log_likelihood: double ``[D, N]``, the log-probability of each sequence of the data under each draw; ``None``
        for a program that is not normalized.
    :ivar seconds: the time that each stage took.
    :ivar verified_form: that of the tables or automata that stood in for the models in the statistics of replicated
        data, see ``models/wrappers/verified_stand_in``; ``None`` if none did without the user's word.
    """

    views: tuple[View, ...]
    num_chains: int
    realized: Tensor
    replicated: NullDraws
    p_value: Tensor
    p_value_overall: float
    places: list[Localization]
    replicates: Replicates
    log_likelihood: Tensor | None
    seconds: dict[str, float]
    verified_form: Form | None


def posterior_predictive(
    models: PosteriorModels,
    sequences: Sequences,
    views: Sequence[View],
    *,
    tokens: bool = False,
    checkpoint: Checkpoint | None = None,
    seed: Seed = 0,
    max_bytes: int = PAIR_BYTES,
    progress: bool = False,
) -> PosteriorPredictive:
    """Compares the data with replicated data under every posterior draw.

    :param tokens: whether to keep the symbols of the replicated data.
    :param checkpoint: where finished draws are kept, so that the same call can go on from there.
    :param seed: of the replicated data.

    >>> import pyro
    >>> from pyro_ksd import MarkovSequence, default_views
    >>> from pyro_ksd.models.posterior.posterior_models import PosteriorModels
    >>> def program(x=None, num_sequences=None):
    ...     stop = pyro.sample("stop", pyro.distributions.Beta(2.0, 2.0))
    ...     chain = MarkovSequence.from_transitions(torch.ones(2) / 2, torch.ones(2, 2) / 2, stop)
    ...     with pyro.plate("sequences", num_sequences if x is None else len(x)):
    ...         return pyro.sample("x", chain, obs=x)
    >>> data = Sequences.of(["ab", "b", "aba", "aa"])
    >>> models = PosteriorModels(program, data, {"stop": torch.tensor([0.3, 0.4, 0.5])})
    >>> posterior_predictive(models, data, default_views()).realized.shape
    torch.Size([3, 10])
    """
    _check_arguments(models, sequences, views)
    seed = as_seed(seed)
    check_number("max_bytes", max_bytes, least=1)
    check_flag("progress", progress)
    check_sample_size(len(sequences))
    try:
        return _predictive(models, sequences, views, tokens, checkpoint, seed, max_bytes, progress)
    except DisagreementError:
        # The same replicated data again, so that nothing of what stood in is left in the result.
        return _predictive(models.without_stand_in(), sequences, views, tokens, checkpoint, seed, max_bytes, progress)


def _predictive(
    models: PosteriorModels,
    sequences: Sequences,
    views: Sequence[View],
    tokens: bool,
    checkpoint: Checkpoint | None,
    seed: int,
    max_bytes: int,
    progress: bool,
) -> PosteriorPredictive:
    """As :func:`posterior_predictive`.

    :raises DisagreementError: if what stands in for the models differs from them somewhere.
    """
    size = len(sequences)
    started = perf_counter()
    if checkpoint is not None:
        checkpoint.begin(
            {
                **versions(),
                "data": digest(sequences.tokens, sequences.lengths),
                "views": ", ".join(view.name for view in views),
                "posterior": digest(*models.values.values()),
                "model": digest(models[0].log_joint(sequences)),
                "replicates": str(tokens),
                "seed": str(seed),
            }
        )
    check_replicates_differ(models, sequences)
    edits = max(int(edit_bounds(view.operator.neighborhood, sequences).sum()) for view in views)
    blocks = draw_blocks(len(models), max(1, WEIGHTED_PAIRS // max(1, edits)), seeded_generator(seed))
    realized: list[Tensor] = []
    replicated: list[NullDraws] = []
    replicates: list[Replicates] = []
    log_joint: list[Tensor] = []
    rates: list[Tensor] = []
    with progress_bar(desc="posterior draws", unit="draw", total=len(models), show=progress) as bar:
        parts = _Parts(models, sequences, views, tokens, max_bytes, bar)
        for compared in run_blocks(
            InSession(parts.compared, Session.now()),
            blocks,
            name="model",
            kept_as=kept_as("posterior draws", models.verified_form),
            what="posterior draws",
            bar=bar,
            checkpoint=checkpoint,
        ):
            realized.append(compared.pop("realized"))
            rates.append(compared.pop("rates"))
            log_joint.append(compared.pop("log_joint"))
            replicated.append(NullDraws(compared.pop("statistic"), compared.pop("extreme")))
            replicates.append(Replicates(**compared))
    rate = dict(zip([view.operator for view in views], torch.cat(rates, 1), strict=True))
    shown = informative_views(views, rate, size)
    views = [views[index] for index in shown]
    null = NullDraws.cat(replicated).of_views(shown)
    check_null_draws(null, views)
    observed = torch.cat(realized)[:, shown]
    finished = perf_counter()
    blocks = [block for block in blocks if parts.localized(block)]
    by_block: list[list[LocalizationSum]] = []
    total = sum(len(parts.localized(block)) for block in blocks)
    with progress_bar(desc="localization", unit="draw", total=total, show=progress) as bar:
        task = InSession(_Localize(parts, views, shown, null.extreme, max_bytes), Session.now())
        for of_block in spread(task, blocks, name="model"):
            by_block.append(of_block)
            bar.update(of_block[0].count)
    places = [mean_of_sums(of_view) for of_view in zip(*by_block, strict=True)]
    return PosteriorPredictive(
        views=tuple(views),
        num_chains=models.num_chains,
        realized=observed,
        replicated=null,
        p_value=predictive_p_value(observed, null.statistic),
        p_value_overall=float(predictive_p_value(*_largest(observed, null.statistic))),
        places=places,
        replicates=Replicates.cat(replicates),
        log_likelihood=torch.cat(log_joint) if models.is_normalized else None,
        seconds={"posterior": finished - started, "localization": perf_counter() - finished},
        verified_form=models.verified_form,
    )


class _Parts:
    """Blocks of posterior draws.

    In the process in which it was made, it keeps what was found under the draws whose places are looked for later.
    Other processes find that again.
    """

    def __init__(
        self,
        models: PosteriorModels,
        sequences: Sequences,
        views: Sequence[View],
        tokens: bool,
        max_bytes: int,
        bar: ProgressBar,
    ) -> None:
        self._models = models
        self._sequences = sequences
        self._views = views
        self._tokens = tokens
        self._max_bytes = max_bytes
        self._bar = bar
        self._localized = set(torch.linspace(0, len(models) - 1, min(_LOCALIZED, len(models))).long().tolist())
        self._known: dict[DrawBlock, _Localized] | None = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_known": None}

    def localized(self, block: DrawBlock) -> list[int]:
        """The draws of a block under which places are looked for."""
        return sorted(self._localized & set(range(block.begin, block.end)))

    def compared(self, block: DrawBlock) -> dict[str, Tensor]:
        """What :meth:`_Part.compared` says of a block."""
        part = self._part(block)
        found = part.compared(block.generator())
        if self._known is not None and self.localized(block):
            self._known[block] = part.localized(self._within(block))
        return found

    def to_localize(self, block: DrawBlock) -> _Localized:
        """What is known under the draws of a block under which places are looked for."""
        if self._known is not None and block in self._known:
            return self._known[block]
        return self._part(block).localized(self._within(block))

    def _within(self, block: DrawBlock) -> list[int]:
        return [draw - block.begin for draw in self.localized(block)]

    def _part(self, block: DrawBlock) -> _Part:
        some = self._models.of_draws(slice(block.begin, block.end))
        steps = PartOfBar(self._bar, block.begin, block.size)
        return _Part(some, self._sequences, self._views, self._tokens, self._max_bytes, steps)


@dataclass(frozen=True, eq=False)
class _Localize:
    """Finds the places of the misfit under some draws of a block.

    :param views: those with something to say, out of the views of the parts.
    :param shown: their numbers.
    :param extreme: see :func:`~pyro_ksd.fit_tests.localization.localize_views`.
    """

    parts: _Parts
    views: Sequence[View]
    shown: Sequence[int]
    extreme: Tensor
    max_bytes: int

    def __call__(self, block: DrawBlock) -> list[LocalizationSum]:
        found = self.parts.to_localize(block)
        states = [[of_draw[index] for index in self.shown] for of_draw in found.states]
        visits = found.visits.seen_by(self.views)
        return localize_under_each(visits, states, [self.extreme] * len(states), self.max_bytes)


@dataclass(frozen=True, eq=False)
class _Part:
    """Some posterior draws, evaluated together; as late as possible, as a checkpoint may know the result."""

    models: PosteriorModels
    sequences: Sequences
    views: Sequence[View]
    tokens: bool
    max_bytes: int
    steps: PartOfBar

    @computed_once
    def log_joint(self) -> Tensor:
        """The log-joint of each sequence of the data under each draw, double ``[K, N]``."""
        return _possible_log_joint(self.models, self.sequences)

    @computed_once
    def visits(self) -> Visits:
        return Visits(self.models.batch, self.sequences, self.views)

    @computed_once
    def summed(self) -> Summed:
        return sum_views(self.visits, Signs(seed=0, num_draws=0), self.max_bytes, outer=self.steps.part(0.0, 0.5))

    def compared(self, generator: torch.Generator) -> dict[str, Tensor]:
        """The statistics of the data, ``[K, V]``, those of replicated data, and the rates, ``[V, K]``; the log-joints
        of the data, and the replicated data in numbers."""
        log_joint = self.log_joint  # which refuses impossible sequences before anything else is computed
        realized = [u_statistics_under_each(states) for states in self.summed.of_views]
        rates = [self.summed.rates[view.operator] for view in self.views]
        size = len(self.sequences)
        replicates = self.models.draw_like(self.sequences, generator)
        models, steps = self.models.stacked(size), self.steps.part(0.5, 1.0)
        null = null_statistics(models, replicates, size, self.views, self.max_bytes, self.models.stand_in, steps)
        numbers = Replicates.of(replicates, len(self.models), counted_symbols(self.sequences), tokens=self.tokens)
        return {
            "realized": torch.stack(realized, 1),
            "rates": torch.stack(rates),
            "log_joint": log_joint,
            **null.parts,
            **numbers.parts,
        }

    def localized(self, draws: Sequence[int]) -> _Localized:
        """What is known under some of the draws; the rest of the memory is freed with this object."""
        summed = self.summed  # which lets the visits know
        return _Localized(self.visits.under_some(draws), [summed.under(draw) for draw in draws])


@dataclass(frozen=True, eq=False)
class _Localized:
    """Some posterior draws under which places are looked for.

    :ivar visits: of the data, under these draws.
    :ivar states: what is known of the views under each of them.
    """

    visits: Visits
    states: list[list[SteinState]]


def _check_arguments(models: PosteriorModels, sequences: Sequences, views: Sequence[View]) -> None:
    if not hasattr(models, "stacked"):
        raise ValueError(
            f"models: expected PosteriorModels(program, data, posterior), found {found(models)}; see ksd_check(..., "
            "posterior=...)"
        )
    check_sequences("sequences", sequences)
    if sequences.alphabet_size != models.alphabet_size:
        raise ValueError(
            f"sequences: expected an alphabet of {models.alphabet_size} symbols, as the models have, found one of "
            f"{sequences.alphabet_size}"
        )
    check_views(views)


def _possible_log_joint(models: PosteriorModels, sequences: Sequences) -> Tensor:
    """The log-joint of every sequence under every draw, double ``[K, N]``, none of which may be impossible.

    :raises ValueError: naming the sequences to which a draw gives no probability.
    """
    log_joint = models.batch.log_joint(sequences)
    possible = (log_joint > -torch.inf).all(1)
    for draw in (~possible).nonzero()[:, 0].tolist():
        check_possible(models[draw], sequences)
    return log_joint


def predictive_p_value(realized: Tensor, replicated: Tensor) -> Tensor:
    r""":math:`(1 + \#\{d : T(y^{rep}_d, \theta_d) \ge T(y, \theta_d)\}) / (D + 1)`, which is never 0; ties count.

    :param realized: ``[D]`` or ``[D, V]``.
    :param replicated: of the same shape.

    >>> predictive_p_value(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.0, 2.0, 1.0])).item()
    0.5
    """
    check_tensor("realized", realized, "D", *(realized.shape[1:] if isinstance(realized, Tensor) else ()))
    check_tensor("replicated", replicated, *realized.shape)
    tolerance = TIE_TOLERANCE * torch.maximum(realized.abs(), replicated.abs()).amax(0)
    return (1 + (replicated >= realized - tolerance).sum(0)).double() / (len(realized) + 1)


def _largest(realized: Tensor, replicated: Tensor) -> tuple[Tensor, Tensor]:
    """The largest statistic of all views for each draw, in units of the spread of the replicated ones; ``[D]`` each."""
    center = replicated.mean(0)
    spread = replicated.std(0, correction=0).clamp(min=torch.finfo(replicated.dtype).tiny)
    return ((realized - center) / spread).amax(1), ((replicated - center) / spread).amax(1)

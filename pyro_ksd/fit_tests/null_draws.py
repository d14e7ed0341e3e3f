# SPDX-License-Identifier: Apache-2.0
"""Null draws of the statistics: how large would they be if the model were right?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from pyro_ksd.common.block_runs import DrawBlock, draw_blocks, run_blocks
from pyro_ksd.common.checkpoints import Checkpoint, digest
from pyro_ksd.common.chunk_sizes import DRAWN_SEQUENCES, PAIR_BYTES, REPLICATED_EDITS, REPLICATES
from pyro_ksd.common.option_checks import check_flag, check_function, check_instance, check_number
from pyro_ksd.common.progress import PartOfBar, progress_bar
from pyro_ksd.common.random_numbers import check_generator, drawn_seed
from pyro_ksd.common.torch_threads import one_torch_thread
from pyro_ksd.edits.weighted_edits import edit_bounds
from pyro_ksd.fit_tests.feature_scores import group_scores, largest_score, scores
from pyro_ksd.fit_tests.statistics import check_sample_size, check_states, signed_u_statistics, u_statistic
from pyro_ksd.kernels.stein_matrices import FeatureMatrix, SteinMatrix
from pyro_ksd.models.base import SequenceModel, draw_data_sets
from pyro_ksd.models.duck_typing import required_model
from pyro_ksd.models.impossible_sequences import check_drawn
from pyro_ksd.models.part_survey import InSession
from pyro_ksd.models.session_state import Session, session_kept
from pyro_ksd.models.wrappers.verified_stand_in import VerifiedStandIn, kept_as
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.covariates import Covariates, check_covariates
from pyro_ksd.stein.assembly import assemble
from pyro_ksd.stein.part_sums import run_in_threads
from pyro_ksd.stein.signs import Signs
from pyro_ksd.stein.summation import SteinState, Summed, sum_views
from pyro_ksd.stein.sums import SteinSums
from pyro_ksd.stein.views import View, check_views
from pyro_ksd.stein.visits import Visits

_MISSING = 2**40  # far beyond any row of the data: the first of the rows that they lack
_FIRST = "first data set"
_DIGITS = 15  # hexadecimal, of a digest: so many fit into a long
_NO_CHANCE = (
    "draw: expected another data set in each call, found the same one again: the model or sampler sets a seed itself, "
    "or has a generator of its own; take all random numbers from the generator that is passed, and leave out "
    "torch.manual_seed, numpy.random.seed and random.seed"
)
_DISTINCT = 10  # sequences of a data set, all of which hardly come again in the same order by chance


@dataclass(frozen=True, eq=False)
class NullDraws:
    """What ``B`` data sets of a true model would give, seen by ``V`` views.

    :ivar statistic: double ``[B, V]``, the statistics.
    :ivar extreme: double ``[B, V]``, the largest ``|z|`` of the view's features, see
        :mod:`pyro_ksd.fit_tests.feature_scores`; NaN for a view whose features are not reported one by one.
    """

    statistic: Tensor
    extreme: Tensor

    @staticmethod
    def cat(parts: Sequence[NullDraws]) -> NullDraws:
        """All draws of the parts."""
        return NullDraws(torch.cat([part.statistic for part in parts]), torch.cat([part.extreme for part in parts]))

    @property
    def parts(self) -> dict[str, Tensor]:
        """The tensors by name, to be kept in a file."""
        return {"statistic": self.statistic, "extreme": self.extreme}

    def of_views(self, indices: Sequence[int]) -> NullDraws:
        """The draws of some of the views."""
        return NullDraws(self.statistic[:, indices], self.extreme[:, indices])


def rademacher(num_draws: int, size: int, generator: torch.Generator) -> Tensor:
    """Independent signs, -1 or 1; double ``[num_draws, size]``. Those of :func:`wild_bootstrap` are of the same kind.

    They keep the level from small samples on, where :func:`multinomial` weights reject a true model too often.

    >>> rademacher(2, 100, torch.Generator().manual_seed(0)).unique().tolist()
    [-1.0, 1.0]
    """
    _check_sizes(num_draws, size, generator)
    signs = torch.randint(0, 2, (num_draws, size), generator=generator)
    return signs.double().mul_(2).sub_(1)


def multinomial(num_draws: int, size: int, generator: torch.Generator) -> Tensor:
    """How often ``size`` draws with replacement meet each of ``size`` items, minus 1; double ``[num_draws, size]``.

    The weights of Baum, Kanagawa and Gretton (2023).

    >>> multinomial(2, 100, torch.Generator().manual_seed(0)).sum(1).tolist()
    [0.0, 0.0]
    """
    _check_sizes(num_draws, size, generator)
    chosen = torch.randint(0, size, (num_draws, size), generator=generator)
    ones = torch.ones(num_draws, size, dtype=torch.double)
    return torch.zeros_like(ones).scatter_add_(1, chosen, ones).sub_(1)


def wild_bootstrap(
    found: Sequence[SteinState],
    views: Sequence[View],
    signs: Signs,
    *,
    missing: Sequence[FeatureMatrix | None] | None = None,
) -> NullDraws:
    r"""Draws :math:`U^* = \frac{1}{n(n-1)} \sum_{i \ne j} \varepsilon_i \varepsilon_j H_{ij}` with random signs.

    Needs no samples from the model; right in the limit of large samples. All views see the same signs.

    :param found: what is known of the views: sums with these signs, or Stein kernel matrices of the same sequences.
    :param missing: for each view, Stein features that stand in for sequences that the data lack by chance, or ``None``;
        see :mod:`pyro_ksd.fit_tests.lookahead`. They get random signs, too.

    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.stein import default_views
    >>> data, views = Sequences.of(["aabb", "bbccc", "caa", "abbc"]), default_views()
    >>> matrices = assemble(random_walk(3), data, views).matrices
    >>> wild_bootstrap(matrices, views, Signs(seed=0, num_draws=50)).statistic.shape
    torch.Size([50, 10])
    """
    check_states("found", found)
    check_views(views)
    check_instance("signs", signs, Signs, "random signs, such as Signs(seed=0, num_draws=500)")
    if len(found) != len(views):
        raise ValueError(f"found: expected one for each of the {len(views)} views, found {len(found)}")
    states = [_summed(own, signs) for own in found]
    unseen = [None] * len(views) if missing is None else missing
    statistic = [
        signed_u_statistics(own, signs, _missing_sums(rows, signs, index))
        for index, (own, rows) in enumerate(zip(states, unseen, strict=True))
    ]
    extreme = [_signed_extremes(*pair, signs.num_draws) for pair in zip(views, states, strict=True)]
    return NullDraws(torch.stack(statistic, 1), torch.stack(extreme, 1))


def signed_draws(
    visits: Visits,
    signs: Signs,
    first: Summed | None = None,
    *,
    missing: Sequence[FeatureMatrix | None] | None = None,
    max_bytes: int = PAIR_BYTES,
    checkpoint: Checkpoint | None = None,
    progress: bool = False,
) -> NullDraws:
    """All draws of :func:`wild_bootstrap` for data of any size.

    The data are visited again for draws whose sums do not fit into memory together with those before them.

    :param first: the sums of the first draws, if they are known already.
    :param missing: as for :func:`wild_bootstrap`.
    :param checkpoint: where the sums of the sequences visited until now are kept, and taken from.

    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.stein import default_views
    >>> visits = Visits(random_walk(3), Sequences.of(["aabb", "bbccc", "caa", "abbc"]), default_views())
    >>> signed_draws(visits, Signs(seed=0, num_draws=50)).statistic.shape
    torch.Size([50, 10])
    """
    return draws_in_turn(visits.views, _in_turn(visits, signs, first, max_bytes, checkpoint, progress), signs, missing)


def draws_in_turn(
    views: Sequence[View], found: Iterable[Summed], signs: Signs, missing: Sequence[FeatureMatrix | None] | None = None
) -> NullDraws:
    """The draws of :func:`wild_bootstrap` from sums with some of the signs after the other.

    :param found: the sums, each with the draws that follow those before it.
    :param signs: all of them.
    :param missing: as for :func:`wild_bootstrap`.
    """
    draws: list[NullDraws] = []
    done = 0
    for own in found:
        formed = own.signs or signs.part(done, signs.num_draws - done)
        draws.append(wild_bootstrap(own.under(0), views, formed, missing=missing))
        done += formed.num_draws
    return NullDraws.cat(draws)


def _in_turn(
    visits: Visits,
    signs: Signs,
    first: Summed | None,
    max_bytes: int,
    checkpoint: Checkpoint | None,
    progress: bool,
) -> Iterator[Summed]:
    done = 0
    while done < signs.num_draws:
        rest = signs.part(done, signs.num_draws - done)
        if first is not None and not done:
            found = first
        else:
            found = sum_views(visits, rest, max_bytes, checkpoint=checkpoint, progress=progress)
        yield found
        done += (found.signs or rest).num_draws


def _summed(found: SteinState, signs: Signs) -> SteinState:
    """The sums of a matrix of features; sums, and matrices without features, as they are."""
    if isinstance(found, FeatureMatrix):
        return SteinSums.of(found, signs.of_rows(0, len(found)))
    return found


def _missing_sums(rows: FeatureMatrix | None, signs: Signs, view: int) -> SteinSums | None:
    """The sums over rows that the data lack, with signs of their own in each view."""
    begin = _MISSING * (view + 1)
    return None if rows is None else SteinSums.of(rows, signs.of_rows(begin, len(rows)))


def _signed_extremes(view: View, found: SteinState, num_draws: int) -> Tensor:
    """The largest ``|z|`` of the features with each draw of signs, ``[B]``."""
    if not view.kernel.feature_kind or not isinstance(found, SteinSums):
        return torch.full((num_draws,), torch.nan, dtype=torch.double)
    return largest_score(found.signed.t(), scores(found)[1])


def parametric_bootstrap(
    model: SequenceModel,
    size: int,
    views: Sequence[View],
    num_draws: int,
    generator: torch.Generator,
    *,
    covariates: Covariates | None = None,
    max_bytes: int = PAIR_BYTES,
    checkpoint: Checkpoint | None = None,
    stand_in: VerifiedStandIn | None = None,
    progress: bool = False,
) -> NullDraws:
    """Draws data sets of ``size`` sequences from the model and computes their statistics.

    The test has the exact level for a model with known parameters, however small the sample.

    :param views: all of them see the same data sets.
    :param covariates: those of the data, for which new sequences are drawn, ``size`` rows; ``None`` if there are none.
    :param max_bytes: see :func:`~pyro_ksd.stein.stein_matrices`.
    :param checkpoint: where finished draws are kept, and taken from.
    :param stand_in: what stands in for the model, see ``models/wrappers/verified_stand_in``; ``None`` if nothing does.
    :raises DisagreementError: if it disagrees with the model.

    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.stein import default_views
    >>> null = parametric_bootstrap(random_walk(3), 4, default_views(), 50, torch.Generator().manual_seed(0))
    >>> null.statistic.shape
    torch.Size([50, 10])
    """
    model = required_model(model)
    _check_draws(size, views, num_draws, generator, covariates, max_bytes, progress)
    task = _DrawnStatistics(model, size, covariates, views, max_bytes, stand_in)
    with progress_bar(total=num_draws, desc="parametric bootstrap", unit="draw", show=progress) as bar:
        found = run_blocks(
            InSession.of(task, model),
            draw_blocks(num_draws, sets_at_once(size), generator),
            name="model",
            kept_as=kept_as("draws", None if stand_in is None else stand_in.form),
            what="null draws",
            bar=bar,
            checkpoint=checkpoint,
            in_threads=run_in_threads(model, views),
        )
        return NullDraws.cat(list(_all_different(found)))


@dataclass(frozen=True, eq=False)
class _DrawnStatistics:
    """Draws the data sets of a block from a model and computes their statistics; see :func:`parametric_bootstrap`."""

    model: SequenceModel
    size: int
    covariates: Covariates | None
    views: Sequence[View]
    max_bytes: int
    stand_in: VerifiedStandIn | None

    def __call__(self, block: DrawBlock) -> dict[str, Tensor]:
        generator = block.generator()
        drawn = draw_data_sets(self.model, block.size, self.size, self.covariates, generator)
        if self.stand_in is not None:
            self.stand_in.begin(drawn_seed(generator))
        null = null_statistics_in_parts(self.model, drawn, self.size, self.views, self.max_bytes, self.stand_in)
        return {**null.parts, _FIRST: _fingerprint(drawn[: self.size])}


def sets_at_once(size: int) -> int:
    """How many data sets of ``size`` sequences are drawn at once.

    It depends on nothing else, as the random numbers of a draw depend on it.

    >>> sets_at_once(50), sets_at_once(4096), sets_at_once(10**6)
    (64, 8, 1)
    """
    return min(REPLICATES, max(1, DRAWN_SEQUENCES // size))


def _parts(replicates: Sequences, size: int, views: Sequence[View]) -> list[slice]:
    """The rows of data sets that are looked at together, so many that their edits are not too many."""
    neighborhoods = {view.operator.neighborhood for view in views}
    edits = torch.stack([edit_bounds(around, replicates) for around in neighborhoods]).amax(0)
    total = 0
    begins = [0]
    for index, own in enumerate(edits.view(-1, size).sum(1).tolist()):
        if total and total + own > REPLICATED_EDITS:
            begins.append(index * size)
            total = 0
        total += own
    return [slice(*pair) for pair in pairwise([*begins, len(replicates)])]


def _fingerprint(drawn: Sequences) -> Tensor:
    """A number for a data set, long ``[1]``; 0 if it has so few distinct sequences that it may come again by chance."""
    sequences = drawn.to_lists()
    if len(set(map(tuple, sequences))) < _DISTINCT:
        return torch.zeros(1, dtype=torch.long)
    return torch.tensor([int(digest(drawn.narrowed().padded(-1))[:_DIGITS], 16)])


def check_different(drawn: Sequences, again: Sequences) -> None:
    """Checks that a data set that was drawn again, with other random numbers, is another one.

    :raises ValueError: if it is the same, although it has enough sequences.

    >>> from pyro_ksd.examples import random_walk
    >>> drawn, again = (random_walk(3).draw(20, torch.Generator().manual_seed(seed)) for seed in range(2))
    >>> check_different(drawn, again)
    >>> check_different(drawn, drawn)
    Traceback (most recent call last):
    ValueError: draw: expected another data set in each call, found the same one again: ...
    """
    first = int(_fingerprint(drawn))
    if first and first == int(_fingerprint(again)):
        raise ValueError(_NO_CHANCE)


def _all_different(blocks: Iterable[dict[str, Tensor]]) -> Iterator[NullDraws]:
    """The draws of each block.

    :raises ValueError: if two of them begin with the same data set, although their random numbers differ.
    """
    firsts: set[int] = set()
    for found in blocks:
        first = int(found.pop(_FIRST))
        if first and first in firsts:
            raise ValueError(_NO_CHANCE)
        firsts.add(first)
        yield NullDraws(**found)


def refitted_bootstrap(
    model: SequenceModel,
    refit: Callable[[Sequences], SequenceModel],
    size: int,
    views: Sequence[View],
    num_draws: int,
    generator: torch.Generator,
    *,
    covariates: Covariates | None = None,
    max_bytes: int = PAIR_BYTES,
    checkpoint: Checkpoint | None = None,
    progress: bool = False,
) -> NullDraws:
    """Draws data sets from the model, fits the model anew to each, and computes their statistics.

    For a model whose parameters were estimated from the data (a composite null). A fitted model follows its data, so
    statistics are smaller than under the model that made the data; only replicates that are treated like the data show
    how much smaller.

    :param refit: fits a model to a data set, in the same way as ``model`` was fitted to the data.
    :param views: all of them see the same data sets.
    :param covariates: those of the data, as for :func:`parametric_bootstrap`.
    :param checkpoint: where finished draws are kept, and taken from.

    >>> from pyro_ksd.models import fit_markov
    >>> from pyro_ksd.stein import default_views
    >>> fitted = fit_markov(Sequences.of(["aabb", "bbccc", "caa", "abbc"]), 1, pseudocount=0.5)
    >>> refit = lambda replicate: fit_markov(replicate, 1, pseudocount=0.5)
    >>> refitted_bootstrap(fitted, refit, 4, default_views(), 10, torch.Generator().manual_seed(0)).statistic.shape
    torch.Size([10, 10])
    """
    model = required_model(model)
    check_function("refit", refit, "sequences")
    _check_draws(size, views, num_draws, generator, covariates, max_bytes, progress)
    task = _RefittedStatistics(model, refit, size, covariates, views, max_bytes)
    with progress_bar(total=num_draws, desc="refitted bootstrap", unit="draw", show=progress) as bar:
        found = run_blocks(
            InSession(task, Session.now()),
            draw_blocks(num_draws, 1, generator),
            name="refit",
            kept_as="refits",
            what="null draws",
            bar=bar,
            checkpoint=checkpoint,
        )
        return NullDraws.cat(list(_all_different(found)))


@dataclass(frozen=True, eq=False)
class _RefittedStatistics:
    """Draws a data set, fits the model to it and computes its statistics; see :func:`refitted_bootstrap`."""

    model: SequenceModel
    refit: Callable[[Sequences], SequenceModel]
    size: int
    covariates: Covariates | None
    views: Sequence[View]
    max_bytes: int

    def __call__(self, block: DrawBlock) -> dict[str, Tensor]:
        replicate = draw_data_sets(self.model, block.size, self.size, self.covariates, block.generator())
        fitted = _refitted(self.refit, replicate)
        views = [view.under(fitted) for view in self.views]
        null = null_statistics(fitted, replicate, self.size, views, self.max_bytes)
        return {**null.parts, _FIRST: _fingerprint(replicate)}


def _refitted(refit: Callable[[Sequences], SequenceModel], replicate: Sequences) -> SequenceModel:
    with session_kept(seed=0):
        fitted = refit(replicate)
    check_instance("refit", fitted, SequenceModel, "a function that gives a model")
    return fitted


def _check_sizes(num_draws: int, size: int, generator: torch.Generator) -> None:
    check_number("num_draws", num_draws, least=1)
    check_number("size", size, least=1)
    check_generator(generator)


def _check_draws(
    size: int,
    views: Sequence[View],
    num_draws: int,
    generator: torch.Generator,
    covariates: Covariates | None,
    max_bytes: int,
    progress: bool,
) -> None:
    _check_sizes(num_draws, size, generator)
    if covariates is not None:
        check_covariates(covariates)
        if len(covariates) != size:
            raise ValueError(f"covariates: expected one row for each of the {size} sequences, found {len(covariates)}")
    check_sample_size(size)
    check_views(views)
    check_number("max_bytes", max_bytes, least=1)
    check_flag("progress", progress)


def null_statistics(
    model: SequenceModel,
    replicates: Sequences,
    size: int,
    views: Sequence[View],
    max_bytes: int,
    stand_in: VerifiedStandIn | None = None,
    outer: PartOfBar | None = None,
) -> NullDraws:
    """The statistics of the data sets of ``size`` sequences each that follow each other in ``replicates``.

    :param stand_in: what stands in for the model, if anything.
    :param outer: of the bar of the work that this is a part of.
    :raises DisagreementError: if it disagrees with the model.
    """
    check_drawn(model, replicates)
    together = [view for view in views if view.kernel.has_features]
    found = _sums_of_groups(Visits(model, replicates, together, kept_bytes=0, group_size=size), size, outer)
    statistic = {view: sums / (size * (size - 1)) for view, (sums, _) in found.items()}
    extreme = {view: largest for view, (_, largest) in found.items()}
    apart = [view for view in views if not view.kernel.has_features]
    if apart:
        each = []
        for begin in range(0, len(replicates), size):
            part = replicates[begin : begin + size].narrowed()
            own = assemble(model.for_rows(begin), part, apart, max_bytes).matrices
            each.append([u_statistic(matrix) for matrix in own])
            if outer is not None and not together:
                outer.reach((begin + size) / len(replicates))
        statistic |= {view: torch.stack(column) for view, column in zip(apart, zip(*each, strict=True), strict=True)}
    if stand_in is not None:
        stand_in.confirm()
    unnamed = torch.full((len(replicates) // size,), torch.nan, dtype=torch.double)
    extremes = [extreme.get(view) for view in views]
    return NullDraws(
        torch.stack([statistic[view] for view in views], 1),
        torch.stack([unnamed if own is None else own for own in extremes], 1),
    )


def null_statistics_in_parts(
    model: SequenceModel,
    replicates: Sequences,
    size: int,
    views: Sequence[View],
    max_bytes: int,
    stand_in: VerifiedStandIn | None = None,
) -> NullDraws:
    """The same as :func:`null_statistics`, for data sets that may be too many to be looked at together."""
    parts = [
        null_statistics(model.for_rows(rows.start), replicates[rows], size, views, max_bytes, stand_in)
        for rows in _parts(replicates, size, views)
    ]
    return NullDraws.cat(parts)


def _sums_of_groups(visits: Visits, size: int, outer: PartOfBar | None) -> dict[View, tuple[Tensor, Tensor | None]]:
    """What :func:`_of_groups` gives for all groups, for each view; only features of whole groups are held."""
    parts: dict[View, list[tuple[Tensor, Tensor | None]]] = {view: [] for view in visits.views}
    total = len(visits.neighborhoods) * len(visits.sequences)
    done = 0
    with one_torch_thread():
        for around in visits.neighborhoods:
            waiting: dict[View, list[SteinMatrix]] = {view: [] for view in visits.views_of(around)}
            for chunk in visits.chunks(around):
                for view, matrices in waiting.items():
                    matrices += chunk.features(view)
                    if (chunk.begin + chunk.count) % size == 0:
                        parts[view].append(_of_groups(view, type(matrices[0]).cat(matrices), size))
                        matrices.clear()
                done += chunk.count
                if outer is not None:
                    outer.reach(done / total)
    return {view: _joined(own) for view, own in parts.items()}


def _joined(parts: Sequence[tuple[Tensor, Tensor | None]]) -> tuple[Tensor, Tensor | None]:
    extremes = [extreme for _, extreme in parts if extreme is not None]
    return torch.cat([sums for sums, _ in parts]), torch.cat(extremes) if extremes else None


def _of_groups(view: View, matrix: SteinMatrix, size: int) -> tuple[Tensor, Tensor | None]:
    """``Σ_{i≠j} H_ij`` in each group of ``size`` consecutive sequences, ``[G]``, and the largest ``|z|`` of features.

    :returns: ``None`` for the latter if the view does not report its features one by one.
    """
    if not isinstance(matrix, FeatureMatrix):
        return matrix.off_diagonal_sums(size), None
    sums: list[Tensor] = []
    extremes: list[Tensor] = []
    for some in matrix.group_sums(size):
        sums.append(some.off_diagonal)
        if view.kernel.feature_kind:
            extremes.append(largest_score(*group_scores(some)))
    return torch.cat(sums), torch.cat(extremes) if extremes else None

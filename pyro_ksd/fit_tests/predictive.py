# SPDX-License-Identifier: Apache-2.0
r"""Posterior predictive checks: the discrepancy of the data and of replicated data, for every posterior draw.

For a draw :math:`\theta` of the posterior, :math:`T(y, \theta)` is the U-statistic of the data :math:`y` under the
model with the parameters :math:`\theta`, and :math:`T(y^{rep}, \theta)` that of data which this model draws. The
posterior predictive p-value is :math:`P(T(y^{rep}, \theta) \ge T(y, \theta) \mid y)` (Gelman, Meng and Stern, 1996). As
the data have been used to find the posterior, it is not uniform under a true model but closer to 1/2: a small value
speaks against the model, a middling one does not say much for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from tqdm.auto import tqdm

from pyro_ksd.common.chunk_sizes import PAIR_BYTES, WEIGHTED_PAIRS
from pyro_ksd.common.option_checks import check_flag, check_number, found
from pyro_ksd.common.random_numbers import Seed, as_seed, seeded_generator
from pyro_ksd.common.tensor_checks import check_tensor
from pyro_ksd.edits.neighborhoods import Neighborhood
from pyro_ksd.edits.weighted_edits import KeptEdits, edit_bounds
from pyro_ksd.fit_tests.informative import informative_views
from pyro_ksd.fit_tests.localization import Localization, localize_views, mean_localization
from pyro_ksd.fit_tests.null_draws import NullDraws, null_statistics
from pyro_ksd.fit_tests.statistics import TIE_TOLERANCE, check_sample_size, u_statistic
from pyro_ksd.kernels.stein_matrices import SteinMatrix
from pyro_ksd.models.impossible_sequences import check_possible
from pyro_ksd.sequences.argument_checks import check_sequences
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.assembly import assemble
from pyro_ksd.stein.operators import Operator
from pyro_ksd.stein.views import View, check_views

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
    :ivar seconds: the time that each stage took.
    """

    views: tuple[View, ...]
    num_chains: int
    realized: Tensor
    replicated: NullDraws
    p_value: Tensor
    p_value_overall: float
    places: list[Localization]
    seconds: dict[str, float]


def posterior_predictive(
    models: PosteriorModels,
    sequences: Sequences,
    views: Sequence[View],
    *,
    seed: Seed = 0,
    max_bytes: int = PAIR_BYTES,
    progress: bool = False,
) -> PosteriorPredictive:
    """Compares the data with replicated data under every posterior draw.

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
    size = len(sequences)
    check_sample_size(size)
    started = perf_counter()
    generator = seeded_generator(seed)
    localized = set(torch.linspace(0, len(models) - 1, min(_LOCALIZED, len(models))).long().tolist())
    realized: list[Tensor] = []
    replicated: list[NullDraws] = []
    kept: list[tuple[dict[Neighborhood, KeptEdits], list[SteinMatrix]]] = []
    rates: list[Mapping[Operator, Tensor]] = []
    edits = max(int(edit_bounds(view.operator.neighborhood, sequences).sum()) for view in views)
    with tqdm(desc="posterior draws", unit="draw", total=len(models), disable=not progress) as bar:
        for part in models.parts(max(1, WEIGHTED_PAIRS // max(1, edits))):
            _check_possible(part, sequences)
            assembly = assemble(part.batch, sequences, views, max_bytes, keep=True)
            rates.append(assembly.rates)
            for index, matrices in enumerate(assembly.matrices):
                if len(realized) in localized:
                    own = {around: edits.under(index) for around, edits in assembly.edits.items()}
                    kept.append((own, matrices))
                realized.append(torch.stack([u_statistic(matrix) for matrix in matrices]))
            replicates = part.draw_like(sequences, generator)
            replicated.append(null_statistics(part.stacked(size), replicates, size, views, max_bytes))
            bar.update(len(part))
    together = {view.operator: torch.cat([part[view.operator] for part in rates]) for view in views}
    shown = informative_views(views, together, size)
    views = [views[index] for index in shown]
    null = NullDraws.cat(replicated).of_views(shown)
    observed = torch.stack(realized)[:, shown]
    compared = perf_counter()
    by_draw = [
        localize_views(own, views, [matrices[index] for index in shown], null.extreme, max_bytes)
        for own, matrices in tqdm(kept, desc="localization", unit="draw", disable=not progress)
    ]
    places = [mean_localization(of_view) for of_view in zip(*by_draw, strict=True)]
    return PosteriorPredictive(
        views=tuple(views),
        num_chains=models.num_chains,
        realized=observed,
        replicated=null,
        p_value=predictive_p_value(observed, null.statistic),
        p_value_overall=float(predictive_p_value(*_largest(observed, null.statistic))),
        places=places,
        seconds={"posterior": compared - started, "localization": perf_counter() - compared},
    )


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


def _check_possible(models: PosteriorModels, sequences: Sequences) -> None:
    """Checks that every draw gives every sequence a positive probability.

    :raises ValueError: naming the sequences to which a draw does not.
    """
    possible = (models.batch.log_joint(sequences) > -torch.inf).all(1)
    for draw in (~possible).nonzero()[:, 0].tolist():
        check_possible(models[draw], sequences)


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

# SPDX-License-Identifier: Apache-2.0
"""The test of fit: statistics, null draws and p-values of several views, in tensors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Literal

import torch
from torch import Tensor

from pyro_ksd.aggregation import min_p
from pyro_ksd.bootstrap import NullDraws, parametric_bootstrap, refitted_bootstrap, seeded, wild_bootstrap
from pyro_ksd.jumps import Jumps
from pyro_ksd.kernels.base import DEFAULT_MAX_BYTES
from pyro_ksd.kernels.matrices import SteinMatrix
from pyro_ksd.models.base import SampleableModel, SequenceModel
from pyro_ksd.operators import Operator
from pyro_ksd.sequences import Sequences
from pyro_ksd.statistics import check_sample_size, u_statistic
from pyro_ksd.stein import check_possible, find_jumps, matrices_of
from pyro_ksd.views import View

_SMALL_SAMPLE = 100  # from here on the wild bootstrap keeps its level and has power, and costs far less


Kind = Literal["parametric", "wild", "refit", "posterior predictive"]
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
    :ivar jumps: the jumps of each operator of the views, with their weights.
    :ivar matrices: the Stein kernel matrix of each view.
    :ivar seconds: the time that each stage took.
    """

    views: tuple[View, ...]
    statistic: Tensor
    null: NullDraws
    p_value: Tensor
    p_value_overall: float
    kind: Kind
    jumps: Mapping[Operator, Jumps]
    matrices: tuple[SteinMatrix, ...]
    seconds: Mapping[str, float]


def goodness_of_fit(
    model: SequenceModel,
    sequences: Sequences,
    views: Sequence[View],
    *,
    bootstrap: Literal["auto", "parametric", "wild"] = "auto",
    refit: Callable[[Sequences], SequenceModel] | None = None,
    num_bootstrap: int = 500,
    seed: int = 0,
    max_bytes: int = DEFAULT_MAX_BYTES,
    progress: bool = False,
) -> GoodnessOfFit:
    """Tests whether the sequences could have come from the model.

    :param views: what to look at; one view alone gives the paper's test.
    :param bootstrap: ``"parametric"`` draws data sets from the model, ``"wild"`` flips the signs of the sequences'
        contributions, ``"auto"`` is parametric where the model can be sampled and there are fewer than 100 sequences.
    :param refit: for a model that was fitted to the sequences: fits it to a data set. The null draws are then those of
        :func:`~pyro_ksd.bootstrap.refitted_bootstrap`.
    :param num_bootstrap: the number of null draws; p-values are multiples of ``1 / (num_bootstrap + 1)``.
    :param seed: of all random numbers; the same seed gives the same result.
    :param max_bytes: the memory for a block of the kernel matrix of kernels without features.

    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.views import default_views
    >>> data = Sequences.of(["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"])
    >>> found = goodness_of_fit(random_walk(3), data, default_views(), num_bootstrap=199)
    >>> found.kind, found.p_value_overall < 0.05
    ('parametric', True)
    """
    check_sample_size(len(sequences))
    if not views or len({view.name for view in views}) < len(views):
        raise ValueError(f"views: expected at least one view and distinct names, found {[v.name for v in views]}")
    if num_bootstrap < 1:
        raise ValueError(f"num_bootstrap: expected at least 1 null draw, found {num_bootstrap}")
    kind = _kind(model, len(sequences), bootstrap, refit is not None)
    check_possible(model, sequences)
    started = perf_counter()
    jumps = find_jumps(model, sequences, views, keep=True)
    matrices = matrices_of(jumps, views, max_bytes, progress=progress)
    if kind == "wild":
        kept = _informative(views, jumps)
        views, matrices = [views[index] for index in kept], [matrices[index] for index in kept]
    observed = torch.stack([u_statistic(matrix) for matrix in matrices])
    looked = perf_counter()
    generator = seeded(seed, sequences.device)
    if not isinstance(model, SampleableModel) or kind == "wild":
        null = wild_bootstrap(matrices, views, num_bootstrap, generator, progress=progress)
    elif refit is not None:
        null = refitted_bootstrap(
            model, refit, len(sequences), views, num_bootstrap, generator, max_bytes=max_bytes, progress=progress
        )
    else:
        null = parametric_bootstrap(
            model, len(sequences), views, num_bootstrap, generator, max_bytes=max_bytes, progress=progress
        )
    each, overall = min_p(observed, null.statistic)
    in_model = sum(own.seconds for own in jumps.values())
    return GoodnessOfFit(
        views=tuple(views),
        statistic=observed,
        null=null,
        p_value=each,
        p_value_overall=float(overall),
        kind=kind,
        jumps=jumps,
        matrices=tuple(matrices),
        seconds={
            "model": in_model,
            "kernels": looked - started - in_model,
            "bootstrap": perf_counter() - looked,
        },
    )


def _kind(model: SequenceModel, size: int, bootstrap: str, refitted: bool) -> Kind:
    """How the null draws are to be made."""
    sampleable = isinstance(model, SampleableModel)
    if bootstrap not in ("auto", "parametric", "wild"):
        raise ValueError(f"bootstrap: expected 'auto', 'parametric' or 'wild', found {bootstrap!r}")
    if refitted and bootstrap == "wild":
        raise ValueError("bootstrap: expected 'parametric' with refit=, found 'wild', which draws no data to refit on")
    if not sampleable and (refitted or bootstrap == "parametric"):
        draws = "let the program draw sequences where it is given num_sequences=, or pass sampler="
        instead = draws if refitted else f"{draws}, or use bootstrap='wild'"
        raise ValueError(
            f"bootstrap: expected a model with a draw() method for the parametric bootstrap, found "
            f"{type(model).__name__} without one; {instead}"
        )
    if refitted:
        return "refit"
    if bootstrap == "parametric" or (bootstrap == "auto" and sampleable and size < _SMALL_SAMPLE):
        return "parametric"
    return "wild"


def _informative(views: Sequence[View], jumps: Mapping[Operator, Jumps]) -> list[int]:
    """The views that the wild bootstrap can test.

    As many jumps lead to the sequences of a true model as away from them. If fewer than a handful are to be expected in
    all of the data, the few sequences that they lead to are most likely missing, and the others, each of which is a
    little less probable than its edits, look as if the model were wrong.
    """
    kept = [index for index, view in enumerate(views) if not jumps[view.operator].hardly_any]
    if len(kept) < len(views):
        poor = [view.name for index, view in enumerate(views) if index not in kept]
        message = (
            f"the model hardly ever allows the edits of the view(s) {', '.join(poor)}: the data are too few for the "
            "wild bootstrap to test them"
        )
        if not kept:
            raise ValueError(f"{message}; use bootstrap='parametric', or views with other edits")
        warnings.warn(f"{message}, and they are left out; bootstrap='parametric' can", UserWarning, stacklevel=3)
    return kept

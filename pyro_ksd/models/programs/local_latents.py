# SPDX-License-Identifier: Apache-2.0
"""Continuous latent sites that belong to each sequence: values for them at given points."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from pyro.distributions.torch_distribution import MaskedDistribution
from pyro.poutine.messenger import Messenger
from pyro.poutine.trace_struct import Trace
from torch import Tensor

from pyro_ksd.models.programs.exact_probabilities import exact_log_prob, own_mask
from pyro_ksd.models.programs.integration_points import MOST_DIMENSIONS
from pyro_ksd.models.programs.normal_scores import value_at
from pyro_ksd.models.programs.plate_layout import sample_sites

ROW_DIM = "_pyro_ksd_row_dim"
"""Where a site that got its values at points notes the dimension of the rows, counted from the right."""


class LocalDimensions:
    """Which dimensions of the points belong to which latent site, in the order in which sites are met."""

    def __init__(self) -> None:
        self._blocks: dict[str, range] = {}

    def __len__(self) -> int:
        return sum(map(len, self._blocks.values()))

    @property
    def names(self) -> list[str]:
        """The names of the sites."""
        return list(self._blocks)

    def of(self, name: str, size: int) -> range:
        """The dimensions of a site with ``size`` numbers for each sequence.

        :raises ValueError: if the site had another size before, or there are too many dimensions.
        """
        known = self._blocks.get(name)
        if known is None:
            known = self._blocks[name] = range(len(self), len(self) + size)
        if len(known) != size:
            raise ValueError(
                f"site {name!r}: found a local latent of {len(known)} numbers for some sequences and of {size} for "
                "others, expected the same for all; write one site for each step"
            )
        if known.stop > MOST_DIMENSIONS:
            raise ValueError(
                f"site {name!r}: found more than {MOST_DIMENSIONS} local latent numbers for a sequence, too many to "
                "integrate over"
            )
        return known


class AtPoints(Messenger):
    """Gives the local continuous latent sites of a program, or of a guide, their values at points.

    Row ``r`` of a run gets point ``r % K``.

    :param scores: double ``[K, D]``, normal scores.
    :param dimensions: which of them belong to which site.
    :param plate: the name of the plate over the rows; ``None`` for any of the right size.
    :param count: the number of rows, where the name is not known.
    :param as_proposal: whether the probability of the values is left out: they are drawn from the site itself.
    """

    def __init__(
        self,
        scores: Tensor,
        dimensions: LocalDimensions,
        *,
        plate: str | None,
        count: int | None = None,
        as_proposal: bool,
    ) -> None:
        super().__init__()
        self._scores = scores
        self._dimensions = dimensions
        self._plate = plate
        self._count = count
        self._as_proposal = as_proposal

    def _pyro_sample(self, msg: Any) -> None:
        frame = local_frame(msg, self._plate, self._count)
        if frame is None:
            return
        msg["value"] = self._values(msg, frame.dim, frame.size)
        msg["is_observed"] = True
        msg["infer"] = {**msg["infer"], ROW_DIM: frame.dim}
        if self._as_proposal:
            msg["mask"] = False

    def _values(self, msg: Any, dim: int, count: int) -> Tensor:
        """The values of a site for each row, from the scores of its dimensions."""
        name, fn = msg["name"], msg["fn"]
        depth = max(-frame.dim for frame in msg["cond_indep_stack"] if frame.vectorized)
        batch = [1] * (depth - len(fn.batch_shape)) + list(fn.batch_shape[max(0, len(fn.batch_shape) - depth) :])
        others = batch[: depth + dim] + batch[depth + dim + 1 :]
        size = math.prod(others) * math.prod(fn.event_shape)
        block = self._dimensions.of(name, size)
        points = self._scores[:, block.start : block.stop]
        if points.shape[1] < size:
            others = [known for known in self._dimensions.names if known != name]
            raise ValueError(
                f"site {name!r}: found a local latent beside {others}, which are all that the program has for the "
                "data; leave it out of the guide if the program has no such site, or, if only longer sequences have "
                "it, pass neighborhood=Substitutions()"
            )
        rows = points[torch.arange(count) % len(points)]
        scores = rows.reshape(count, *others, *fn.event_shape).movedim(0, depth + dim)
        try:
            value = value_at(fn, scores.expand(*fn.batch_shape, *fn.event_shape))
        except RuntimeError:  # some transformations have fewer numbers than their result
            value = None
        if value is None:
            raise ValueError(
                f"site {name!r}: found a local latent of {type(fn).__name__}, expected a distribution with quantiles, "
                "such as Normal, Gamma, Beta or Dirichlet; transform one of these"
            )
        return value


class Proposed(Messenger):
    """Gives the local latent sites of a program, or of a guide, certain values.

    :param values: by name.
    :param plate: the name of the plate over the rows; ``None`` for any of the right size.
    :param count: the number of rows.
    """

    def __init__(self, values: Mapping[str, Tensor], plate: str | None, count: int) -> None:
        super().__init__()
        self._values = values
        self._plate = plate
        self._count = count

    def _pyro_sample(self, msg: Any) -> None:
        frame = local_frame(msg, self._plate, self._count)
        if frame is None or msg["name"] not in self._values:
            return
        msg["value"] = self._values[msg["name"]]
        msg["is_observed"] = True
        msg["infer"] = {**msg["infer"], ROW_DIM: frame.dim}


def local_values(trace: Trace) -> dict[str, tuple[Tensor, int]]:
    """The values of the sites that got theirs from a messenger, and the dimension of the rows in them, by name."""
    return {name: (site["value"], site["infer"][ROW_DIM] - site["fn"].event_dim) for name, site in _given_sites(trace)}


def local_log_prob(trace: Trace, count: int, masks: Mapping[str, Tensor]) -> Tensor:
    """The log-probability of these values for each of ``count`` rows, double ``[N]``.

    :param masks: where each site counts, whatever masks it has itself: a guide must count where its program does.
    """
    total = torch.zeros(count, dtype=torch.double)
    for name, site in _given_sites(trace):
        fn = site["fn"]
        while isinstance(fn, MaskedDistribution):
            fn = fn.base_dist
        possible = fn.support.check(site["value"])
        scores = torch.where(possible, exact_log_prob(fn, site["value"]), -torch.inf)
        values = torch.where(masks[name], scores, 0.0).double()
        others = [axis for axis in range(-values.ndim, 0) if axis != site["infer"][ROW_DIM]]
        total = total + (values.sum(others) if others else values)
    return total


def local_masks(trace: Trace) -> dict[str, Tensor]:
    """Where the sites that got their values from a messenger count, by name."""
    return {
        name: torch.as_tensor(True if site["mask"] is None else site["mask"]) & torch.as_tensor(own_mask(site["fn"]))
        for name, site in _given_sites(trace)
    }


def impossible_rows(trace: Trace, values: Mapping[str, Tensor], count: int) -> Tensor:
    """Which of ``count`` rows have values outside of the supports of the sites of a run, boolean ``[N]``."""
    found = torch.zeros(count, dtype=torch.bool)
    for name, site in _given_sites(trace):
        outside = ~site["fn"].support.check(values[name])
        others = [axis for axis in range(-outside.ndim, 0) if axis != site["infer"][ROW_DIM]]
        found = found | (outside.any(others) if others else outside)
    return found


def _given_sites(trace: Trace) -> list[tuple[str, dict[str, Any]]]:
    return [(name, site) for name, site in sample_sites(trace) if ROW_DIM in site["infer"]]


def local_frame(site: Mapping[str, Any], plate: str | None, count: int | None) -> Any:
    """The plate over the sequences around a continuous latent site that belongs to each of them; ``None`` for others.

    :param plate: the name of the plate; ``None`` for any with ``count`` members.
    """
    if site["is_observed"] or site["infer"].get("enumerate") is not None:
        return None
    if site["fn"].has_enumerate_support or not hasattr(site["fn"], "event_shape"):
        return None
    frames = [frame for frame in site["cond_indep_stack"] if frame.vectorized]
    return next((f for f in frames if f.name == plate or (plate is None and f.size == count)), None)

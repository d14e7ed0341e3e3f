# SPDX-License-Identifier: Apache-2.0
"""Does any site of a program depend on the length of a sequence, other than by its mask?"""

from __future__ import annotations

from typing import Any

import torch
from pyro.distributions import Delta, DiscreteHMM, Unit
from pyro.distributions.torch_distribution import ExpandedDistribution, MaskedDistribution
from torch import Tensor
from torch.distributions import Independent

from pyro_ksd.models.programs.exact_probabilities import exact_log_prob, innermost
from pyro_ksd.models.programs.plate_layout import is_enumerated
from pyro_ksd.models.programs.site_scores import Sites
from pyro_ksd.models.session_state import unvalidated


def may_depend_on_length(sites: Sites, dim: int) -> bool:
    """Whether a site may say how long a sequence is.

    A stop at each step, or a distribution of the length, observes something else for another length. A factor may or
    may not depend on it, so a program with one always may.

    :param sites: inside the plate of the sequences, scored, for two sequences with the same symbols that differ in
        their length alone.
    :param dim: of the plate, counted from the right.
    """
    return any(_differs(site, dim) for _, site in sites if not is_enumerated(site))


def _differs(site: dict[str, Any], dim: int) -> bool:
    """Whether a site differs between the two sequences where it is masked for neither."""
    kind = innermost(site["fn"])
    if isinstance(kind, Unit):
        return True
    if isinstance(kind, Delta | DiscreteHMM):  # a copy of a value; symbols of a given number of steps
        return False
    mask, depth = _inner_mask(site["fn"])
    outer = torch.as_tensor(True if site["mask"] is None else site["mask"])
    mask = mask & outer[(..., *[None] * depth)]
    with unvalidated():
        scores = exact_log_prob(kind, site["value"])
    shape = torch.broadcast_shapes(mask.shape, scores.shape, site["fn"].batch_shape + (1,) * depth)
    value = site["value"]
    values = value.expand(*shape, *value.shape[value.ndim - kind.event_dim :])
    other_value = torch.ne(*_pair(values, dim - depth - kind.event_dim))
    other_score = ~torch.isclose(*_pair(scores.expand(shape), dim - depth))
    counts = torch.logical_and(*_pair(mask.expand(shape), dim - depth))
    differs = other_value.flatten(counts.ndim).any(-1) if kind.event_dim else other_value
    return bool(((differs | other_score) & counts).any())


def _inner_mask(fn: Any) -> tuple[Tensor, int]:
    """The mask of the innermost distribution's values, and how many dimensions ``.to_event`` took from the batch."""
    if isinstance(fn, Independent):
        mask, depth = _inner_mask(fn.base_dist)
        return mask, depth + fn.reinterpreted_batch_ndims
    if isinstance(fn, MaskedDistribution):
        mask, depth = _inner_mask(fn.base_dist)
        own = torch.as_tensor(fn._mask)
        return mask & own[(..., *[None] * depth)], depth
    return _inner_mask(fn.base_dist) if isinstance(fn, ExpandedDistribution) else (torch.tensor(True), 0)


def _pair(values: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """The values of the first and of the second sequence."""
    rows = values.movedim(dim, 0)
    return rows[0], rows[1]

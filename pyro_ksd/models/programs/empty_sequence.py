# SPDX-License-Identifier: Apache-2.0
"""What a vectorized program says of the empty sequence, for which most of its sites are masked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from pyro.distributions import Delta
from torch import Tensor

from pyro_ksd.models.programs.call_conventions import Rows, each_covariate
from pyro_ksd.models.programs.exact_probabilities import innermost, own_mask
from pyro_ksd.models.programs.plate_layout import is_enumerated
from pyro_ksd.models.programs.site_scores import Sites


def beside_another(rows: Rows, alphabet_size: int) -> list[Rows]:
    """Empty sequences with different paddings, and one symbol below them, so that the program has a step to do.

    :param rows: the empty sequences, ``N`` of them; only their covariates count.
    :returns: for each padding, ``N + 1`` rows.
    """
    count = len(rows.lengths)
    lengths = torch.zeros(count + 1, dtype=torch.long)
    lengths[-1] = 1
    covariates = each_covariate(rows.covariates, lambda values: torch.cat([values, values[-1:]]))
    paddings = range(min(2, alphabet_size))
    return [Rows(torch.full((count + 1, 1), padding), lengths, covariates) for padding in paddings]


def is_defined(by_padding: Sequence[Sites], dim: int) -> bool:
    """Whether some site gives the empty sequence a probability, and no such site reads its padding.

    :param by_padding: the sites inside the plate of the sequences, for each padding; the empty sequence comes first.
    :param dim: of the plate, counted from the right.
    """
    counted = [
        [site for _, site in sites if not is_enumerated(site) and _counts_for_first(site, dim)] for sites in by_padding
    ]
    values = [[_first_value(site, dim) for site in sites] for sites in counted]
    return bool(counted[0]) and all(a.equal(b) for a, b in zip(values[0], values[-1], strict=True))


def _counts_for_first(site: dict[str, Any], dim: int) -> bool:
    """Whether a site says anything of the first sequence: it is not masked there, and no copy of a value."""
    fn = site["fn"]
    if isinstance(innermost(fn), Delta):
        return False
    mask = torch.as_tensor(True if site["mask"] is None else site["mask"]) & torch.as_tensor(own_mask(fn))
    whole = mask.expand(torch.broadcast_shapes(mask.shape, fn.batch_shape))
    return bool(whole.movedim(dim, 0)[0].any())


def _first_value(site: dict[str, Any], dim: int) -> Tensor:
    """The value of a site for the first sequence."""
    fn = site["fn"]
    value = site["value"]
    event = value.shape[value.ndim - fn.event_dim :]  # not fn.event_shape: sequences may be narrower than that
    whole: Tensor = value.expand(*fn.batch_shape, *event)
    return whole.movedim(dim - fn.event_dim, 0)[0]

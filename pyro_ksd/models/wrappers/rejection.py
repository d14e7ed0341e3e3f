# SPDX-License-Identifier: Apache-2.0
"""Exact samples of a conditional distribution, by rejection."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from pyro_ksd.common.chunk_sizes import PROPOSALS
from pyro_ksd.sequences.container import Sequences

MAX_PROPOSALS = 1_000_000
"""How many sequences are proposed before the sampler gives up."""

_LEAST_PROPOSALS = 2**7  # sequences proposed at once, to keep tensors busy


def accepted(
    propose: Callable[[int, torch.Generator | None], Sequences],
    inside: Callable[[Sequences], Tensor],
    num_sequences: int,
    generator: torch.Generator | None,
    *,
    max_proposals: int,
    advice: str,
) -> Sequences:
    """The first ``num_sequences`` of independent proposals that lie in a set.

    :param propose: draws sequences, given their number and the generator.
    :param inside: which sequences lie in the set, boolean ``[N]``.
    :param max_proposals: how many sequences may be proposed.
    :param advice: what to do if they were not enough, for the error.
    """
    parts: list[Sequences] = []
    found = proposed = 0
    batch = num_sequences
    while found < num_sequences:
        if proposed == max_proposals:
            raise ValueError(
                f"expected {num_sequences} sequences inside the set, found that {found} of {proposed} proposals "
                f"of the model were; {advice}"
            )
        batch = min(max(batch, _LEAST_PROPOSALS), PROPOSALS, max_proposals - proposed)
        drawn = propose(batch, generator)
        parts.append(drawn[inside(drawn)])
        found = found + len(parts[-1])
        proposed = proposed + batch
        batch = math.ceil((num_sequences - found) * (proposed + 1) / (found + 1))
    return Sequences.cat(parts)[:num_sequences]

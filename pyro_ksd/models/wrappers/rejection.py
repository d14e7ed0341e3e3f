# SPDX-License-Identifier: Apache-2.0
"""Exact samples of a conditional distribution, by rejection."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from pyro_ksd.common.chunk_sizes import PROPOSALS
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.covariates import Covariates

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


def accepted_given(
    propose: Callable[[Covariates, torch.Generator | None], Sequences],
    inside: Callable[[Sequences], Tensor],
    covariates: Covariates,
    generator: torch.Generator | None,
    *,
    max_proposals: int,
    advice: str,
) -> Sequences:
    """For each row of covariates, the first of independent proposals that lies in a set.

    :param propose: draws a sequence for each row of covariates, given these and the generator.
    :param inside: which sequences lie in the set, boolean ``[N]``.
    :param max_proposals: how many sequences may be proposed.
    :param advice: what to do if they were not enough, for the error.
    """
    parts: list[Sequences] = []
    rows: list[Tensor] = []
    waiting = torch.arange(len(covariates))
    proposed = 0
    while len(waiting):
        if proposed >= max_proposals:
            raise ValueError(
                f"expected a sequence inside the set for each of {len(covariates)} rows of covariates, found none for "
                f"{len(waiting)} of them in {proposed} proposals of the model; {advice}"
            )
        times = min(max(1, _LEAST_PROPOSALS // len(waiting)), math.ceil((max_proposals - proposed) / len(waiting)))
        drawn = propose(covariates[waiting.repeat_interleave(times)], generator)
        proposed += len(drawn)
        good = inside(drawn).view(-1, times)
        some = good.any(1).nonzero().squeeze(1)
        parts.append(drawn[some * times + good[some].long().argmax(1)])
        rows.append(waiting[some])
        waiting = waiting[~good.any(1)]
    return Sequences.cat(parts)[torch.cat(rows).argsort()]

# SPDX-License-Identifier: Apache-2.0
"""What a result keeps of the data: all sequences, or those of partitioned data that it refers to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from pyro_ksd.sequences.container import Sequences


@dataclass(frozen=True, eq=False)
class KeptData:
    """The sequences that a result keeps, and what it needs to know of all of them.

    :param sequences: those that are kept, ``K`` of them.
    :param rows: long ``[K]``, their rows in the data, ascending.
    :param num_sequences: the number of all data.
    :param num_impossible: how many of them the model calls impossible.
    :param impossible_sites: for the rows that it calls impossible, or the first of them, the site that makes it so.
    :param lengths: long ``[L]``, how many possible sequences have the length 0, 1, ...
    :param is_partial: whether the data are partitioned, so that only some are kept.
    """

    sequences: Sequences
    rows: Tensor
    num_sequences: int
    num_impossible: int = 0
    impossible_sites: Mapping[int, str] = field(default_factory=dict)
    lengths: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.long))
    is_partial: bool = False

    @staticmethod
    def whole(sequences: Sequences, impossible_sites: Mapping[int, str]) -> KeptData:
        """All data in memory.

        >>> data = KeptData.whole(Sequences.of(["ab", "b", "aa"]), {1: ""})
        >>> data.possible_rows.tolist(), data.lengths.tolist()
        ([0, 2], [0, 0, 2])
        """
        possible = torch.ones(len(sequences), dtype=torch.bool)
        possible[list(impossible_sites)] = False
        return KeptData(
            sequences=sequences,
            rows=torch.arange(len(sequences)),
            num_sequences=len(sequences),
            num_impossible=len(impossible_sites),
            impossible_sites=impossible_sites,
            lengths=sequences.lengths[possible].bincount(),
        )

    @property
    def possible_rows(self) -> Tensor:
        """The rows of the kept sequences that the model calls possible, long ``[K']``."""
        possible = ~torch.isin(self.rows, torch.tensor(list(self.impossible_sites), dtype=torch.long))
        return self.rows[possible]


def kept_rows(parts: Sequence[Tensor], others: Sequence[int]) -> Tensor:
    """The rows of sequences that a result refers to, long ``[K]``, ascending.

    >>> kept_rows([torch.tensor([4, 2]), torch.tensor([2])], [0]).tolist()
    [0, 2, 4]
    """
    rows: Tensor = torch.cat([*parts, torch.tensor(list(others), dtype=torch.long)]).unique()
    return rows

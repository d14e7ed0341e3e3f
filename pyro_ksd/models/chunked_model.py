# SPDX-License-Identifier: Apache-2.0
"""Models that are evaluated a chunk of sequences at a time."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from pyro_ksd.common.chunk_sizes import EVALUATED_SEQUENCES, in_chunks
from pyro_ksd.models.base import SequenceModel, check_alphabet_size
from pyro_ksd.sequences.container import Sequences


class ChunkedModel(SequenceModel):
    """The base of models that score a bounded number of sequences in one run, such as programs and networks.

    A subclass writes ``_evaluate``. Sequences of similar length are evaluated together, so that little is padding.
    """

    def __init__(self, alphabet_size: int) -> None:
        self._alphabet_size = alphabet_size

    @property
    def alphabet_size(self) -> int:
        return self._alphabet_size

    @abstractmethod
    def _evaluate(self, sequences: Sequences) -> Tensor:
        """``log p(x)`` up to a constant, ``[N]``, of at most ``EVALUATED_SEQUENCES`` sequences."""

    def log_joint(self, sequences: Sequences) -> Tensor:
        """``log p(x)`` up to a constant, double ``[N]``; ``-inf`` where the model calls a sequence impossible."""
        check_alphabet_size(self, sequences)
        values = torch.empty(len(sequences), dtype=torch.double)
        for rows in in_chunks(sequences.lengths.argsort(stable=True), EVALUATED_SEQUENCES):
            values[rows] = self._evaluate(sequences[rows].narrowed()).double().cpu()
        return values

# SPDX-License-Identifier: Apache-2.0
"""The base of distributions that are products of local factors and a term of the length."""

from __future__ import annotations

import torch
from torch import Tensor

from pyro_ksd.edits.splices import Edits, check_edits
from pyro_ksd.models.distributions.base import SequenceDistribution
from pyro_ksd.models.distributions.factor_table import FactorTable
from pyro_ksd.models.distributions.sampling import PAD
from pyro_ksd.sequences.container import Sequences


class LocalSequence(SequenceDistribution):
    r"""A sequence distribution of order ``k``: a :class:`FactorTable` and a term :math:`g` of the length.

    .. math:: \log p(x) = \sum_{i=0}^{\ell} f(x_{i-k}, \ldots, x_i) + g(\ell) - \log Z

    :param factors: double ``[B] + [S + 1] * (k + 1)``, the table :math:`f` of each member of the batch.
    """

    def __init__(
        self,
        factors: Tensor,
        max_length: int,
        batch_shape: torch.Size,
        validate_args: bool | None,
        dtype: torch.dtype | None = None,
    ) -> None:
        self._table = FactorTable(factors)
        super().__init__(self._table.boundary, max_length, batch_shape, validate_args, dtype)

    @property
    def order(self) -> int:
        """How many symbols before it a symbol depends on."""
        return self._table.order

    def _length_terms(self, longest: int) -> Tensor | None:
        r""":math:`g(0), \ldots, g(\mathrm{longest})`, double ``[B, longest + 1]``; ``None`` for a model without it."""
        return None

    def _log_prob(self, tokens: Tensor, rows: Tensor) -> Tensor:
        local = self._table.log_joint(tokens, rows)
        terms = self._length_terms(tokens.shape[1])
        return local if terms is None else local + terms[rows, (tokens != PAD).sum(-1)]

    @torch.no_grad()
    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        self._check_one_model_for(sequences)
        check_edits(edits, sequences)
        growth = max((block.growth for block in edits.blocks if len(block)), default=0)
        terms = self._length_terms(sequences.width + max(growth, 0))
        return self._table.log_ratio(sequences, edits, None if terms is None else terms[0])

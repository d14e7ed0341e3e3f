# SPDX-License-Identifier: Apache-2.0
r"""The lengths of a stream, compared with those of sequences that the model draws.

Edits change a length by one symbol. They see how often sequences stop, step by step, and need long to see that all are
somewhat too short. Where the model can be sampled, a few sequences are drawn for each one of the stream. With
:math:`h(x)` the one-hot code of the length, as :func:`~pyro_ksd.stein.stream_views.length_bins` gives it, the feature

.. math:: \psi(x) = \frac{1}{M} \sum_{m=1}^{M} h(x'_m) - h(x)

has the mean 0 under the model, and :math:`|\langle g, \psi(x) \rangle| \le \max g^+ + \max g^-`. Every sequence has
draws of its own: otherwise earlier sequences would tell about the draws that later ones are compared with.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from pyro_ksd.common.random_numbers import seeded_generator
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.stein.stream_views import length_bins

_DRAWS = 4  # for each sequence of the stream
_TOGETHER = 1024  # sequences of the stream for which is drawn at once


@dataclass(eq=False)
class DrawnLengths:
    """The features of lengths, from draws that depend on the seed and the row of a sequence alone.

    :param model: one that can be sampled.
    :param seed: of the draws.

    >>> from pyro_ksd.examples import random_walk
    >>> drawn = DrawnLengths(random_walk(3), seed=0)
    >>> psi = drawn.features(torch.tensor([3, 9, 9]), begin=0)
    >>> psi.shape, psi.sum(1).abs().max() < 1e-12, psi.min() >= -1
    (torch.Size([3, 92]), tensor(True), tensor(True))
    >>> drawn.features(torch.tensor([9]), begin=2).equal(psi[2:])
    True
    """

    model: SequenceModel
    seed: int
    _known: tuple[int, Tensor] = field(default=(-1, torch.zeros(0)), init=False, repr=False)

    def features(self, lengths: Tensor, begin: int) -> Tensor:
        """The features of consecutive sequences, double ``[N, D]``.

        :param lengths: long ``[N]``, at least one.
        :param begin: the row of the first one in the stream.
        """
        rows = torch.arange(begin, begin + len(lengths))
        blocks = (rows // _TOGETHER).unique().tolist()
        expected = [self._expected(block)[rows[rows // _TOGETHER == block] % _TOGETHER] for block in blocks]
        return torch.cat(expected) - length_bins(lengths)

    def _expected(self, block: int) -> Tensor:
        """The mean codes of the draws for the sequences of a block, ``[1024, D]``; the last block is kept."""
        if self._known[0] != block:
            [seed] = np.random.SeedSequence([self.seed, block]).generate_state(1, np.uint64)
            drawn = self.model.draw(_TOGETHER * _DRAWS, seeded_generator(int(seed) >> 1))
            self._known = (block, length_bins(drawn.lengths).view(_TOGETHER, _DRAWS, -1).mean(1))
        return self._known[1]

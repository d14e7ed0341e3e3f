# SPDX-License-Identifier: Apache-2.0
"""Does a model give probabilities to lengths, or only to the symbols given the length?"""

from __future__ import annotations

import torch
from torch import Tensor

from pyro_ksd.models.base import SequenceModel
from pyro_ksd.sequences.container import Sequences

_ROWS = 40  # sequences among which a possible one is looked for
_FAR = 100  # lengths up to which, at least, a model is examined


def has_length_distribution(model: SequenceModel, data: Sequences) -> bool:
    r"""Whether the model gives probabilities to lengths.

    A program that draws symbols, but neither a stop nor a length, gives the sequences of *every* length a total
    probability of 1: :math:`\sum_s p(x \cdot s) = p(x)` for all :math:`x`. A score without a term of the length may
    even grow, :math:`\sum_s p(x \cdot s) > p(x)`, and has no finite sum over all lengths. That is looked for along one
    sequence, first at its start and then, since a distribution may be uniform up to a maximum, far beyond the longest
    sequence of the data: a distribution of the length makes the mass of some length smaller than that of a shorter one.
    """
    few = data[:_ROWS]
    possible = torch.where(model.log_joint(few) > -torch.inf, few.lengths, 0)
    row = int(possible.argmax())
    longest = int(possible.max())
    if not longest:
        return True
    far = max(4 * int(data.lengths.max()), _FAR)
    path = few.tokens[row, :longest].repeat(1 + far // longest)
    for lengths in (range(1, min(5, longest + 1)), range(5, far, 1 + far // 12)):
        own, change = _growth(model, data, path, lengths)
        if (change < 0).any():
            return True
    impossible = [length for length, value in zip(lengths, own.tolist(), strict=True) if value == -torch.inf]
    if impossible:  # somewhere before, the sequence became impossible: because of its symbols, or of its length?
        _, change = _growth(model, data, path, range(max(1, impossible[0] - 1 - far // 12), impossible[0]))
        return bool((change != 0).any())
    return False


def _growth(model: SequenceModel, data: Sequences, path: Tensor, lengths: range) -> tuple[Tensor, Tensor]:
    """How the mass changes by a further symbol, along a path.

    :returns: the log-joints of its beginnings, ``[M]``; and, for those that are possible, the log-ratios of all their
        extensions by one symbol together to them, 0 for a change that is nothing but rounding.
    """
    size = data.alphabet_size
    ends = torch.tensor(lengths)
    columns = torch.arange(max(lengths, default=0) + 1)
    beginnings = path[: len(columns)].expand(len(ends), -1).masked_fill(columns >= ends[:, None], 0)
    longer = beginnings.repeat_interleave(size, 0)
    index = ends.repeat_interleave(size)
    longer.scatter_(1, index[:, None], torch.arange(size).repeat(len(ends))[:, None])
    own = model.log_joint(data.derived(beginnings, ends))
    extended = model.log_joint(data.derived(longer, index + 1)).view(-1, size).logsumexp(1)
    same = torch.isclose(extended, own, rtol=1e-6, atol=1e-5)
    return own, (extended - own).masked_fill(same, 0.0)[own > -torch.inf]

# SPDX-License-Identifier: Apache-2.0
"""How much is computed at once: enough to keep tensors busy, little enough to bound the memory."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

EDITS = 2**17
"""Edits with their weights and features; few enough to stay in the processor's cache."""

GROUPED_EDITS = 2**18
"""The same around data sets that are drawn, of which each chunk has whole ones."""

EDITED_SEQUENCES = 2**16
"""Edits that are written out as whole sequences."""

EVALUATED_SEQUENCES = 3 * 2**12
"""Sequences that a program or network scores in one run. All runs but the last have this size, so that plans made for
one shape are used again."""

PROBED_SYMBOLS = 2**16
"""Symbols of the batch in which a few sequences are scored, to see whether each is treated by itself."""

SCORED_PAIRS = 2**15
"""Pairs of a sequence and a posterior draw that a program scores in one run."""

WEIGHTED_PAIRS = 2**20
"""Pairs of an edit and a posterior draw whose weights are held at once."""

PROPOSALS = 2**16
"""Sequences that are proposed at once for rejection."""

LOGITS = 2**22
"""Logits that a network computes in one call."""

KEPT_BYTES = 2**28
"""Bytes of log-ratios, and as many of features, that are kept for a second visit of the data."""

FREED_BYTES = 2**25 - 2**16
"""Bytes of the block whose size tells the allocator how much freed memory to keep; it does not adapt to larger ones."""

SUMMED_ENTRIES = 2**22
"""Entries of the features that are summed at once."""

SIGNED_ENTRIES = 2**26
"""Entries of the sums with random signs of all views, ``draws × features``, that are formed in one visit."""

ENTRIES = 2**24
"""Entries of the largest temporary tensor of a quadratic form."""

REPLICATES = 64
"""Data sets that are drawn from a model at once."""

DRAWN_SEQUENCES = 2**15
"""Sequences of these data sets, unless a single data set has more."""

REPLICATED_EDITS = 2**21
"""Edits around the drawn data sets whose statistics are computed together, unless a single data set has more."""

PAIR_BYTES = 2**28
"""Bytes for a block of a kernel matrix between pairs of sequences, unless the caller chooses."""


def in_chunks(rows: Tensor, size: int) -> Sequence[Tensor]:
    """Consecutive parts of at most ``size`` rows; none if there are no rows, where ``Tensor.split`` gives an empty one.

    >>> import torch
    >>> in_chunks(torch.arange(3), 2), in_chunks(torch.arange(0), 2)
    ((tensor([0, 1]), tensor([2])), ())
    """
    return rows.split(size) if len(rows) else ()

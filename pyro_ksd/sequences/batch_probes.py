# SPDX-License-Identifier: Apache-2.0
"""Whether what a user wrote treats each sequence of a batch by itself, seen on a few sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from pyro_ksd.common.chunk_sizes import EVALUATED_SEQUENCES, PROBED_SYMBOLS
from pyro_ksd.sequences.container import Sequences

EXTRA_COLUMNS = 3
"""Columns of padding to add, to see whether values depend on them."""

_FEW = 8  # different sequences
_FEWEST_ROWS = 16
_RELATIVE = 1e-5  # far above rounding in single precision


class BatchFault(NamedTuple):
    """What the values of a sequence depend on beside the sequence.

    :ivar kind: ``"run"`` if the same batch gives other values when it is run again, ``"row"`` if other rows of the same
        batch do, ``"padding"`` if more padding does, ``"mates"`` if other sequences in the batch do.
    :ivar before: one of the values.
    :ivar after: what it becomes.
    """

    kind: Literal["run", "row", "padding", "mates"]
    before: float
    after: float

    def error(self, values: str, *, alone: str, masked: str) -> ValueError:
        """What to say of it.

        :param values: what the values are, such as "the program's log-joint of a sequence".
        :param alone: how to write what gives the same values with other sequences in the batch.
        :param masked: how to write what gives the same values with more padding.

        >>> print(BatchFault("mates", 1.0, 2.0).error("the value", alone="use constants", masked="use the mask"))
        the value changes with the other sequences of the batch, from 1 to 2; expected one value for each sequence: ...
        """
        before, after = (f"{value:.6g}" for value in (self.before, self.after))
        words = {
            "run": (
                f"is not repeatable: the same batch gave {before}, and the next time {after}; expected the same value "
                "in every run: no random numbers, such as those of a numpy Generator, no clock, and nothing that is "
                "kept from run to run"
            ),
            "row": (
                f"depends on the row of the batch: {before} in one row, and {after} in another; rows of a batch are "
                "sequences and their edits in any order, so pass what differs between sequences as covariates: "
                "Sequences.with_covariates(...)"
            ),
            "padding": f"changes with the padding after its end, from {before} to {after}; expected {masked}",
            "mates": (
                f"changes with the other sequences of the batch, from {before} to {after}; expected one value for each "
                f"sequence: {alone}"
            ),
        }
        return ValueError(f"{values} {words[self.kind]}")


def few_rows(lengths: Tensor) -> Tensor:
    """The rows of a few sequences of different lengths, the longest first; long ``[K]``.

    :param lengths: long ``[N]``. Empty sequences are left out, unless all are.

    >>> few_rows(torch.tensor([3, 0, 9, 4])).tolist()
    [2, 3, 0]
    """
    order = lengths.argsort(descending=True, stable=True)
    order = order[lengths[order] > 0] if lengths.any() else order
    ranks = torch.linspace(0, len(order) - 1, min(_FEW, len(order))).round().long()
    return order[ranks]


class ManyRows(NamedTuple):
    """A batch of a few sequences in more rows than there are data.

    :ivar which: long ``[M]``, which of the few sequences is in each row.
    :ivar wide: whether the batch has the columns of all of the few sequences; else, as this would be far more than the
        data, only those that it needs itself.
    """

    which: Tensor
    wide: bool


def in_many_rows(lengths: Tensor, data: Sequences) -> ManyRows:
    """A batch of a few sequences in more rows than there are data.

    They are at random, so that each is in many rows. The longest ones are left out, lest each batch have the same
    longest sequence, and so are those far longer than the average where the batch would become larger than the data.

    :param lengths: long ``[K]``, those of the few sequences.
    """
    num_rows = min(max(len(data) + 1, _FEWEST_ROWS), EVALUATED_SEQUENCES)
    most = max(2 * float(data.lengths.double().mean()), PROBED_SYMBOLS / num_rows, float(lengths.min()))
    shorter = lengths < lengths.max()
    chosen = ((lengths <= most) & (shorter if shorter.any() else True)).nonzero().squeeze(1)
    index = chosen[torch.randint(len(chosen), (num_rows,), generator=_generator())]
    return ManyRows(index, bool(lengths.max() <= 2 * most))


def batch_fault(
    score: Callable[[Tensor, bool], Tensor], own: Tensor, batch: ManyRows, smallest: Tensor | float = _RELATIVE
) -> BatchFault | None:
    """What the values of a few sequences depend on beside the sequence; ``None`` if there is nothing.

    :param score: gives the values ``[M, ...]`` of a batch that has the sequence ``index[m]`` in row ``m``; see
        :class:`ManyRows` for its arguments.
    :param own: ``[K, ...]``, the values of a batch that has each sequence once.
    :param smallest: differences up to this size do not count.

    >>> own = torch.tensor([1.0, 2.0])
    >>> batch = ManyRows(torch.tensor([0, 1, 1]), wide=True)
    >>> batch_fault(lambda index, wide: own[index] + torch.arange(len(index)), own, batch).kind
    'row'
    """
    index, wide = batch
    try:
        values = score(index, wide)
    except Exception:  # it may need all columns, although it fills some of them with nothing but padding
        if wide:
            raise
        wide = True
        values = score(index, wide)
    if (changed := first_change(own[index], values, smallest)) is None:
        return None
    if (fault := repetition_fault(lambda: score(index, wide), values, smallest)) is not None:
        return fault
    order = torch.randperm(len(index), generator=_generator())
    other = torch.empty_like(order).index_copy_(0, order, order.roll(1))  # in one cycle: no row stays where it is
    if (moved := first_change(values[other], score(index[other], wide), smallest)) is not None:
        return BatchFault("row", *moved)
    if not wide and (padded := first_change(values, score(index, True), smallest)) is not None:
        return BatchFault("padding", *padded)
    return BatchFault("mates", *changed)


def padding_fault(
    run: Callable[[], Tensor], own: Tensor, padded: Tensor, smallest: Tensor | float = _RELATIVE
) -> BatchFault | None:
    """The fault of values that change with the padding, or with the next run; ``None`` if they do not.

    :param run: gives the values of a batch.
    :param own: what it gave.
    :param padded: the values of the same batch with another padding.
    :param smallest: differences up to this size do not count.

    >>> own = torch.tensor([1.0, 2.0])
    >>> padding_fault(lambda: own, own, own + 1.0)
    BatchFault(kind='padding', before=1.0, after=2.0)
    """
    if (changed := first_change(own, padded, smallest)) is None:
        return None
    return repetition_fault(run, own, smallest) or BatchFault("padding", *changed)


def repetition_fault(run: Callable[[], Tensor], own: Tensor, smallest: Tensor | float = _RELATIVE) -> BatchFault | None:
    """The fault of a batch that gives other values when it is run again; ``None`` if it gives the same.

    :param own: the values of an earlier run.
    :param smallest: differences up to this size do not count.

    >>> values = iter(torch.arange(3.0))
    >>> repetition_fault(lambda: next(values), torch.tensor(0.0))
    BatchFault(kind='run', before=0.0, after=1.0)
    """
    once = run()
    change = first_change(own, once, smallest) or first_change(once, run(), smallest)
    return None if change is None else BatchFault("run", *change)


def first_change(before: Tensor, after: Tensor, smallest: Tensor | float = _RELATIVE) -> tuple[float, float] | None:
    """The first value that changes, and what it becomes; ``None`` if all stay the same, but for rounding.

    :param smallest: differences up to this size do not count.

    >>> first_change(torch.tensor([1.0, -torch.inf, 2.0]), torch.tensor([1.0, -torch.inf, 2.5]))
    (2.0, 2.5)
    """
    # Of two infinite values the difference is NaN, which is not larger than anything.
    differs = (before - after).abs() > smallest + _RELATIVE * before.abs().nan_to_num(posinf=0.0)
    if not differs.any():
        return None
    where = tuple(differs.nonzero()[0].tolist())
    return float(before[where]), float(after[where])


def widened(sequences: Sequences) -> Sequences:
    """The same sequences with more columns of padding.

    >>> widened(Sequences.of(["ab", "b"])).tokens.tolist()
    [[0, 1, 0, 0, 0], [1, 0, 0, 0, 0]]
    """
    return sequences.derived(torch.nn.functional.pad(sequences.tokens, (0, EXTRA_COLUMNS)), sequences.lengths)


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)

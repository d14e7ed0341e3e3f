# SPDX-License-Identifier: Apache-2.0
"""Sequences to which a model gives probability zero: no test is needed to see that the model is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from pyro_ksd.common.tensor_checks import check_tensor
from pyro_ksd.common.torch_threads import one_torch_thread
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.rounding import rounding_of_ratios, warn_of_rounding
from pyro_ksd.sequences.container import Sequences

_SHOWN = 3  # sequences in a message


@dataclass(frozen=True, eq=False)
class ImpossibleSequences:
    """The sequences of a data set to which a model gives probability zero.

    :ivar rows: long ``[M]``, ascending.
    :ivar message: how many there are and the first of them, in words; ``""`` if there are none.
    :ivar log_joint: ``[N]``, the log-joints of all sequences.
    """

    rows: Tensor
    message: str
    log_joint: Tensor

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def others(self) -> Tensor:
        """Boolean ``[N]``, true for the sequences that are possible."""
        return torch.ones(len(self.log_joint), dtype=torch.bool).index_fill_(0, self.rows, False)


def checked_log_joint(model: SequenceModel, sequences: Sequences) -> Tensor:
    """The log-joints of sequences, ``[N]``, without gradients.

    Warns if they are in single precision and so large that rounding matters.

    :raises ValueError: if the model gives something else.
    """
    log_joint = _log_joint(model, sequences)
    warn_of_rounding(rounding_of_ratios(log_joint), f"log_joint of {model.name}")
    return log_joint


def _log_joint(model: SequenceModel, sequences: Sequences) -> Tensor:
    with torch.no_grad(), one_torch_thread() if model.has_quick_ratios else nullcontext():
        log_joint = model.log_joint(sequences)
    check_tensor("log_joint", log_joint.double() if isinstance(log_joint, Tensor) else log_joint, len(sequences))
    return log_joint


def find_impossible(model: SequenceModel, sequences: Sequences, log_joint: Tensor | None = None) -> ImpossibleSequences:
    """The sequences to which the model gives probability zero.

    :param log_joint: ``[N]``, the log-joints of the sequences, if they are known already.
    :raises ValueError: if the model gives NaN to a sequence.

    >>> from pyro_ksd.models import MarkovSequence
    >>> always_a = MarkovSequence.from_transitions(torch.tensor([1.0, 0.0]), torch.eye(2), stop=0.5)
    >>> print(find_impossible(always_a, Sequences.of(["a", "ab", "aa"])).message)
    the model gives probability zero to 1 of 3 sequences: sequence 1, ['a', 'b']. It cannot have made them
    """
    if log_joint is None:
        log_joint = _log_joint(model, sequences)
    bad = log_joint.isnan().nonzero().squeeze(1)
    if len(bad):
        raise ValueError(
            f"expected a log-probability for every sequence, found NaN for {_shown(model, sequences, bad)}; "
            "the model gives NaN there"
        )
    rows = (log_joint == -torch.inf).nonzero().squeeze(1)
    return ImpossibleSequences(
        rows, impossible_message(len(rows), len(sequences), first_shown(model, sequences, rows)), log_joint
    )


def impossible_message(count: int, total: int, shown: Sequence[str]) -> str:
    """What to say of impossible sequences; ``""`` if there are none.

    :param total: the number of all sequences.
    :param shown: the first of them, see :func:`first_shown`.

    >>> impossible_message(2, 10, ["sequence 4, ['a']"])
    "the model gives probability zero to 2 of 10 sequences: sequence 4, ['a']; .... It cannot have made them"
    """
    if not count:
        return ""
    return (
        f"the model gives probability zero to {count} of {total} sequences: {_listed(shown, count)}. It cannot have "
        "made them"
    )


def check_possible(model: SequenceModel, sequences: Sequences, log_joint: Tensor | None = None) -> None:
    """Checks that the model gives every sequence a positive probability.

    :param log_joint: ``[N]``, the log-joints of the sequences, if they are known already.
    :raises ValueError: naming the sequences to which it does not.
    """
    found = find_impossible(model, sequences, log_joint)
    if len(found):
        raise ValueError(f"{found.message}: widen the model, or leave them out")


def check_drawn(model: SequenceModel, sequences: Sequences) -> None:
    """Checks that the model gives a positive probability to the sequences that were drawn from it.

    :raises ValueError: naming those to which it does not: its samples and its probabilities disagree.
    """
    found = find_impossible(model, sequences)
    if len(found):
        raise ValueError(
            f"the model calls {len(found)} of {len(sequences)} sequences impossible that were drawn from it: "
            f"{_shown(model, sequences, found.rows)}; let it draw from the distribution that it scores, until every "
            "sequence has ended"
        )


def first_shown(model: SequenceModel, sequences: Sequences, rows: Tensor, first_row: int = 0) -> list[str]:
    """The first few of some sequences in words, with the sites that are to blame if the model can name them.

    :param rows: of these sequences.
    :param first_row: the number of the first of all sequences in the data.
    """
    shown = []
    for row in rows[:_SHOWN].tolist():
        only = sequences[row : row + 1]
        [site] = model.for_rows(first_row + row).impossible_sites(only)
        shown.append(f"sequence {first_row + row}, {only.to_lists()[0]}{f', at site {site}' if site else ''}")
    return shown


def _shown(model: SequenceModel, sequences: Sequences, rows: Tensor) -> str:
    return _listed(first_shown(model, sequences, rows), len(rows))


def _listed(shown: Sequence[str], count: int) -> str:
    few = shown[:_SHOWN]
    return f"{'; '.join(few)}{'; ...' if count > len(few) else ''}"

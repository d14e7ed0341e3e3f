# SPDX-License-Identifier: Apache-2.0
"""A first look at partitioned data under a model: which sequences are possible, and how long they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pyro_ksd.common.checkpoints import digest
from pyro_ksd.common.part_runs import run_each
from pyro_ksd.common.progress import progress_bar
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.impossible_sequences import find_impossible, first_shown, impossible_message
from pyro_ksd.models.session_state import Session
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.partitions import Part, PartitionedSequences

MOST_NAMED = 1000
"""Of how many impossible sequences the sites are found, the first ones."""


@dataclass(frozen=True, eq=False)
class InSession:
    """A task that asks a model, in the session of the process that the model comes from.

    :param task: a function of one part.
    :param session: of that process; ``None`` if the task does not depend on it.
    """

    task: Callable[[Any], Any]
    session: Session | None

    @staticmethod
    def of(task: Callable[[Any], Any], model: SequenceModel) -> InSession:
        """The task in the session of this process."""
        return InSession(task, None if model.is_threadsafe else Session.now())

    def __call__(self, part: Any) -> Any:
        if self.session is None:
            return self.task(part)
        with self.session.entered():
            return self.task(part)


@dataclass(frozen=True, eq=False)
class PossiblePart:
    """The sequences of a part that a model allows.

    :param part: all of its sequences.
    :param impossible: long ``[M]``, the rows of the part that are impossible.
    :param first_row: the number of the first possible sequence among those of all parts.
    """

    part: Part
    impossible: Tensor
    first_row: int

    def __len__(self) -> int:
        return (self.part.num_rows or 0) - len(self.impossible)

    def load(self) -> Sequences:
        """The possible sequences."""
        sequences = self.part.load()
        if not len(self.impossible):
            return sequences
        return sequences[torch.ones(len(sequences), dtype=torch.bool).index_fill_(0, self.impossible, False)]


@dataclass(frozen=True, eq=False)
class Survey:
    """What a model says of partitioned data.

    :ivar data: with the number of rows of each part.
    :ivar impossible: long ``[M]``, the rows to which the model gives probability 0, ascending.
    :ivar sites: of the first of them, the site that makes it so, or ``""``.
    :ivar message: how many there are and the first of them, in words; ``""`` if there are none.
    :ivar lengths: long ``[L]``, how many possible sequences have the length 0, 1, ...
    :ivar digest: a short word for all sequences and their log-joints.
    """

    data: PartitionedSequences
    impossible: Tensor
    sites: list[str]
    message: str
    lengths: Tensor
    digest: str

    @property
    def num_possible(self) -> int:
        """The number of possible sequences."""
        return int(self.lengths.sum())

    def rows(self, possible: Tensor) -> Tensor:
        """The rows of the data from the numbers of sequences among the possible ones, long ``[K]``."""
        before = self.impossible - torch.arange(len(self.impossible))  # possible ones before each impossible one
        return possible + torch.searchsorted(before, possible, right=True)

    def parts(self) -> list[PossiblePart]:
        """The parts with their possible sequences, without those that have none."""
        found = []
        begin = 0
        for part in self.data.parts:
            end = begin + (part.num_rows or 0)
            low, high = torch.searchsorted(self.impossible, torch.tensor([begin, end])).tolist()
            own = PossiblePart(part, self.impossible[low:high] - begin, begin - low)
            if len(own):
                found.append(own)
            begin = end
        return found


def surveyed(model: SequenceModel, data: PartitionedSequences, *, progress: bool = False) -> Survey:
    """Looks at all sequences under a model.

    :raises ValueError: naming the part, if the data are not meant for the model, or the model gives NaN to a sequence.

    >>> from pyro_ksd.models import MarkovSequence
    >>> always_a = MarkovSequence.from_transitions(torch.tensor([1.0, 0.0]), torch.eye(2), stop=0.5)
    >>> found = surveyed(always_a, PartitionedSequences.of([["a", "ab"], ["aa"]], "ab"))
    >>> found.impossible.tolist(), found.lengths.tolist(), found.rows(torch.tensor([0, 1])).tolist()
    ([1], [0, 1, 1], [0, 2])
    """
    data = data.counted(progress=progress)
    sizes = [part.num_rows or 0 for part in data.parts]
    begins = (torch.tensor(sizes).cumsum(0) - torch.tensor(sizes)).tolist()
    task = InSession.of(_Look(model), model)
    items = [(part, begin) for part, begin in zip(data.parts, begins, strict=True) if part.num_rows]
    found: list[_PartLook] = []
    with progress_bar(total=len(items), show=progress, desc="log-probabilities", unit="parts") as bar:
        for look in run_each(task, items, name="model", in_threads=model.is_threadsafe):
            found.append(look)
            bar.update()
    impossible = torch.cat([torch.zeros(0, dtype=torch.long), *(look.impossible for look in found)])
    shown = [words for look in found for words in look.shown]
    width = max((len(look.lengths) for look in found), default=0)
    lengths = torch.zeros(width, dtype=torch.long)
    for look in found:
        lengths[: len(look.lengths)] += look.lengths
    words = [look.digest for look in found]
    return Survey(
        data=data,
        impossible=impossible,
        sites=[site for look in found for site in look.sites][:MOST_NAMED],
        message=impossible_message(len(impossible), sum(sizes), shown),
        lengths=lengths,
        digest=digest(torch.tensor([ord(letter) for word in words for letter in word])),
    )


@dataclass(frozen=True, eq=False)
class _PartLook:
    """What a model says of one part; rows are those of the data."""

    impossible: Tensor
    sites: list[str]
    shown: list[str]
    lengths: Tensor
    digest: str


@dataclass(frozen=True, eq=False)
class _Look:
    """A look at one part under a model."""

    model: SequenceModel

    def __call__(self, item: tuple[Part, int]) -> _PartLook:
        part, begin = item
        sequences = part.load()
        try:
            self.model.check_data(sequences)
            found = find_impossible(self.model, sequences)
        except ValueError as error:
            raise ValueError(f"{part.name}, which begins with sequence {begin}: {error}") from error
        named = sequences[found.rows[:MOST_NAMED]]
        return _PartLook(
            impossible=found.rows + begin,
            sites=self.model.for_rows(begin).impossible_sites(named) if len(named) else [],
            shown=first_shown(self.model, sequences, found.rows, begin),
            lengths=sequences.lengths[found.others].bincount(),
            digest=digest(sequences.narrowed().tokens, sequences.lengths, found.log_joint.double()),
        )

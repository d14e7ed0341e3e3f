# SPDX-License-Identifier: Apache-2.0
r"""Weighted automata recovered from the log-joints of short sequences.

The Hankel matrix of a function :math:`f` of sequences has an entry :math:`f(pq)` for each prefix :math:`p` and suffix
:math:`q`. If its rank is a finite number :math:`r`, then :math:`f` is a weighted automaton with :math:`r` states
(Carlyle and Paz, 1971; Fliess, 1974), and finitely many entries tell which one: with :math:`H_{pq} = f(pq)` for
:math:`r` prefixes and suffixes such that :math:`H` is invertible,

.. math:: A_s = H^{-1} H_s, \quad (H_s)_{pq} = f(p s q), \quad b = H^{-1} (f(p))_p

and the vector of a prefix :math:`p` is :math:`(f(pq))_q`. A program with ``K`` hidden states is such a function of rank
``K`` at most, whatever its order (Hsu, Kakade and Zhang, 2012). No prefix is empty here, as many programs do not define
the probability of the empty sequence: another state is the one before the first symbol.

The matrices have entries of both signs, so a small product of them may consist of rounding errors alone. Therefore a
twin is recovered from log-joints with other rounding errors, which are larger. Numbers that differ between the two are
NaN: the model must be asked for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pyro_ksd.common.chunk_sizes import EVALUATED_SEQUENCES, in_chunks
from pyro_ksd.edits.splices import Edits
from pyro_ksd.models.distributions.weighted_automaton import WeightedAutomaton
from pyro_ksd.sequences.container import Sequences

LogJoint = Callable[[Sequences], Tensor]
"""Gives the log-joints of ``W`` sequences under each of ``K`` models, ``[K, W]``."""

Word = tuple[int, ...]

_MOST_STATES = 16
_CANDIDATES = 64  # prefixes, and as many suffixes, out of which those of the Hankel matrix are chosen
_LENGTHS = 6  # of the longest prefix
_SMALLEST = 1e-11  # entry of the Hankel matrix, scaled so that the largest of each row is 1, that is none of rounding
_BETTER = 1.5  # times as large the smallest pivot must become for longer prefixes and suffixes
_ROUNDING = 1e-15  # of log-joints, absolute and relative: what the twin is recovered with
_SURE = 1e-9  # how far logarithms may differ between an automaton and its twin
_TOGETHER = 5 * EVALUATED_SEQUENCES


@dataclass(frozen=True)
class HankelWords:
    """Prefixes and suffixes whose Hankel matrix is invertible.

    :ivar prefixes: none of them empty.
    :ivar suffixes: as many.
    """

    prefixes: tuple[Word, ...]
    suffixes: tuple[Word, ...]

    @property
    def states(self) -> int:
        """The rank of the Hankel matrix."""
        return len(self.prefixes)


class RecoveredAutomaton:
    """The automata of ``K`` models; NaN stands for numbers of which they are not sure.

    :param automaton: the automata.
    :param twin: the same with other rounding errors.
    :param states: how many states they have.
    """

    def __init__(self, automaton: WeightedAutomaton, twin: WeightedAutomaton, states: int) -> None:
        self.states = states
        self._automaton = automaton
        self._twin = twin

    def log_joint(self, tokens: Tensor, rows: Tensor) -> Tensor:
        """As :meth:`~pyro_ksd.models.distributions.weighted_automaton.WeightedAutomaton.log_joint`."""
        return _sure(self._automaton.log_joint(tokens, rows), self._twin.log_joint(tokens, rows))

    def log_ratio(self, sequences: Sequences, edits: Edits, rows: Tensor | None = None) -> Tensor:
        """As :meth:`~pyro_ksd.models.distributions.weighted_automaton.WeightedAutomaton.log_ratio`."""
        return _sure(self._automaton.log_ratio(sequences, edits, rows), self._twin.log_ratio(sequences, edits, rows))

    def log_ratios(self, sequences: Sequences, edits: Edits) -> Tensor:
        """As :meth:`~pyro_ksd.models.distributions.weighted_automaton.WeightedAutomaton.log_ratios`."""
        return _sure(self._automaton.log_ratios(sequences, edits), self._twin.log_ratios(sequences, edits))


def _sure(found: Tensor, twin: Tensor) -> Tensor:
    """The numbers that an automaton and its twin agree on, NaN for others; ``log 0`` may be a rounding error, too."""
    return found.masked_fill(~((found - twin).abs() <= _SURE), torch.nan)  # the difference of -inf and -inf is NaN


def hankel_words(log_joint: LogJoint, alphabet_size: int, most: int) -> HankelWords | None:
    """Prefixes and suffixes from which the automata of some models can be recovered.

    Words grow by one symbol at a time. Out of those chosen before and their continuations, at random if there are too
    many, those are chosen whose Hankel matrix is best conditioned under all models, by Gaussian elimination with
    complete pivoting, until the rank does not grow any more and the smallest pivot hardly.

    :param most: the largest number of sequences to evaluate at a time.
    :returns: ``None`` if there are none, or if more sequences would have to be evaluated.

    >>> from pyro_ksd.examples import random_walk
    >>> walk = random_walk(3)  # a chain: its states are the last symbols
    >>> hankel_words(lambda words: walk.log_joint(words)[None], 3, 1000).states
    3
    """
    generator = torch.Generator().manual_seed(0)
    count = min(_CANDIDATES, int(most**0.5))
    if not count:
        return None
    letters: list[Word] = [(symbol,) for symbol in range(alphabet_size)]
    best: HankelWords | None = None
    largest = 0.0
    prefixes = _some([], letters, count, generator)
    suffixes = _some([()], letters, count, generator)
    for _ in range(_LENGTHS):
        hankel = _log_values(log_joint, [before + after for before in prefixes for after in suffixes], alphabet_size)
        chosen = _pivots(_balanced(hankel.view(len(hankel), len(prefixes), len(suffixes)))[0])
        if chosen is None:
            return None
        rows, columns, smallest = chosen
        words = HankelWords(tuple(prefixes[row] for row in rows), tuple(suffixes[column] for column in columns))
        if best is not None and words.states == best.states and smallest < _BETTER * largest:
            return best
        if not words.states or words.states**2 * alphabet_size > most:
            return None
        best = words
        largest = smallest
        longer = [word + letter for word in words.prefixes for letter in letters]
        prefixes = _some(words.prefixes, longer, count, generator)
        longer = [letter + word for word in words.suffixes for letter in letters]
        suffixes = _some([*words.suffixes, ()], longer, count, generator)
    return best


def recovered(log_joint: LogJoint, alphabet_size: int, words: HankelWords) -> RecoveredAutomaton:
    """The automata of ``K`` models, from their log-joints of short sequences.

    >>> from pyro_ksd.models import HiddenMarkovSequence
    >>> mixed, even = [[0.9, 0.1], [0.2, 0.8]], [0.5, 0.5]
    >>> model = HiddenMarkovSequence(torch.tensor(even), torch.tensor(mixed), torch.tensor([[0.7, 0.3], even]), 0.1)
    >>> words = hankel_words(lambda words: model.log_joint(words)[None], 2, 1000)
    >>> found = recovered(lambda words: model.log_joint(words)[None], 2, words)
    >>> data = torch.tensor([[0, 1, 1, 0, 0, 1, 0, 1]])
    >>> found.log_joint(data, torch.tensor([0])).allclose(model.log_joint(Sequences.of(data, 2)).double())
    True
    """
    before, after = words.prefixes, words.suffixes
    between: list[Word] = [(symbol,) for symbol in range(alphabet_size)]
    asked = [one + other for one in before for other in after]
    asked += [one + letter + other for letter in between for one in before for other in after]
    asked += [letter + other for letter in between for other in after]
    asked += [*before, ()]
    values = _log_values(log_joint, asked, alphabet_size)
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(values.shape, dtype=torch.double, generator=generator)
    other = torch.where(values.isfinite(), values + _ROUNDING * (1 + values.abs()) * noise, values)
    rank = words.states
    return RecoveredAutomaton(_automaton(values, rank, alphabet_size), _automaton(other, rank, alphabet_size), rank)


def _automaton(values: Tensor, rank: int, alphabet_size: int) -> WeightedAutomaton:
    """The automata from the log-values of all words, ``[K, W]``, in the order of :func:`recovered`."""
    square = rank**2
    parts = values.split([square, alphabet_size * square, alphabet_size * rank, rank, 1], 1)
    hankel, of_rows, of_columns = _balanced(parts[0].view(-1, rank, rank))
    log_moves = parts[1].view(-1, alphabet_size, rank, rank) - of_rows[:, None] - of_columns[:, None]
    log_starts = parts[2].view(-1, alphabet_size, rank) - of_columns
    log_stops = parts[3].view(-1, rank, 1) - of_rows
    log_factor = log_starts.amax((1, 2))
    log_factor = log_factor.where(log_factor.isfinite(), torch.zeros_like(log_factor))
    count = len(values)
    first = values.new_zeros(count, rank + 1)
    first[:, 0] = 1
    by_symbol = values.new_zeros(count, alphabet_size, rank + 1, rank + 1)
    by_symbol[:, :, 0, 1:] = (log_starts - log_factor[:, None, None]).exp()
    by_symbol[:, :, 1:, 1:] = _solved(hankel[:, None], log_moves.exp())
    last = values.new_empty(count, rank + 1)
    last[:, 0] = (parts[4][:, 0] - log_factor).exp()
    last[:, 1:] = _solved(hankel, log_stops.exp())[..., 0]
    return WeightedAutomaton(first, by_symbol, last, log_factor)


def _solved(matrix: Tensor, values: Tensor) -> Tensor:
    """``matrix⁻¹ values``; not finite where a matrix is singular."""
    found, failed = torch.linalg.solve_ex(matrix, values)
    return torch.where((failed > 0)[..., None, None], torch.nan, found)


def _balanced(log_values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Matrices, scaled so that the largest entry of each row and column is about 1.

    :param log_values: ``[K, P, Q]``, their logarithms.
    :returns: the matrices, and the logarithms of the scales of the rows ``[K, P, 1]`` and of the columns ``[K, 1, Q]``.
    """
    of_columns = torch.zeros_like(log_values[:, :1])
    for _ in range(4):
        of_rows = _finite((log_values - of_columns).amax(2, keepdim=True))
        of_columns = _finite((log_values - of_rows).amax(1, keepdim=True))
    return (log_values - of_rows - of_columns).exp(), of_rows, of_columns


def _finite(log_scale: Tensor) -> Tensor:
    return log_scale.where(log_scale.isfinite(), torch.zeros_like(log_scale))


def _pivots(matrices: Tensor) -> tuple[list[int], list[int], float] | None:
    """Rows and columns that span those of some matrices, all by the same numbers, and the smallest pivot.

    Each pivot is the entry that is the largest one under the matrix where it is smallest.

    :param matrices: ``[K, P, Q]``.
    :returns: ``None`` if the ranks differ, or are too large.
    """
    rest = matrices.clone()
    rows: list[int] = []
    columns: list[int] = []
    smallest = 1.0
    while len(rows) <= _MOST_STATES:
        if not bool(rest.isfinite().all()):
            return None
        if float(rest.abs().max()) < _SMALLEST:
            return rows, columns, smallest
        least = rest.abs().amin(0)
        row, column = divmod(int(least.argmax()), least.shape[1])
        pivot = float(least[row, column])
        if pivot < _SMALLEST:
            return None
        rest = rest - rest[:, :, column, None] * rest[:, row, None] / rest[:, row, column, None, None]
        rest[:, row] = 0
        rest[:, :, column] = 0
        rows.append(row)
        columns.append(column)
        smallest = min(smallest, pivot)
    return None


def _some(kept: Sequence[Word], others: Sequence[Word], count: int, generator: torch.Generator) -> list[Word]:
    """The words to keep, and of the others so many that there are ``count`` in all."""
    both = list(dict.fromkeys([*kept, *others]))
    first = len(set(kept))
    chosen = torch.randperm(len(both) - first, generator=generator)[: max(0, count - first)].sort().values
    return both[:first] + [both[first + number] for number in chosen.tolist()]


def _log_values(log_joint: LogJoint, words: Sequence[Word], alphabet_size: int) -> Tensor:
    """The log-joints of words, double ``[K, W]``, each evaluated once."""
    numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
    width = max(map(len, numbers))
    tokens = torch.tensor([[*word, *[0] * (width - len(word))] for word in numbers]).view(len(numbers), width)
    every = Sequences(tokens, torch.tensor([len(word) for word in numbers]), alphabet_size)
    parts = [log_joint(every[rows]).double() for rows in in_chunks(torch.arange(len(every)), _TOGETHER)]
    return torch.cat(parts, 1)[:, [numbers[word] for word in words]]

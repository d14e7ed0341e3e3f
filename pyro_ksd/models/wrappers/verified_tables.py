# SPDX-License-Identifier: Apache-2.0
r"""Tables in place of a model where a wrong number of theirs cannot count much: for null draws.

A table of all words of up to ``k + 1`` symbols gives the log-ratios of a model of order ``k`` at a small part of the
cost, see :class:`~pyro_ksd.models.TabulatedModel`. No number of comparisons proves that a program is of that order: a
rare dependence on symbols further back may be missing from all of them. So tables are used without the user's word only

- for the statistics of data sets that were drawn from the model itself, never for those of the data,
- after a comparison with the model on every one of these sequences, and on :data:`SHARE` of their edits, chosen at
  random.

Where they disagree in one number, all null draws are made again by the model. If a share :math:`q` of the edits had
other log-ratios than the tables say, :math:`m` comparisons would overlook it with the probability :math:`(1 - q)^m`: so
with 95 % confidence :math:`q < 3 / m`.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

import torch
from torch import Tensor

from pyro_ksd.common.chunk_sizes import SCORED_PAIRS
from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.edits.splices import Edits
from pyro_ksd.edits.weighted_edits import edit_bounds
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.distributions.factor_table import FactorTable
from pyro_ksd.models.distributions.sampling import PAD
from pyro_ksd.models.wrappers.base import ModelWrapper
from pyro_ksd.models.wrappers.tabulated import agrees, tabulate
from pyro_ksd.sequences.container import Sequences

SHARE = 0.01
"""The share of the edits of drawn sequences on which tables are compared with the model."""

_ORDERS = (1, 2, 3)
_LEAST = 100  # edits that are compared, if there are so many
_WORTHWHILE = 4  # how many edits the data must have for each word of a table
_TOLERANCE = 1e-6  # of log-joints, absolute and relative; so that of log-ratios is relative to the log-joints


class DisagreeingTablesError(Exception):
    """Tables and model say different things; whoever uses the tables goes on without them."""


@dataclass(frozen=True, eq=False)
class _Comparison:
    """What is to be compared with the models.

    :ivar sequences: ``N`` of them.
    :ivar edits: ``E`` of their edits.
    :ivar which: long ``[N]``, the model of each sequence.
    :ivar found: ``[E]``, the log-ratios of the edits from the tables.
    """

    sequences: Sequences
    edits: Edits
    which: Tensor
    found: Tensor

    @property
    def edited(self) -> Sequences:
        return self.edits.apply(self.sequences)


class VerifiedTables:
    """The tables of ``K`` models, compared with the models wherever they are used.

    Comparisons wait until there are enough of them, as programs take many sequences at once: results that the tables
    have a part in are valid only after :meth:`confirm`.

    :param table: the tables.
    :param log_joint: gives the log-joint of each sequence under its own model, ``[N]``, from the sequences and the
        models, long ``[N]``.
    :ivar order: of the tables.

    >>> from pyro_ksd.examples import random_walk
    >>> walk, data = random_walk(3), Sequences.of(["abacb", "bcab"])
    >>> table = tabulate(lambda words: walk.log_joint(words)[None], 3, order=1)
    >>> tables = VerifiedTables(table, lambda sequences, which: walk.log_joint(sequences))
    >>> edits = zs().edits(data)
    >>> tables.log_ratio(data, edits, torch.zeros(2, dtype=torch.long)).allclose(walk.log_ratio(data, edits))
    True
    >>> tables.confirm()  # nothing to complain of
    """

    def __init__(self, table: FactorTable, log_joint: Callable[[Sequences, Tensor], Tensor]) -> None:
        self.order = table.order
        self._table = table
        self._log_joint = log_joint
        self._generator = torch.Generator().manual_seed(0)
        self._waiting: list[_Comparison] = []

    def begin(self, seed: int) -> None:
        """Begins with other sequences, whose compared edits depend on none before them.

        :param seed: of the choice of these edits.
        """
        self._generator.manual_seed(seed)
        self._waiting = []

    def log_ratio(self, sequences: Sequences, edits: Edits, which: Tensor) -> Tensor:
        """The log-ratio of each edit under the model of the edited sequence, ``[E]``, from the tables.

        All sequences, and some of the edits, are to be compared.

        :param which: long ``[N]``, the model of each sequence.
        :raises DisagreeingTablesError: if many comparisons were waiting, and one has failed.
        """
        found = self._table.log_ratio(sequences, edits, rows=which)
        count = max(_LEAST, round(SHARE * len(edits)))
        some = torch.randperm(len(edits), generator=self._generator)[:count].sort().values
        self._waiting.append(_Comparison(sequences, edits.select(some), which, found[some]))
        if sum(len(each.which) + len(each.edits) for each in self._waiting) > SCORED_PAIRS:
            self.confirm()
        return found

    def confirm(self) -> None:
        """Makes all comparisons that wait.

        :raises DisagreeingTablesError: if the tables give another log-joint to a sequence, or another log-ratio to an
            edit.
        """
        waiting = self._waiting
        self._waiting = []
        if not waiting:
            return
        everything = Sequences.cat([part for each in waiting for part in (each.sequences, each.edited)])
        which = torch.cat([part for each in waiting for part in (each.which, each.which[each.edits.owner])])
        log_joint = self._log_joint(everything, which).double()
        sizes = [size for each in waiting for size in (len(each.which), len(each.edits))]
        parts = log_joint.split(sizes)
        for each, own, edited in zip(waiting, parts[::2], parts[1::2], strict=True):
            check_same(self._table.log_joint(each.sequences.padded(PAD), each.which), own, own)
            before = own[each.edits.owner]
            check_same(each.found, edited - before, before)

    def check(self, sequences: Sequences, edits: Edits, log_ratio: Tensor, log_joint: Tensor) -> None:
        """Compares with what the models say of all edits.

        :param log_ratio: ``[K, E]``, the log-ratios of the edits under each model.
        :param log_joint: ``[K, N]``, the log-joints of the sequences.
        :raises DisagreeingTablesError: if they differ anywhere.
        """
        check_same(self._table.log_ratios(sequences, edits), log_ratio, log_joint[:, edits.owner])


def check_same(found: Tensor, expected: Tensor, log_joint: Tensor) -> None:
    """Checks that tables say what models say, but for rounding.

    :param log_joint: of the size that decides what rounding is.
    :raises DisagreeingTablesError: if they do not.

    >>> check_same(torch.tensor([1.0, -torch.inf]), torch.tensor([1.0, -torch.inf]), torch.tensor([-9.0, -9.0]))
    """
    near = (found - expected).abs() <= _TOLERANCE * (1 + log_joint.abs())
    if not bool((near | (found == expected)).all()):
        raise DisagreeingTablesError


def found_order(model: SequenceModel, data: Sequences) -> int | None:
    """The smallest order out of 1, 2 and 3 whose table agrees with a model on the data and on some of their edits.

    :returns: ``None`` if there is none, or if so large a table would not be worthwhile.

    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.models import constrain
    >>> data = random_walk(3).draw(20, torch.Generator().manual_seed(0))
    >>> found_order(random_walk(3), data)
    1
    >>> found_order(constrain(random_walk(3), lambda sequences: sequences.lengths < 100), data) is None
    False
    """
    if model.takes_covariates or data.covariates is not None:
        return None
    most = int(edit_bounds(zs(), data).sum()) // _WORTHWHILE
    for order in _ORDERS:
        if model.alphabet_size ** (order + 1) > most:
            return None
        try:
            table = tabulate(lambda words: model.log_joint(words)[None], model.alphabet_size, order)
        except (RuntimeError, ValueError):  # a program that refuses some words
            return None
        if agrees(model, table, data):
            return order
    return None


class WithVerifiedTables(ModelWrapper):
    """A model whose log-ratios come from :class:`VerifiedTables`; it draws and scores sequences itself.

    :param model: the model within.
    :param order: of the table.
    :ivar tables: to be confirmed after use.

    >>> from pyro_ksd.examples import random_walk
    >>> walk, data = random_walk(3), Sequences.of(["abacb", "bcab"])
    >>> edits = zs().edits(data)
    >>> WithVerifiedTables(walk, order=1).log_ratio(data, edits).allclose(walk.log_ratio(data, edits))
    True
    """

    def __init__(self, model: SequenceModel, order: int) -> None:
        super().__init__(model)
        table = tabulate(lambda words: self.model.log_joint(words)[None], self.alphabet_size, order)
        self.tables = VerifiedTables(table, lambda sequences, _: self.model.log_joint(sequences))

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        return self.tables.log_ratio(sequences, edits, torch.zeros_like(sequences.lengths))


def with_verified_tables(model: SequenceModel, data: Sequences) -> tuple[SequenceModel, VerifiedTables] | None:
    """A model for null draws, whose innermost model has verified tables, and these tables.

    :param data: for which the model is.
    :returns: ``None`` if the model finds ratios quickly itself, or if no order was found.

    >>> from pyro_ksd.examples import random_walk
    >>> with_verified_tables(random_walk(3), Sequences.of(["abacb", "bcab"])) is None  # it needs no table
    True
    """
    if model.has_quick_ratios:
        return None
    if isinstance(model, ModelWrapper):
        inner = with_verified_tables(model.model, data)
        if inner is None:
            return None
        around = copy(model)
        around.model, tables = inner
        return around, tables
    order = found_order(model, data)
    if order is None:
        return None
    quick = WithVerifiedTables(model, order)
    return quick, quick.tables

# SPDX-License-Identifier: Apache-2.0
r"""Tables and automata in place of a model where a wrong number of theirs cannot count much: for null draws.

A table of all words of up to ``k + 1`` symbols gives the log-ratios of a model of order ``k`` at a small part of the
cost, see :class:`~pyro_ksd.models.TabulatedModel`. For a model with few hidden states, which has no order, a weighted
automaton does the same, see ``models/wrappers/recovered_automaton``. No number of comparisons proves that a program is
of that order, or has so few states: a rare dependence on symbols further back may be missing from all of them. So they
are used without the user's word only

- for the statistics of data sets that were drawn from the model itself, never for those of the data,
- after a comparison with the model on every one of these sequences, and on :data:`SHARE` of their edits, chosen at
  random.

Where they disagree in one number, all null draws are made again by the model. If a share :math:`q` of the edits had
other log-ratios than they say, :math:`m` comparisons would overlook it with the probability :math:`(1 - q)^m`: so with
95 % confidence :math:`q < 3 / m`. An automaton does not know numbers that may be rounding errors, such as the ratios of
impossible edits. The model is asked for these.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from pyro_ksd.common.chunk_sizes import SCORED_PAIRS
from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.edits.splices import Edits
from pyro_ksd.edits.weighted_edits import edit_bounds
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.distributions.sampling import PAD
from pyro_ksd.models.evaluation import evaluated_ratio_each
from pyro_ksd.models.model_batch import ModelBatch, ModelList
from pyro_ksd.models.wrappers.base import ModelWrapper
from pyro_ksd.models.wrappers.recovered_automaton import HankelWords, LogJoint, hankel_words, recovered
from pyro_ksd.models.wrappers.tabulated import agrees, some_sequences, tabulate
from pyro_ksd.sequences.container import Sequences

SHARE = 0.01
"""The share of the edits of drawn sequences on which tables or automata are compared with the model."""

Form = int | HankelWords
"""What makes tables or automata of any models of a kind: the order, or short sequences."""

_ORDERS = (1, 2, 3)
_LEAST = 100  # edits that are compared, if there are so many
_WORTHWHILE = 4  # how many edits the data must have for each word of a table, or to recover an automaton from
_TOLERANCE = 1e-6  # of log-joints, absolute and relative; so that of log-ratios is relative to the log-joints
_TOLERANCE_OF_AUTOMATA = 1e-9  # the same where a number was compared with that of a twin
_UNSURE = 0.5  # the share of sequences that an automaton does not know, up to which it is worthwhile


class DisagreementError(Exception):
    """Tables or automata say other things than the model; whoever uses them goes on without them."""


class StandIn(Protocol):
    """Log-joints and log-ratios of ``K`` models; NaN for those that the models must be asked for."""

    def log_joint(self, tokens: Tensor, rows: Tensor) -> Tensor:
        """``[R]``, from long ``tokens`` ``[R, T]`` padded with -1 and the model of each sequence, long ``[R]``."""

    def log_ratio(self, sequences: Sequences, edits: Edits, *, rows: Tensor) -> Tensor:
        """``[E]``, under the model of the edited sequence, long ``[N]``."""

    def log_ratios(self, sequences: Sequences, edits: Edits) -> Tensor:
        """``[K, E]``, under each model."""


def stand_in(log_joint: LogJoint, alphabet_size: int, form: Form) -> StandIn:
    """The tables or automata of ``K`` models.

    :param log_joint: gives the log-joints of ``W`` sequences under each model, ``[K, W]``.
    """
    if isinstance(form, HankelWords):
        return recovered(log_joint, alphabet_size, form)
    return tabulate(log_joint, alphabet_size, form)


def found_by(form: Form | None) -> dict[str, int]:
    """The order of tables, or the number of states of automata, by the names that results have for them.

    >>> found_by(2), found_by(None)
    ({'verified_order': 2}, {})
    """
    if form is None:
        return {}
    return {"verified_states": form.states} if isinstance(form, HankelWords) else {"verified_order": form}


def kept_as(what: str, form: Form | None) -> str:
    """How a checkpoint calls draws: those by tables or automata are others than those by the model.

    >>> kept_as("draws", 1), kept_as("draws", None)
    ('draws by tables', 'draws')
    """
    if form is None:
        return what
    return f"{what} by automata" if isinstance(form, HankelWords) else f"{what} by tables"


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


class VerifiedStandIn:
    """The tables or automata of ``K`` models, compared with the models wherever they are used.

    Comparisons wait until there are enough of them, as programs take many sequences at once: results that the tables
    have a part in are valid only after :meth:`confirm`.

    :param models: the models.
    :param alphabet_size: the number of symbols.
    :param form: of the tables or automata.
    :ivar form: the same.

    >>> from pyro_ksd.examples import random_walk
    >>> walk, data = random_walk(3), Sequences.of(["abacb", "bcab"])
    >>> tables = VerifiedStandIn(ModelList([walk]), 3, form=1)
    >>> edits = zs().edits(data)
    >>> tables.log_ratio(data, edits, torch.zeros(2, dtype=torch.long)).allclose(walk.log_ratio(data, edits))
    True
    >>> tables.confirm()  # nothing to complain of
    """

    def __init__(self, models: ModelBatch, alphabet_size: int, form: Form) -> None:
        self.form = form
        self._table = stand_in(models.log_joint, alphabet_size, form)
        self._models = models
        self._tolerance = _TOLERANCE_OF_AUTOMATA if isinstance(form, HankelWords) else _TOLERANCE
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
        :raises DisagreementError: if many comparisons were waiting, and one has failed.
        """
        found = self._table.log_ratio(sequences, edits, rows=which)
        unsure = found.isnan().nonzero()[:, 0]
        if len(unsure):
            found[unsure] = evaluated_ratio_each(self._models, sequences, edits.select(unsure), which)
        count = max(_LEAST, round(SHARE * len(edits)))
        some = torch.randperm(len(edits), generator=self._generator)[:count].sort().values
        self._waiting.append(_Comparison(sequences, edits.select(some), which, found[some]))
        if sum(len(each.which) + len(each.edits) for each in self._waiting) > SCORED_PAIRS:
            self.confirm()
        return found

    def confirm(self) -> None:
        """Makes all comparisons that wait.

        :raises DisagreementError: if the tables give another log-joint to a sequence, or another log-ratio to an
            edit.
        """
        waiting = self._waiting
        self._waiting = []
        if not waiting:
            return
        everything = Sequences.cat([part for each in waiting for part in (each.sequences, each.edited)])
        which = torch.cat([part for each in waiting for part in (each.which, each.which[each.edits.owner])])
        log_joint = self._models.log_joint_each(everything, which).double()
        sizes = [size for each in waiting for size in (len(each.which), len(each.edits))]
        parts = log_joint.split(sizes)
        for each, own, edited in zip(waiting, parts[::2], parts[1::2], strict=True):
            found = self._table.log_joint(each.sequences.padded(PAD), each.which)
            check_same(found.where(~found.isnan(), own), own, own, self._tolerance)
            before = own[each.edits.owner]
            check_same(each.found, edited - before, before, self._tolerance)

    def check(self, sequences: Sequences, edits: Edits, log_ratio: Tensor, log_joint: Tensor) -> None:
        """Compares with what the models say of all edits.

        :param log_ratio: ``[K, E]``, the log-ratios of the edits under each model.
        :param log_joint: ``[K, N]``, the log-joints of the sequences.
        :raises DisagreementError: if they differ anywhere.
        """
        found = self._table.log_ratios(sequences, edits)
        check_same(found.where(~found.isnan(), log_ratio), log_ratio, log_joint[:, edits.owner], self._tolerance)


def check_same(found: Tensor, expected: Tensor, log_joint: Tensor, tolerance: float = _TOLERANCE) -> None:
    """Checks that tables say what models say, but for rounding.

    :param log_joint: of the size that decides what rounding is.
    :param tolerance: absolute, and relative to this size.
    :raises DisagreementError: if they do not.

    >>> check_same(torch.tensor([1.0, -torch.inf]), torch.tensor([1.0, -torch.inf]), torch.tensor([-9.0, -9.0]))
    """
    difference = (found - expected).abs()
    near = difference.isfinite() & (difference <= tolerance * (1 + log_joint.abs()))
    if not bool((near | (found == expected)).all()):
        raise DisagreementError


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
    most = _worthwhile(data)
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


def found_words(models: Sequence[SequenceModel], data: Sequences) -> HankelWords | None:
    """Short sequences from which automata of models can be recovered; they agree on the data and on some edits.

    :param models: of a kind, such as one program under a few posterior draws.
    :returns: ``None`` if there are none, or if they are too many to be worthwhile.

    >>> from pyro_ksd.models import HiddenMarkovSequence
    >>> mixed, even = [[0.9, 0.1], [0.2, 0.8]], [0.5, 0.5]
    >>> model = HiddenMarkovSequence(torch.tensor(even), torch.tensor(mixed), torch.tensor([[0.7, 0.3], even]), 0.1)
    >>> found_words([model], model.draw(20, torch.Generator().manual_seed(0))).states
    2
    """
    if models[0].takes_covariates or data.covariates is not None:
        return None
    size = models[0].alphabet_size
    batch = ModelList(models)
    try:
        words = hankel_words(batch.log_joint, size, _worthwhile(data))
        if words is None:
            return None
        automata = recovered(batch.log_joint, size, words)
    except (RuntimeError, ValueError):  # a program that refuses some words
        return None
    some = some_sequences(data)
    for index, expected in enumerate(batch.log_joint(some)):
        found = automata.log_joint(some.padded(PAD), torch.full_like(some.lengths, index))
        sure = ~found.isnan()
        if float(sure.double().mean()) < 1 - _UNSURE:
            return None
        try:
            check_same(found[sure], expected[sure], expected[sure], _TOLERANCE_OF_AUTOMATA)
        except DisagreementError:
            return None
    return words


def found_form(models: Sequence[SequenceModel], data: Sequences) -> Form | None:
    """The order of tables of models of a kind, or else what automata are recovered from; ``None`` without either."""
    order = found_order(models[0], data)
    return found_words(models, data) if order is None else order


def _worthwhile(data: Sequences) -> int:
    """For how many words it is worthwhile to ask a model."""
    return int(edit_bounds(zs(), data).sum()) // _WORTHWHILE


class WithStandIn(ModelWrapper):
    """A model whose log-ratios come from :class:`VerifiedStandIn`; it draws and scores sequences itself.

    :param model: the model within.
    :param form: of the table or automaton.
    :ivar stand_in: to be confirmed after use.

    >>> from pyro_ksd.examples import random_walk
    >>> walk, data = random_walk(3), Sequences.of(["abacb", "bcab"])
    >>> edits = zs().edits(data)
    >>> WithStandIn(walk, form=1).log_ratio(data, edits).allclose(walk.log_ratio(data, edits))
    True
    """

    def __init__(self, model: SequenceModel, form: Form) -> None:
        super().__init__(model)
        self.stand_in = VerifiedStandIn(ModelList([self.model]), self.alphabet_size, form)

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        return self.stand_in.log_ratio(sequences, edits, torch.zeros_like(sequences.lengths))


def with_stand_in(model: SequenceModel, data: Sequences) -> tuple[SequenceModel, VerifiedStandIn] | None:
    """A model for null draws, whose innermost model has a verified table or automaton, and this.

    :param data: for which the model is.
    :returns: ``None`` if the model finds ratios quickly itself, or if there is neither a table nor an automaton.

    >>> from pyro_ksd.examples import random_walk
    >>> with_stand_in(random_walk(3), Sequences.of(["abacb", "bcab"])) is None  # it needs no table
    True
    """
    if model.has_quick_ratios:
        return None
    if isinstance(model, ModelWrapper):
        inner = with_stand_in(model.model, data)
        if inner is None:
            return None
        around = copy(model)
        around.model, verified = inner
        return around, verified
    form = found_form([model], data)
    if form is None:
        return None
    quick = WithStandIn(model, form)
    return quick, quick.stand_in

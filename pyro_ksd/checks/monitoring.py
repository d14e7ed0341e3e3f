# SPDX-License-Identifier: Apache-2.0
"""Monitors: checks of a stream of sequences that may be looked at after every batch."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
import xarray as xr
from torch import Tensor

from pyro_ksd.common.checkpoints import Checkpoint, versions
from pyro_ksd.common.option_checks import check_level, check_number
from pyro_ksd.common.random_numbers import Seed, as_seed
from pyro_ksd.fit_tests.betting import Bets
from pyro_ksd.fit_tests.stream_evidence import StreamEvidence
from pyro_ksd.kernels.stein_matrices import FeatureMatrix, SteinMatrix
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.batch_independence import check_scores_alone
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.duck_typing import adapted
from pyro_ksd.models.impossible_sequences import checked_log_joint, find_impossible
from pyro_ksd.models.length_distribution import why_given_lengths
from pyro_ksd.models.wrappers.given_lengths import GivenLengths
from pyro_ksd.results.evidence_words import monitor_verdict
from pyro_ksd.results.monitor_groups import monitor_datatree
from pyro_ksd.sequences.alphabets import as_alphabet
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.drawn_lengths import DrawnLengths
from pyro_ksd.stein.stream_views import BoundedView, bounded_views
from pyro_ksd.stein.views import View
from pyro_ksd.stein.visits import Visits

_PROBED = 20  # sequences whose scores tell whether a checkpoint belongs to the model
_SHARE_REMEMBERED = 0.05  # of the run length


def ksd_monitor(
    model: Any,
    alphabet: int | Iterable[Any],
    *,
    level: float = 0.05,
    run_length: int | None = None,
    locations: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    seed: Seed = 0,
) -> Monitor:
    """Watches a stream of sequences: do they still come from the model?

    Pass batches of any size to :meth:`~pyro_ksd.checks.Monitor.update`, and look at
    :attr:`~pyro_ksd.checks.Monitor.rejected` whenever you like. If the model is right, the probability that it is
    *ever* rejected is at most ``level``. So you do not have to choose a sample size, and you can stop at any time.

    The monitor bets on what the past sequences have shown, see :mod:`pyro_ksd.fit_tests.betting`. It needs more
    sequences than :func:`~pyro_ksd.ksd_check` with a fixed sample size. This is the price of looking at any time.

    :param model: what :func:`~pyro_ksd.ksd_check` takes.
    :param alphabet: the number of symbols, or the symbols in the order of their codes. A batch may lack some of them.
    :param level: the largest probability with which a true model is ever rejected.
    :param run_length: to look for changes instead: the monitor forgets what was long ago, and while the model is right,
        the mean number of sequences until a false alarm is at least this number.
    :param locations: how many symbols at the end of each sequence are looked at, for networks, whose time grows with
        them; ``None`` for all.
    :param checkpoint: a file that keeps the state after each update. The same call goes on from there.
    :param seed: of the draws from the model with which lengths are compared, if it can be sampled.

    >>> import torch
    >>> from pyro_ksd.examples import random_walk
    >>> monitor = ksd_monitor(random_walk(3), "abc")
    >>> served = random_walk(3, hold=0.3).draw(600, torch.Generator().manual_seed(0)).over("abc")
    >>> for begin in range(0, 600, 100):
    ...     monitor.update(served[begin : begin + 100])
    >>> print(monitor.verdict())
    the model does not fit (p < 1e-16, first clear after 44 of 600 sequences); the most evidence is in surprise: the
    data are less probable than the model's own sequences
    """
    check_level(level)
    if run_length is not None:
        check_number("run_length", run_length, least=100)
    if locations is not None:
        check_number("locations", locations, least=1)
    kept = None if checkpoint is None else Checkpoint(checkpoint)
    return Monitor(model, alphabet, MonitorSettings(level, run_length, locations, as_seed(seed)), kept)


class Monitor:
    """A check of a stream of sequences, made by :func:`~pyro_ksd.ksd_monitor`.

    >>> from pyro_ksd.examples import random_walk
    >>> monitor = ksd_monitor(random_walk(3), "abc")
    >>> monitor.update(["abc", "ba", "cab"])
    >>> monitor.num_sequences, monitor.rejected, monitor.p_value
    (3, False, 1.0)
    """

    def __init__(
        self,
        model: Any,
        alphabet: int | Iterable[Hashable],
        settings: MonitorSettings,
        checkpoint: Checkpoint | None,
    ) -> None:
        self._given = adapted(model)
        self._alphabet = as_alphabet(alphabet)
        self._settings = settings
        self._checkpoint = checkpoint
        self._watched: _Watched | None = None
        self._evidence = StreamEvidence.at_start([], self._needed_level)
        if checkpoint is not None:
            checkpoint.begin({**versions(), "alphabet": str(self._alphabet), "settings": str(settings)})
            kept = checkpoint.get("evidence")
            self._evidence = self._evidence if kept is None else self._evidence.going_on_from(kept)

    @property
    def num_sequences(self) -> int:
        """How many sequences were looked at, those before a checkpoint among them."""
        return self._evidence.num_sequences

    @property
    def rejected(self) -> bool:
        """Whether the evidence was ever large enough."""
        return self._evidence.first_clear >= 0

    @property
    def p_value(self) -> float:
        """A p-value that holds at all times together, and never grows. NaN where changes are looked for."""
        if self._settings.run_length is not None:
            return math.nan
        return self._evidence.p_value

    def update(self, batch: Any) -> None:
        """Looks at further sequences.

        :param batch: what :meth:`~pyro_ksd.sequences.Sequences.of` takes, over the symbols of the alphabet.
        """
        sequences = batch if isinstance(batch, Sequences) else Sequences.of(batch, self._alphabet)
        if sequences.alphabet != self._alphabet:
            raise ValueError(
                f"batch: expected sequences over the alphabet of the monitor, {self._alphabet}, found "
                f"{sequences.alphabet}; use Sequences.of(batch, alphabet)"
            )
        if self._watched is None:
            watched = _Watched.of(self._given, sequences, self._settings)
            self._evidence = self._restored(watched)
            self._watched = watched
        begin = self._evidence.num_sequences - self._evidence.num_impossible
        psi, possible = self._watched.features(sequences, begin)
        self._evidence = self._evidence.after(psi, possible)
        if self._checkpoint is not None:
            self._checkpoint.put("evidence", self._evidence.parts())

    def result(self) -> xr.DataTree:
        """The evidence over time and the features that stand out, as groups for ArviZ."""
        if self._watched is None:
            raise ValueError("result: expected a monitor that has seen sequences; call update(batch) first")
        settings = {"seed": self._settings.seed, "level": self._settings.level}
        if self._settings.run_length is not None:
            settings["run_length"] = self._settings.run_length
        views = [one.view for one in self._watched.views]
        symbols = range(self._alphabet) if isinstance(self._alphabet, int) else self._alphabet
        return monitor_datatree(self._evidence, views, [str(symbol) for symbol in symbols], settings=settings)

    def verdict(self) -> str:
        """What the monitor has found until now, in a sentence."""
        return monitor_verdict(self.result())

    @property
    def _needed_level(self) -> float:
        """One over the evidence that is needed."""
        run_length = self._settings.run_length
        return self._settings.level if run_length is None else 1 / run_length

    def _restored(self, watched: _Watched) -> StreamEvidence:
        """The evidence at the start, or that of the checkpoint."""
        run_length = self._settings.run_length
        memory = None if run_length is None else _SHARE_REMEMBERED * run_length
        bets = [Bets.at_start(one.num_features, one.reach, memory) for one in watched.views]
        evidence = StreamEvidence.at_start(bets, self._needed_level)
        if self._checkpoint is None:
            return evidence
        watched.check_same_model(self._checkpoint)
        found = self._checkpoint.get("evidence")
        return evidence if found is None else evidence.going_on_from(found)


@dataclass(frozen=True)
class MonitorSettings:
    """How a monitor looks at a stream; see :func:`~pyro_ksd.ksd_monitor`."""

    level: float
    run_length: int | None
    locations: int | None
    seed: int


@dataclass(frozen=True, eq=False)
class _Watched:
    """A model and the views through which a stream is compared with it.

    :param first: some sequences of the first batch, which tell whether a checkpoint belongs to the model.
    :param lengths: compares lengths with those of draws; ``None`` if the model cannot be sampled.
    """

    model: SequenceModel
    views: tuple[BoundedView, ...]
    first: Sequences
    lengths: DrawnLengths | None

    @staticmethod
    def of(given: Any, sequences: Sequences, settings: MonitorSettings) -> _Watched:
        model = as_model(given, sequences)
        model.check_data(sequences)
        log_joint = checked_log_joint(model, sequences)
        check_scores_alone(model, sequences)
        given_lengths = bool(why_given_lengths(model, sequences, log_joint))
        draws = model.can_draw and not model.is_costly and sequences.covariates is None and not given_lengths
        views = bounded_views(
            sequences.alphabet_size, locations=settings.locations, lengths=not given_lengths, drawn=draws
        )
        lengths = DrawnLengths(model, settings.seed) if draws else None
        return _Watched(GivenLengths(model) if given_lengths else model, tuple(views), sequences[:_PROBED], lengths)

    def features(self, sequences: Sequences, begin: int) -> tuple[list[Tensor], Tensor]:
        """The Stein features of those sequences that are possible, ``[M, D]`` for each view; and which ones are.

        :param begin: how many possible sequences came before.
        """
        self.model.check_data(sequences)
        possible = find_impossible(self.model, sequences).others
        some = sequences[possible]
        if not len(some):
            return [torch.zeros(0, one.num_features, dtype=torch.double) for one in self.views], possible
        visits = Visits(self.model, some, [one.view for one in self.views if not one.from_draws], kept_bytes=0)
        psi: dict[View, Tensor] = {}
        for around in visits.neighborhoods:
            for view in visits.views_of(around):
                size = next(one.num_features for one in self.views if one.view is view)
                parts = [_columns(chunk.features(view)[0], size) for chunk in visits.chunks(around)]
                psi[view] = torch.cat(parts)
        for one in self.views:
            if one.from_draws and self.lengths is not None:
                psi[one.view] = self.lengths.features(some.lengths, begin)
        return [psi[one.view] for one in self.views], possible

    def check_same_model(self, checkpoint: Checkpoint) -> None:
        """Checks that the model of a checkpoint gave the same scores to the sequences that it has seen first.

        :raises ValueError: if it did not.
        """
        known = checkpoint.get("first sequences")
        if known is None:
            seen = self.first
            scores = self.model.log_joint(seen)
            sizes = torch.tensor([one.num_features for one in self.views])
            kept = {"tokens": seen.tokens, "lengths": seen.lengths, "scores": scores, "features": sizes}
            checkpoint.put("first sequences", kept)
            return
        if known["features"].tolist() != [one.num_features for one in self.views]:
            raise ValueError(
                "checkpoint: expected the model of the earlier call, found one that is seen by other views, since it "
                "can be sampled or gives probabilities to lengths, or the earlier one did; delete the file, or pass "
                "another one"
            )
        if self.first.covariates is not None:
            return  # those of the sequences seen first are not kept
        seen = Sequences(known["tokens"], known["lengths"], self.first.alphabet)
        if not torch.allclose(self.model.log_joint(seen), known["scores"], rtol=1e-6, atol=1e-9):
            raise ValueError(
                "checkpoint: expected the model of the earlier call, found one that gives other scores to its first "
                "sequences; delete the file, or pass another one"
            )


def _columns(matrix: SteinMatrix, num_features: int) -> Tensor:
    """Features as a dense tensor with a column for each of them, ``[N, D]``."""
    assert isinstance(matrix, FeatureMatrix)
    values = matrix.values.to_dense() if matrix.values.is_sparse else matrix.values
    if matrix.codes is None:
        return torch.nn.functional.pad(values, (0, num_features - values.shape[1]))
    return values.new_zeros(len(values), num_features).index_copy_(1, matrix.codes, values)

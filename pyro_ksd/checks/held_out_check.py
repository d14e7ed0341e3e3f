# SPDX-License-Identifier: Apache-2.0
"""Checks of sequences that posteriors have not seen: those put aside, or each fold of the data in turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pyro_ksd.common.checkpoints import Checkpoint, digest, versions
from pyro_ksd.common.draw_counts import draws_in_all
from pyro_ksd.common.part_runs import active_client, run_each
from pyro_ksd.common.random_numbers import drawn_seed, seeded_generator
from pyro_ksd.fit_tests.held_out import compare_held_out
from pyro_ksd.fit_tests.held_out_decision import SplitPredictive, split_predictive
from pyro_ksd.models.fitting.user_fits import Fit, fitted_posterior
from pyro_ksd.models.part_survey import InSession
from pyro_ksd.models.posterior.posterior_models import PosteriorModels
from pyro_ksd.models.session_state import Session
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.splitting import fold_rows
from pyro_ksd.stein.views import View

_CHAINS = "number of chains"
_SITE = "site "


def check_put_aside(
    models: PosteriorModels,
    sequences: Sequences,
    views: Sequence[View],
    *,
    checkpoint: Checkpoint | None,
    seed: int,
    progress: bool,
) -> SplitPredictive:
    """Checks sequences that were put aside before the inference.

    :param models: those of posterior draws, given other sequences.
    """
    if checkpoint is not None:
        checkpoint.begin(_work("split predictive", sequences, seed) | {"posterior": digest(*models.values.values())})
    generator = seeded_generator(seed)
    part = compare_held_out(models, sequences, views, generator, checkpoint=checkpoint, progress=progress)
    return split_predictive([part], [torch.arange(len(sequences))], views)


class FoldPosteriors:
    """The posteriors of a program given all folds of the data but one, for each fold; found when they are asked for.

    :param program: the user's Pyro program.
    :param sequences: the data.
    :param fit: fits the program to sequences.
    :param folds: the number of folds.
    :param num_replicates: the number of replicated data sets of each fold; of more posterior draws than they take, so
        many are taken at even distances.
    :param options: of :class:`~pyro_ksd.models.posterior.posterior_models.PosteriorModels`.
    :param checkpoint: where posterior draws are kept, and taken from.
    :param seed: of the choice of folds, of the fits and of replicated data.
    """

    def __init__(
        self,
        program: Any,
        sequences: Sequences,
        fit: Fit,
        folds: int,
        *,
        num_replicates: int,
        options: Mapping[str, Any],
        checkpoint: Checkpoint | None,
        seed: int,
    ) -> None:
        self.rows = fold_rows(len(sequences), folds, seed=seed)
        self._program = program
        self._sequences = sequences
        self._fit = fit
        self._options = {**options, "num_draws": draws_in_all(num_replicates)}
        self._checkpoint = checkpoint
        generator = seeded_generator(seed)
        self._seeds = [drawn_seed(generator) for _ in self.rows]
        self._known: dict[int, PosteriorModels] = {}
        self._from_workers: dict[int, Mapping[str, Tensor]] = {}
        if checkpoint is not None:
            words = {"folds": str(folds), "fit": _described(fit), "num_bootstrap": str(num_replicates)}
            checkpoint.begin(_work("divided predictive", sequences, seed) | words)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, fold: int) -> PosteriorModels:
        if fold not in self._known:
            self._known[fold] = self._found(fold)
        return self._known[fold]

    def __iter__(self) -> Iterator[PosteriorModels]:
        return (self[fold] for fold in range(len(self)))

    def _found(self, fold: int) -> PosteriorModels:
        if active_client() is not None:
            self._fit_on_workers()
        kept = self._kept(fold)
        if kept is not None:
            return PosteriorModels(self._program, self._seen(fold), _draws(kept), **self._options)
        models = fitted_posterior(self._fit, self._program, self._seen(fold), self._options, self._seeds[fold])
        self._keep(fold, _tensors(models))
        return models

    def _fit_on_workers(self) -> None:
        """Finds the posteriors of all folds that are not known yet at once."""
        missing = [fold for fold in range(len(self)) if self._kept(fold) is None]
        task = _FitFold(self._fit, self._program, self._options)
        jobs = [(self._seen(fold), self._seeds[fold]) for fold in missing]
        found = run_each(InSession(task, Session.now()), jobs, name="fit")
        for fold, tensors in zip(missing, found, strict=True):
            self._from_workers[fold] = tensors
            self._keep(fold, tensors)

    def _seen(self, fold: int) -> Sequences:
        """The data without a fold."""
        others = torch.cat([rows for index, rows in enumerate(self.rows) if index != fold]).sort().values
        return self._sequences[others].narrowed()

    def _kept(self, fold: int) -> Mapping[str, Tensor] | None:
        """The posterior draws that workers found, or that the checkpoint has."""
        if fold in self._from_workers or self._checkpoint is None:
            return self._from_workers.get(fold)
        return self._checkpoint.get(_part_name(fold))

    def _keep(self, fold: int, tensors: Mapping[str, Tensor]) -> None:
        if self._checkpoint is not None:
            self._checkpoint.put(_part_name(fold), tensors)

    def check(self, possible: Tensor, views: Sequence[View], *, progress: bool) -> SplitPredictive:
        """Checks each fold with its posterior, and decides once.

        :param possible: long ``[M]``, ascending, the rows of the data to check; the others are impossible.
        """
        parts = []
        checked = []
        for fold in range(len(self)):
            rows = self.rows[fold][torch.isin(self.rows[fold], possible)]
            if len(rows) < 2:
                raise ValueError(
                    f"folds: expected at least 2 sequences in each that are possible under the model, found "
                    f"{len(rows)} in one; take fewer folds"
                )
            part = compare_held_out(
                self[fold],
                self._sequences[rows],
                views,
                seeded_generator(self._seeds[fold]),
                checkpoint=self._checkpoint,
                part=f"fold {fold + 1}",
                progress=progress,
            )
            parts.append(part)
            checked.append(torch.searchsorted(possible, rows))
            del self._known[fold]
        return split_predictive(parts, checked, views)


@dataclass(frozen=True, eq=False)
class _FitFold:
    """Finds the posterior draws given the data without a fold, with a seed."""

    fit: Fit
    program: Any
    options: Mapping[str, Any]

    def __call__(self, job: tuple[Sequences, int]) -> dict[str, Tensor]:
        seen, seed = job
        return _tensors(fitted_posterior(self.fit, self.program, seen, self.options, seed))


def _part_name(fold: int) -> str:
    return f"posterior without fold {fold + 1}"


def _tensors(models: PosteriorModels) -> dict[str, Tensor]:
    """Posterior draws as they are kept and sent."""
    sites = {f"{_SITE}{site}": value for site, value in models.values.items()}
    return {**sites, _CHAINS: torch.tensor(models.num_chains)}


def _draws(kept: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Posterior draws as they were kept, ``[chains, draws, ...]`` by name."""
    chains = int(kept[_CHAINS])
    return {
        name.removeprefix(_SITE): value.unflatten(0, (chains, -1)) for name, value in kept.items() if name != _CHAINS
    }


def _work(kind: str, sequences: Sequences, seed: int) -> dict[str, str]:
    """What the results of a check depend on, for its checkpoint."""
    return {**versions(), "kind": kind, "data": digest(sequences.tokens, sequences.lengths), "seed": str(seed)}


def _described(fit: Fit) -> str:
    """A fit in words that are the same in each session."""
    words = repr(fit)
    return getattr(fit, "__qualname__", type(fit).__name__) if " at 0x" in words else words

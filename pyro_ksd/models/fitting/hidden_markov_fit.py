# SPDX-License-Identifier: Apache-2.0
"""Hidden Markov models fitted to data by the algorithm of Baum and Welch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from pyro_ksd.common.option_checks import check_number, found
from pyro_ksd.common.random_numbers import Seed, as_seed
from pyro_ksd.common.user_warnings import warn_user
from pyro_ksd.models.distributions.hidden_markov import HiddenMarkovSequence
from pyro_ksd.models.fitting.baum_welch import HiddenParameters, WeightedSequences, improved, weighted
from pyro_ksd.models.fitting.counting import check_pseudocount, room_for_samples
from pyro_ksd.sequences.container import Sequences

_TRIAL_STEPS = 30  # of every restart, before the best one goes on
_LEAST_GAIN = 1e-5  # of the mean log-likelihood of a sequence in a step


def fit_hidden_markov(
    data: Any,
    num_states: int,
    *,
    pseudocount: float = 0.0,
    num_restarts: int = 8,
    num_steps: int = 1000,
    seed: Seed = 0,
) -> HiddenMarkovSequence:
    """The hidden Markov model with stopping that makes the data most probable, among those that are found.

    The algorithm of Baum and Welch [#baum-welch]_ climbs to a local maximum of the likelihood, in double precision. It
    starts at ``num_restarts`` random points, takes 30 steps from each of them at once, and goes on from the best point,
    until a step raises the mean log-likelihood of a sequence by less than 0.00001.

    :param data: :class:`~pyro_ksd.sequences.Sequences`, or what :meth:`~pyro_ksd.sequences.Sequences.of` takes; none of
        them empty.
    :param num_states: the number of hidden states ``K``.
    :param pseudocount: added to each expected count, so that what the data lack is not impossible. It maximizes the
        likelihood times a Dirichlet prior.
    :param num_restarts: the number of random points.
    :param num_steps: the most steps from the best point; a warning says if they were too few.
    :param seed: of the random points.

    .. [#baum-welch] L. E. Baum, T. Petrie, G. Soules and N. Weiss, A maximization technique occurring in the
       statistical analysis of probabilistic functions of Markov chains, The Annals of Mathematical
       Statistics 41(1), 1970.

    How many states? As many as a check on other data asks for:

    >>> from pyro_ksd import ksd_check, split
    >>> sticky, often = [[0.9, 0.1], [0.1, 0.9]], [[0.8, 0.2], [0.2, 0.8]]
    >>> truth = HiddenMarkovSequence([0.5, 0.5], sticky, often, stop=0.1)
    >>> fit_to, check_on = split(truth.draw(400, torch.Generator().manual_seed(0)))
    >>> options = {"views": ["content-2"], "num_bootstrap": 100, "progress": False}
    >>> for num_states in (1, 2):
    ...     check = ksd_check(fit_hidden_markov(fit_to, num_states), check_on, **options)
    ...     print(num_states, "fits" if check["ksd"]["p_value_overall"] > 0.05 else "does not fit")
    1 does not fit
    2 fits
    """
    check_number("num_states", num_states, least=1)
    check_pseudocount(pseudocount)
    restarts = check_number("num_restarts", num_restarts, least=1)
    steps = check_number("num_steps", num_steps, least=1)
    generator = torch.Generator().manual_seed(as_seed(seed))
    sequences = Sequences.of(data)
    observed = _observed(sequences)
    shape = (restarts, int(num_states), sequences.alphabet_size)
    mean_length = float(sequences.lengths.double().mean())
    start = HiddenParameters.at_random(shape, mean_length, generator)
    if restarts > 1:
        start = _best_trial(start, observed, pseudocount)
    found, has_converged = _climbed(start, observed, pseudocount, steps)
    if not has_converged:
        warn_user(
            f"the fit of {num_states} hidden states had not converged after {steps} steps; raise num_steps=, or use "
            "fewer states"
        )
    return _model(found, room_for_samples(sequences))


@dataclass(frozen=True)
class RefitHiddenMarkov:
    """Fits a hidden Markov model again, from the parameters of the model on; see :func:`~pyro_ksd.fit_hidden_markov`.

    One climb, which starts near the maximum, in place of restarts.

    :param pseudocount: added to each expected count, as in the fit of the model.
    :param num_steps: the most steps.

    >>> from pyro_ksd import ksd_check
    >>> data = ["abcab", "bba", "cabca", "ab", "bcaaca", "cab"]
    >>> fitted = fit_hidden_markov(data, 2, pseudocount=0.5)
    >>> refit = RefitHiddenMarkov(pseudocount=0.5)
    >>> check = ksd_check(fitted, data, refit=refit, num_bootstrap=20, progress=False)
    >>> check["ksd"].attrs["kind"]
    'refit'
    """

    pseudocount: float = 0.0
    num_steps: int = 1000

    def __post_init__(self) -> None:
        check_pseudocount(self.pseudocount)
        check_number("num_steps", self.num_steps, least=1)

    def __call__(self, model: HiddenMarkovSequence, data: Sequences) -> HiddenMarkovSequence:
        if not isinstance(model, HiddenMarkovSequence) or model.batch_shape:
            raise ValueError(f"model: expected one HiddenMarkovSequence to refit, found {found(model)}")
        sequences = Sequences.of(data)
        parts = (model.initial, model.transition, model.emission, model.stop)
        start = HiddenParameters(*(part.detach().double()[None] for part in parts))
        climbed, _ = _climbed(start, _observed(sequences), self.pseudocount, self.num_steps)
        return _model(climbed, room_for_samples(sequences))


def _observed(sequences: Sequences) -> WeightedSequences:
    empty = (sequences.lengths == 0).nonzero()
    if len(empty):
        raise ValueError(
            f"data: expected sequences with symbols, found the empty sequence {int(empty[0])}, which a hidden Markov "
            "model cannot emit; remove the empty sequences"
        )
    return weighted(sequences)


def _best_trial(start: HiddenParameters, data: WeightedSequences, pseudocount: float) -> HiddenParameters:
    """The best of several points after some steps from each of them."""
    for _ in range(_TRIAL_STEPS):
        start, _ = improved(start, data, pseudocount)
    value = improved(start, data, pseudocount)[1] + start.log_penalty(pseudocount)
    return start[int(value.argmax())]


def _climbed(
    start: HiddenParameters, data: WeightedSequences, pseudocount: float, num_steps: int
) -> tuple[HiddenParameters, bool]:
    """Where steps from a point lead, and whether they had converged."""
    least = _LEAST_GAIN * float(data.weights.sum())
    before = -torch.inf
    for _ in range(num_steps):
        after, log_likelihood = improved(start, data, pseudocount)
        value = float(log_likelihood + start.log_penalty(pseudocount))
        if value - before < least:
            return start, True
        start, before = after, value
    return start, False


def _model(parameters: HiddenParameters, max_length: int) -> HiddenMarkovSequence:
    parts = (parameters.initial, parameters.transition, parameters.emission, parameters.stop)
    return HiddenMarkovSequence(*(part[0] for part in parts), max_length=max_length)

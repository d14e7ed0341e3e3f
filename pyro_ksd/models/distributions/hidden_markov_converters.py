# SPDX-License-Identifier: Apache-2.0
"""Hidden Markov models of other libraries, by the attributes that they have when they are fitted."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import found
from pyro_ksd.models.distributions.hidden_markov import HiddenMarkovSequence
from pyro_ksd.models.distributions.parameter_checks import as_parameter

_ROUNDING = 1e-4  # of sums of probabilities in single precision


def from_hmmlearn(model: Any, stop: Any) -> HiddenMarkovSequence:
    """A fitted ``CategoricalHMM`` of hmmlearn as a model of this package.

    hmmlearn gives no probability to lengths. To check the symbols alone, given the lengths, state any ``stop`` and pass
    ``neighborhood=Substitutions()`` to :func:`~pyro_ksd.ksd_check`: edits that keep the length do not depend on it.

    :param model: with ``startprob_``, ``transmat_`` and ``emissionprob_``; its columns are in the order of the codes.
    :param stop: the probability of stopping after each symbol, such as one over the mean length; a number, or one for
        each state.

    >>> from types import SimpleNamespace
    >>> fitted = SimpleNamespace(startprob_=[1.0, 0.0], transmat_=[[0.0, 1.0], [1.0, 0.0]], emissionprob_=torch.eye(2))
    >>> from_hmmlearn(fitted, stop=0.5).log_prob(torch.tensor([0, 1, 0])).exp()
    tensor(0.1250, dtype=torch.float64)
    """
    names = ("startprob_", "transmat_", "emissionprob_")
    if not all(hasattr(model, name) for name in names):
        raise ValueError(
            f"model: expected a fitted CategoricalHMM of hmmlearn, with {', '.join(names)}, found {found(model)}; call "
            "model.fit first"
        )
    initial, transition, emission = (_rows(name, getattr(model, name)) for name in names)
    return HiddenMarkovSequence(initial, transition, emission, stop)


def from_pomegranate(model: Any, stop: Any = None) -> HiddenMarkovSequence:
    """A ``DenseHMM`` of pomegranate with a ``Categorical`` distribution in each state as a model of this package.

    Its probabilities of ending are those of stopping.

    :param model: with the logarithms ``starts``, ``edges`` and ``ends``, and ``distributions``, each with ``probs``.
    :param stop: probabilities of stopping, in place of those of the model; a number, or one for each state.

    >>> from types import SimpleNamespace
    >>> fitted = SimpleNamespace(
    ...     starts=torch.tensor([1.0, 0.0]).log(),
    ...     edges=torch.tensor([[0.0, 0.5], [0.75, 0.0]]).log(),
    ...     ends=torch.tensor([0.5, 0.25]).log(),
    ...     distributions=[SimpleNamespace(probs=row[None]) for row in torch.eye(2)],
    ... )
    >>> from_pomegranate(fitted).log_prob(torch.tensor([0, 1, 0])).exp()
    tensor(0.1875, dtype=torch.float64)
    """
    names = ("starts", "edges", "ends", "distributions")
    if not all(getattr(model, name, None) is not None for name in names):
        raise ValueError(f"model: expected a DenseHMM of pomegranate, with {', '.join(names)}, found {found(model)}")
    tables: list[Any] = [getattr(distribution, "probs", None) for distribution in model.distributions]
    if any(table is None or table.ndim != 2 or len(table) != 1 for table in tables):
        raise ValueError(
            "model: expected a Categorical distribution of one feature in each state, with probs of shape [1, S], "
            f"found {[type(distribution).__name__ for distribution in model.distributions]}"
        )
    emission = _rows("distributions", torch.cat([table.detach() for table in tables]))
    initial = _rows("starts", model.starts.detach().double().exp())
    leaving = torch.cat([model.edges.detach().double().exp(), model.ends.detach().double().exp()[:, None]], 1)
    leaving = _rows("edges and ends", leaving)
    ends = leaving[:, -1]
    # A state that always stops has no next one, and any row will do.
    transition = torch.where((ends < 1)[:, None], leaving[:, :-1], torch.ones_like(leaving[:, :-1]))
    transition = transition / transition.sum(1, keepdim=True)
    return HiddenMarkovSequence(initial, transition, emission, ends if stop is None else stop)


def _rows(name: str, values: Any) -> Tensor:
    """Probabilities in double precision, whose rows sum to 1 but for rounding."""
    table = as_parameter(name, values).detach().double()
    total = table.sum(-1, keepdim=True)
    if not bool(((table >= 0).all(-1, keepdim=True) & ((total - 1).abs() <= _ROUNDING)).all()):
        raise ValueError(
            f"{name}: expected probabilities that sum to 1 in each row, found the sums {total.flatten().tolist()[:5]}; "
            "is the model fitted?"
        )
    return table / total

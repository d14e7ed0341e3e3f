# SPDX-License-Identifier: Apache-2.0
"""Models of hmmlearn and pomegranate have the same log-likelihoods here, by the libraries where installed."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from pyro_ksd import ksd_check
from pyro_ksd.edits import Substitutions
from pyro_ksd.models.distributions.hidden_markov_converters import from_hmmlearn, from_pomegranate
from pyro_ksd.sequences.container import Sequences

LEARNED = {
    "startprob_": np.array([0.3, 0.7]),
    "transmat_": np.array([[0.9, 0.1], [0.4, 0.6]]),
    "emissionprob_": np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]),
}
EDGES, ENDS = [[0.7, 0.2], [0.2, 0.6]], [0.1, 0.2]
SEQUENCES = [[0, 1, 2], [2], [1, 1, 0, 2, 2]]


def dense(**changes: Any) -> SimpleNamespace:
    parts = {"starts": [0.5, 0.5], "edges": EDGES, "ends": ENDS} | changes
    states = [SimpleNamespace(probs=torch.tensor([row])) for row in ([0.2, 0.3, 0.5], [0.6, 0.3, 0.1])]
    return SimpleNamespace(**{name: torch.tensor(part).log() for name, part in parts.items()}, distributions=states)


def test_hmmlearn_by_attributes() -> None:
    model = from_hmmlearn(SimpleNamespace(**LEARNED), stop=0.25)
    assert model.transition.numpy() == pytest.approx(LEARNED["transmat_"])
    assert model.stop.tolist() == [0.25, 0.25]
    expected = 0.25 * (0.3 * 0.5 + 0.7 * 0.1)
    assert float(model.log_prob(torch.tensor([2])).exp()) == pytest.approx(expected)
    assert from_hmmlearn(SimpleNamespace(**LEARNED), stop=[0.1, 0.2]).stop.tolist() == pytest.approx([0.1, 0.2])


def test_the_scores_of_hmmlearn() -> None:
    hmm = pytest.importorskip("hmmlearn.hmm")
    fitted = hmm.CategoricalHMM(n_components=2)
    fitted.n_features = 3
    for name, value in LEARNED.items():
        setattr(fitted, name, value)
    model = from_hmmlearn(fitted, stop=0.25)
    for x in SEQUENCES:
        lengths = (len(x) - 1) * math.log(0.75) + math.log(0.25)
        assert float(model.log_joint(Sequences.of([x], 3))) == pytest.approx(fitted.score(np.array([x]).T) + lengths)


def test_pomegranate_by_attributes() -> None:
    model = from_pomegranate(dense())
    assert model.stop.tolist() == pytest.approx(ENDS)
    assert model.transition[0].tolist() == pytest.approx([7 / 9, 2 / 9])
    assert float(model.log_prob(torch.tensor([2])).exp()) == pytest.approx(0.5 * 0.5 * 0.1 + 0.5 * 0.1 * 0.2)
    assert from_pomegranate(dense(), stop=0.5).stop.tolist() == [0.5, 0.5]
    last = from_pomegranate(dense(edges=[[0.7, 0.2], [0.0, 0.0]], ends=[0.1, 1.0]))
    assert last.stop.tolist() == pytest.approx([0.1, 1.0])


def test_the_log_probabilities_of_pomegranate() -> None:
    pytest.importorskip("sklearn")
    hmm = pytest.importorskip("pomegranate.hmm")
    distributions = pytest.importorskip("pomegranate.distributions")
    states = [distributions.Categorical([row]) for row in ([0.2, 0.3, 0.5], [0.6, 0.3, 0.1])]
    fitted = hmm.DenseHMM(states, edges=EDGES, starts=[0.5, 0.5], ends=ENDS)
    model = from_pomegranate(fitted)
    for x in SEQUENCES:
        expected = float(fitted.log_probability(torch.tensor([x])[..., None]))
        assert float(model.log_joint(Sequences.of([x], 3))) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SimpleNamespace(transmat_=[[1.0]]), "model: expected a fitted CategoricalHMM of hmmlearn, with startprob_"),
        (SimpleNamespace(**LEARNED | {"startprob_": [0.5, 0.6]}), "startprob_: expected probabilities that sum to 1"),
        (
            SimpleNamespace(**LEARNED | {"emissionprob_": "none"}),
            "emissionprob_: expected a tensor, an array",
        ),
    ],
)
def test_wrong_models_of_hmmlearn(model: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        from_hmmlearn(model, stop=0.5)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (None, "model: expected a DenseHMM of pomegranate, with starts, edges, ends, distributions, found None"),
        (dense(ends=[0.3, 0.2]), "edges and ends: expected probabilities that sum to 1 in each row, found the sums"),
        (
            SimpleNamespace(**vars(dense()) | {"distributions": [SimpleNamespace(means=1.0)]}),
            "model: expected a Categorical distribution of one feature in each state",
        ),
    ],
)
def test_wrong_models_of_pomegranate(model: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        from_pomegranate(model)


def test_a_check_of_the_symbols_does_not_depend_on_the_stop() -> None:
    data = from_hmmlearn(SimpleNamespace(**LEARNED), stop=0.2).draw(40, torch.Generator().manual_seed(0))
    statistics = []
    for stop in (0.2, 0.6):
        model = from_hmmlearn(SimpleNamespace(**LEARNED), stop=stop)
        options = {"neighborhood": Substitutions(), "views": ["content-1"], "bootstrap": "wild", "progress": False}
        statistics.append(float(ksd_check(model, data, **options)["ksd"]["statistic"].squeeze()))
    assert statistics[0] == pytest.approx(statistics[1])

# SPDX-License-Identifier: Apache-2.0
"""The Nyström approximation against its formula and against the exact kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from feature_enumeration import random_weights

from pyro_ksd.edits.neighborhoods import Substitutions, zs
from pyro_ksd.edits.weighted_edits import WeightedEdits
from pyro_ksd.fit_tests.absolute import goodness_of_fit
from pyro_ksd.kernels import (
    CyclicGaussianKernel,
    DiracKernel,
    GapWeightedKernel,
    HammingKernel,
    IMQHammingKernel,
    Kernel,
    LandmarkKernel,
    PairwiseKernel,
    StartKernel,
    landmarks,
)
from pyro_ksd.models import MarkovSequence
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.views import View

EXACT: dict[str, Kernel[Any]] = {
    "Hamming": HammingKernel(),
    "IMQ Hamming": IMQHammingKernel(),
    "cyclic Gaussian": CyclicGaussianKernel(),
    "Dirac": DiracKernel(),
    "gap-weighted": GapWeightedKernel(),
    "product": HammingKernel() * StartKernel(),
}
DATA = Sequences.of([[0, 0, 1, 2], [2, 1], [0, 1, 2, 0], [], [1, 1, 0], [2, 1]], 3)
FEW = Sequences.of([[0, 1], [0, 0, 1], [2, 1, 1], [1, 0, 0], [2, 0, 1, 2], [0, 1, 1, 1]], 3)


@pytest.mark.parametrize("name", EXACT)
def test_with_all_edits_as_landmarks_nothing_is_lost(name: str) -> None:
    exact = EXACT[name]
    edits = zs().edits(DATA)
    weights = random_weights(edits)
    everything = Sequences.cat([DATA, edits.apply(DATA)])
    nystrom = LandmarkKernel.from_sequences(exact, everything, 10**6)
    assert len(nystrom.landmarks) == len({tuple(x) for x in everything.to_lists()}) < len(everything)
    expected = exact.stein(DATA, edits, weights).dense()
    found = nystrom.stein(DATA, edits, weights).dense()
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-8)
    assert float(expected.abs().max()) > 0.1


@pytest.mark.parametrize("around", [zs(), Substitutions()], ids=["zs", "substitutions"])
@pytest.mark.parametrize("name", EXACT)
def test_few_landmarks_give_the_formula(name: str, around: Any) -> None:
    exact = EXACT[name]
    nystrom = LandmarkKernel(exact, FEW)
    inverse = torch.linalg.pinv(exact.gram(FEW, FEW), rtol=1e-10, hermitian=True)
    between = exact.gram(DATA, FEW)
    torch.testing.assert_close(nystrom.gram(DATA, DATA), between @ inverse @ between.T, rtol=1e-10, atol=1e-12)
    edits = around.edits(DATA)
    weights = random_weights(edits)
    summed = torch.zeros(len(DATA), len(FEW), dtype=torch.double)
    edited = exact.gram(edits.apply(DATA), FEW)
    for edit, (owner, weight) in enumerate(zip(edits.owner.tolist(), weights.tolist(), strict=True)):
        summed[owner] += weight * (edited[edit] - between[owner])
    expected = summed @ inverse @ summed.T
    found = nystrom.stein(DATA, edits, weights).dense()
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)
    whole = exact.stein(DATA, edits, weights).dense()
    assert not torch.allclose(found, whole)  # few landmarks leave something out
    lost = torch.linalg.eigvalsh(whole - found)
    assert float(lost[0]) > -1e-9  # and add nothing


def test_a_landmark_has_its_exact_values() -> None:
    nystrom = LandmarkKernel(HammingKernel(), FEW)
    torch.testing.assert_close(nystrom.gram(FEW, DATA), HammingKernel().gram(FEW, DATA))
    assert (nystrom.gram(DATA, DATA).diagonal() <= HammingKernel().gram(DATA, DATA).diagonal() + 1e-12).all()


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    class Counted(PairwiseKernel):
        def gram(self, x: Sequences, y: Sequences) -> torch.Tensor:
            sizes.append(len(x))
            return HammingKernel().gram(x, y)

    nystrom = LandmarkKernel(Counted(), FEW)
    edits = zs().edits(DATA)
    chunk = WeightedEdits(0, DATA, edits, torch.stack([random_weights(edits), torch.ones(len(edits)).double()]))
    features = [matrix.values for matrix in nystrom.stein_features_each(chunk)]
    one = WeightedEdits(0, DATA, edits, chunk.weights[0])
    steps = nystrom.edit_products(one, nystrom.stein_features_each(one)[0])
    assert max(sizes) == len(edits)
    sizes.clear()
    monkeypatch.setattr(landmarks, "_BLOCK_BYTES", 4 * (64 + 24) * len(FEW))
    for found, expected in zip(nystrom.stein_features_each(chunk), features, strict=True):
        torch.testing.assert_close(found.values, expected, rtol=1e-12, atol=1e-14)
    again = nystrom.edit_products(one, nystrom.stein_features_each(one)[0])
    torch.testing.assert_close(again, steps, rtol=1e-12, atol=1e-14)
    assert max(sizes) == 4


def test_repeated_landmarks_change_nothing() -> None:
    twice = LandmarkKernel(HammingKernel(), Sequences.cat([FEW, FEW[:4]]))
    once = LandmarkKernel(HammingKernel(), FEW)
    assert twice.features(DATA).values.shape[1] == once.features(DATA).values.shape[1] == len(FEW)
    torch.testing.assert_close(twice.gram(DATA, DATA), once.gram(DATA, DATA), rtol=1e-10, atol=1e-12)


def test_edits_without_weight_are_not_compared() -> None:
    seen: list[int] = []

    class Counted(PairwiseKernel):
        def gram(self, x: Sequences, y: Sequences) -> torch.Tensor:
            seen.append(len(x))
            return HammingKernel().gram(x, y)

    nystrom = LandmarkKernel(Counted(), FEW)
    edits = zs().edits(DATA)
    weights = torch.zeros(len(edits), dtype=torch.double)
    weights[[2, 9]] = 1.0
    seen.clear()
    nystrom.stein_features(DATA, edits, weights)
    assert sorted(seen) == [2, len(DATA)]
    assert not nystrom.stein(DATA, edits, 0 * weights).dense().any()


def test_landmarks_are_chosen_by_how_often_they_occur() -> None:
    often = Sequences.of([[0]] * 30 + [[1]] * 10 + [[2]], 3)
    first = [LandmarkKernel.from_sequences(HammingKernel(), often, 1, seed=seed) for seed in range(300)]
    counts = torch.cat([kernel.landmarks.tokens[:, 0] for kernel in first]).bincount(minlength=3).tolist()
    expected = np.array([30, 10, 1]) / 41 * 300
    assert (np.abs(counts - expected) <= 4 * np.sqrt(expected * (1 - expected / 300))).all()
    two = [LandmarkKernel.from_sequences(HammingKernel(), often, 2, seed=seed).landmarks for seed in range(20)]
    assert all(len({tuple(x) for x in own.to_lists()}) == 2 for own in two)
    same = LandmarkKernel.from_sequences(HammingKernel(), often, 2, seed=3).landmarks
    assert same.to_lists() == two[3].to_lists()


def test_landmarks_of_a_model_know_no_covariates() -> None:
    kernel = LandmarkKernel(HammingKernel() * StartKernel(), FEW)
    own = DATA.with_covariates({"group": [0, 1, 0, 1, 0, 1]})
    edits = zs().edits(own)
    weights = random_weights(edits)
    expected = kernel.stein(DATA, edits, weights).dense()
    torch.testing.assert_close(kernel.stein(own, edits, weights).dense(), expected)


class OfLengths(PairwiseKernel):
    """A function of the lengths that is no kernel."""

    def __init__(self, value: float) -> None:
        self.value = value

    def gram(self, x: Sequences, y: Sequences) -> torch.Tensor:
        return self.value * (x.lengths[:, None] != y.lengths).double()


@pytest.mark.parametrize(
    ("kernel", "chosen", "message"),
    [
        (HammingKernel(), FEW[:0], "landmarks: expected at least one sequence, found none"),
        (GapWeightedKernel(5), FEW, "landmarks: expected sequences that the kernel can compare, found its value 0"),
        (OfLengths(1.0), FEW, "kernel: expected a positive semi-definite one, found the eigenvalue -"),
        (OfLengths(-1.0), FEW, "kernel: expected a positive semi-definite one, found the eigenvalue -"),
        (OfLengths(float("nan")), FEW, "kernel: expected finite values between the landmarks, found others"),
        (HammingKernel, FEW, "kernel: expected a kernel, such as .*found the class HammingKernel; pass an instance"),
        (HammingKernel(), [[0, 1]], "landmarks: expected Sequences, made by Sequences.of"),
    ],
)
def test_wrong_landmarks(kernel: Any, chosen: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LandmarkKernel(kernel, chosen)


def test_landmarks_of_another_alphabet() -> None:
    kernel = LandmarkKernel(HammingKernel(), FEW)
    data = Sequences.of(["ab", "bc"], "abc")
    message = r"landmarks: expected .* alphabet of the data, \('a', 'b', 'c'\), found 0\.\.2; use drawn\.over"
    with pytest.raises(ValueError, match=message):
        kernel.features(data)
    with pytest.raises(ValueError, match=message):
        kernel.stein(data, zs().edits(data), torch.ones(len(zs().edits(data))))
    assert LandmarkKernel(HammingKernel(), FEW.over("abc")).features(data).values.shape == (2, 6)


def test_a_check_with_landmarks_finds_a_fault() -> None:
    generator = torch.Generator().manual_seed(0)
    even = torch.full((3, 3), 1 / 3, dtype=torch.double)
    uneven = 0.5 * even + torch.tensor([0.5, 0.0, 0.0], dtype=torch.double)
    model, truth = (MarkovSequence.from_transitions(moves[0], moves, stop=0.3) for moves in (even, uneven))
    kernel = LandmarkKernel.from_sequences(HammingKernel(), model.draw(500, generator), 20)
    view = View("whole", ZanellaOperator(Substitutions()), kernel)
    wild = goodness_of_fit(model, truth.draw(200, generator), [view], bootstrap="wild", num_bootstrap=99)
    assert wild.p_value_overall == 0.01
    drawn = goodness_of_fit(model, truth.draw(200, generator), [view], bootstrap="parametric", num_bootstrap=99)
    assert drawn.p_value_overall == 0.01
    assert goodness_of_fit(model, model.draw(200, generator), [view], num_bootstrap=99).p_value_overall > 0.05


def test_a_hundred_landmarks_are_chosen_with_the_seed_0() -> None:
    many = Sequences.of([[index // 20, index % 20] for index in range(300)], 20)
    found = LandmarkKernel.from_sequences(HammingKernel(), many).landmarks.to_lists()
    assert len(found) == 100
    assert found == LandmarkKernel.from_sequences(HammingKernel(), many, seed=0).landmarks.to_lists()
    assert found != LandmarkKernel.from_sequences(HammingKernel(), many, seed=1).landmarks.to_lists()

# SPDX-License-Identifier: Apache-2.0
r"""The Stein identity :math:`\sum_x p(x) (A_p \varphi)(x) = 0`, by exact enumeration of all sequences."""

from __future__ import annotations

from functools import cache
from itertools import product

import pyro.distributions as dist
import pytest
import torch
from torch import Tensor

from pyro_ksd.edits.neighborhoods import (
    BeforeEnd,
    CustomNeighborhood,
    DoubleSubstitutions,
    InsertionsDeletions,
    Neighborhood,
    Substitutions,
    zs,
)
from pyro_ksd.kernels import (
    ContiguousKernel,
    CyclicGaussianKernel,
    DiracKernel,
    EmbeddingKernel,
    GapWeightedKernel,
    HammingKernel,
    IMQHammingKernel,
    LengthKernel,
    StartKernel,
)
from pyro_ksd.kernels.stein_matrices import FeatureMatrix, SteinMatrix, SumMatrix
from pyro_ksd.models import (
    HiddenMarkovSequence,
    IndependentSequence,
    LinearChainMRF,
    MarkovSequence,
    SequenceDistribution,
)
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.balancing import Balancing, barker, metropolis, mpf
from pyro_ksd.stein.length_views import known_length_view, length_view
from pyro_ksd.stein.operators import HeatBathOperator, LengthOperator, Operator, TailBlockOperator, ZanellaOperator
from pyro_ksd.stein.views import View, default_views, further_views


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, dtype=torch.double, generator=torch.Generator().manual_seed(seed + sum(shape)))


def simplex(*shape: int) -> Tensor:
    return random(*shape) / random(*shape).sum(-1, keepdim=True)


def bounded_chain(order: int, size: int) -> MarkovSequence:
    """A chain that stops for certain once its context is full, so that no sequence is longer than its order."""
    table = random(*[size + 1] * (order + 1))
    table[(size,) * (order + 1)] = 0.0  # never empty
    table[(slice(0, size),) * order] = torch.eye(size + 1, dtype=torch.double)[size]
    return MarkovSequence(table / table.sum(-1, keepdim=True), order=order, max_length=order)


def climbing_chain(size: int) -> MarkovSequence:
    """A first-order chain whose symbols only grow: most edits lead to impossible sequences."""
    climb = torch.ones(size, size, dtype=torch.double).triu(1) * random(size, size)
    climb[-1, 0] = 1.0  # never used: the last symbol always stops
    stop = torch.full((size,), 0.3, dtype=torch.double)
    stop[-1] = 1.0
    return MarkovSequence.from_transitions(simplex(size), climb / climb.sum(-1, keepdim=True), stop, max_length=size)


def climbing_hmm(states: int, size: int) -> HiddenMarkovSequence:
    """A hidden Markov model whose states only grow, so that no sequence is longer than their number."""
    climb = torch.ones(states, states, dtype=torch.double).triu(1) * random(states, states)
    climb[-1, 0] = 1.0  # never used: the last state always stops
    stop = random(states)
    stop[-1] = 1.0
    initial, emission = simplex(states), simplex(states, size)
    return HiddenMarkovSequence(initial, climb / climb.sum(-1, keepdim=True), emission, stop, max_length=states)


SIZE = 3
# Each model with the length of its longest sequence: for the last two, of the longest that matters to 1e-14.
MODELS: dict[str, tuple[SequenceDistribution, int]] = {
    "chain of order 2": (bounded_chain(2, SIZE), 2),
    "chain of order 3": (bounded_chain(3, SIZE), 3),
    "climbing chain": (climbing_chain(4), 4),
    "hidden Markov": (climbing_hmm(4, SIZE), 4),
    "MRF": (LinearChainMRF(random(SIZE, SIZE), random(SIZE), max_length=4), 4),
    "MRF with a ban": (LinearChainMRF(random(SIZE, SIZE).fill_diagonal_(-torch.inf), max_length=4), 4),
    "independent, tabulated": (IndependentSequence(simplex(SIZE), simplex(5)), 4),
    "independent, Poisson": (IndependentSequence(simplex(2), dist.Poisson(torch.tensor(0.1).double())), 9),
    "independent, geometric": (IndependentSequence(simplex(2), dist.Geometric(torch.tensor(0.98).double())), 9),
}

NEIGHBORHOODS: dict[str, Neighborhood] = {
    "zs": zs(),
    "zs, 1 location": zs(1),
    "zs, 2 locations": zs(2),
    "substitutions": Substitutions(),
    "substitutions on the ring": Substitutions(symbols=1),
    "insertions and deletions": InsertionsDeletions(),
    "restricted insertions": zs(insertable=[1]),
    "double substitutions": zs() | DoubleSubstitutions(),
    "overlapping union": zs(1) | zs(2) | Substitutions(),
    "reversal": zs() | CustomNeighborhood(lambda x: [x[::-1]]),
}


def operators(size: int) -> dict[str, Operator]:
    """Every operator over an alphabet; in its relation, a symbol may become the next one or the one before."""
    codes = torch.arange(size)
    related = {"related symbols": Substitutions(symbols=(codes[:, None] - codes).abs() == 1)}
    balancings = ["barker", "mpf", "metropolis"]
    zanella = {
        f"{name}, {balancing}": ZanellaOperator(neighborhood, balancing)
        for (name, neighborhood), balancing in product((NEIGHBORHOODS | related).items(), balancings)
    }
    tails = {f"tail block, {balancing}": TailBlockOperator(balancing) for balancing in balancings}
    baths = {f"heat bath, {name}": HeatBathOperator(around) for name, around in (NEIGHBORHOODS | related).items()}
    return zanella | tails | baths


OPERATORS = {size: operators(size) for size in (2, 3, 4)}

# A kernel knows nothing of the balancing but the weights. So all kernels are tested with Barker's, and with the other
# balancings those that see most: the Dirac kernel sees every difference between p and another stationary distribution.
EMBEDDING = EmbeddingKernel(lambda x: torch.stack([x.tokens.sum(1).double().sin(), x.lengths.double().cos()], 1))
FEATURE_KERNELS = [
    *(ContiguousKernel(t, form=form) for t in (1, 2, 3) for form in ("sqrt", "cosine")),  # type: ignore[arg-type]
    ContiguousKernel(1, 3),
    ContiguousKernel(2, 4, form="cosine"),
    StartKernel(),
    StartKernel(2),
    LengthKernel(),
    EMBEDDING,
    2.0 * ContiguousKernel(2) + StartKernel(),
]
FEW_FEATURE_KERNELS = [ContiguousKernel(1, 3), ContiguousKernel(2, form="cosine"), StartKernel(2), EMBEDDING]
PAIRWISE_KERNELS = [
    HammingKernel(),
    IMQHammingKernel(),
    CyclicGaussianKernel(),
    DiracKernel(),
    DiracKernel(on="length"),
    GapWeightedKernel(),
    HammingKernel() * StartKernel() + 0.5 * DiracKernel(),
]
FEW_PAIRWISE_KERNELS = [DiracKernel(), HammingKernel()]


@cache
def space(model: SequenceDistribution, longest: int) -> tuple[Sequences, Tensor]:
    """All possible sequences up to the longest, and their probabilities ``[N]``."""
    codes = range(model.alphabet_size)
    everything = Sequences.of([x for t in range(longest + 1) for x in product(codes, repeat=t)], model.alphabet_size)
    log_p = model.log_joint(everything)
    return everything[log_p > -torch.inf], log_p[log_p > -torch.inf].exp()


def largest_mean(matrix: SteinMatrix, p: Tensor) -> float:
    """The largest absolute value of a mean feature under ``p``."""
    if isinstance(matrix, SumMatrix):
        return max(largest_mean(part, p) for part in matrix.parts)
    assert isinstance(matrix, FeatureMatrix)
    return max(matrix.weighted_sum(p[None])[0].abs().tolist(), default=0.0)


@pytest.mark.parametrize("name", MODELS)
def test_the_space_is_whole(name: str) -> None:
    _, p = space(*MODELS[name])
    assert float(p.sum()) == pytest.approx(1.0, abs=1e-13)


@pytest.mark.parametrize("operator", OPERATORS[SIZE])
@pytest.mark.parametrize("name", MODELS)
def test_stein_features_have_mean_zero(name: str, operator: str) -> None:
    sequences, p = space(*MODELS[name])
    chosen = OPERATORS[sequences.alphabet_size][operator]
    kernels = FEATURE_KERNELS if operator.endswith("barker") else FEW_FEATURE_KERNELS
    views = [View(str(index), chosen, kernel) for index, kernel in enumerate(kernels)]
    matrices = stein_matrices(MODELS[name][0], sequences, views)
    for kernel, matrix in zip(kernels, matrices, strict=True):
        assert largest_mean(matrix, p) < 1e-12, kernel


@pytest.mark.parametrize("around", [zs(), Substitutions(), BeforeEnd(zs()), zs(symbols=1), InsertionsDeletions()])
@pytest.mark.parametrize("name", MODELS)
def test_all_views_have_stein_features_of_mean_zero(name: str, around: Neighborhood) -> None:
    model, (sequences, p) = MODELS[name][0], space(*MODELS[name])
    length = length_view(model, sequences, around.tail, barker)
    views = [*default_views(around, "barker", length), *further_views(around), *default_views(around, "mpf")]
    for view, matrix in zip(views, stein_matrices(model, sequences, views), strict=True):
        assert isinstance(matrix, FeatureMatrix)
        scale = float(matrix.values.to_dense().abs().max()) if view.name == "length" else 1.0
        assert largest_mean(matrix, p) < 1e-12 * max(1.0, scale), view.name


@pytest.mark.parametrize("balancing", [barker, mpf, metropolis])
@pytest.mark.parametrize("name", MODELS)
def test_known_lengths_have_stein_features_of_mean_zero(name: str, balancing: Balancing) -> None:
    """Up to the probability of the lengths that are so improbable that they are left out."""
    model, (sequences, p) = MODELS[name][0], space(*MODELS[name])
    exact = model.length_distribution()
    assert exact is not None
    view = known_length_view(exact, zs(locations=1), balancing)
    assert view is not None
    assert isinstance(view.operator, LengthOperator)
    kept = torch.isin(sequences.lengths, view.operator.distribution.lengths)
    [matrix] = stein_matrices(model, sequences, [view])
    assert isinstance(matrix, FeatureMatrix)
    features = matrix.values.to_dense()
    assert features.shape == (len(sequences), 5)
    assert largest_mean(matrix, p) < (1e-12 + float(p[~kept].sum())) * float(features.abs().max())
    # A Stein feature is the mean of a function less the function, which has the variance 1.
    variance = (p[kept] @ features[kept].square()).tolist()
    assert variance == pytest.approx([1.0 if value > 1e-9 else 0.0 for value in variance], abs=1e-6)
    assert variance[0] > 0


def test_views_move() -> None:
    """Means of zero come from balance: the features themselves are not zero."""
    model, (sequences, _) = MODELS["MRF"][0], space(*MODELS["MRF"])
    views = [*default_views(), *further_views()]
    for view, matrix in zip(views, stein_matrices(model, sequences, views), strict=True):
        assert float(matrix.diagonal().max()) > 1e-3, view.name


# Smaller spaces for kernels that compare all pairs of neighbors; every distribution and law of the length is there.
SMALL_MODELS: dict[str, tuple[SequenceDistribution, int]] = {
    "chain of order 2": (bounded_chain(2, 2), 2),
    "climbing chain": (climbing_chain(3), 3),
    "hidden Markov": (climbing_hmm(3, 2), 3),
    "MRF": (LinearChainMRF(random(2, 2), random(2), max_length=3), 3),
    "MRF with a ban": (LinearChainMRF(random(2, 2).fill_diagonal_(-torch.inf), max_length=4), 4),
    "independent, tabulated": (IndependentSequence(simplex(2), simplex(4)), 3),
    "independent, Poisson": (IndependentSequence(simplex(2), dist.Poisson(torch.tensor(1e-3).double())), 4),
    "independent, geometric": (IndependentSequence(simplex(2), dist.Geometric(torch.tensor(0.9995).double())), 5),
}


@pytest.mark.parametrize("operator", OPERATORS[SIZE])
@pytest.mark.parametrize("name", SMALL_MODELS)
def test_stein_gram_has_mean_zero(name: str, operator: str) -> None:
    model = SMALL_MODELS[name][0]
    sequences, p = space(*SMALL_MODELS[name])
    chosen = OPERATORS[sequences.alphabet_size][operator]
    kernels = PAIRWISE_KERNELS if operator.endswith("barker") else FEW_PAIRWISE_KERNELS
    views = [View(str(index), chosen, kernel) for index, kernel in enumerate(kernels)]
    for kernel, matrix in zip(kernels, stein_matrices(model, sequences, views), strict=True):
        assert (matrix.dense() @ p).abs().max() < 1e-12, kernel


def test_a_wrong_model_or_an_asymmetric_neighborhood_breaks_the_identity() -> None:
    sequences, p = space(*MODELS["MRF"])
    other = LinearChainMRF(random(SIZE, SIZE, seed=1), random(SIZE, seed=1), max_length=4)
    view = View("", ZanellaOperator(), ContiguousKernel(2))
    assert largest_mean(stein_matrices(other, sequences, [view])[0], p) > 1e-3
    lopsided = ZanellaOperator(CustomNeighborhood(lambda x: [(*x, 0)]))
    view = View("", lopsided, ContiguousKernel(2))
    assert largest_mean(stein_matrices(MODELS["MRF"][0], sequences, [view])[0], p) > 1e-3

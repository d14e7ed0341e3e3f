# SPDX-License-Identifier: Apache-2.0
"""The formulas of the package once more in plain Python loops: the truth that the tensors are compared with.

A sequence is a tuple of codes. Nothing here is clever on purpose; nothing here imports the package.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from itertools import combinations, pairwise, product
from typing import Any

Codes = tuple[int, ...]
LogProb = Callable[[Codes], float]
Kernel = Callable[[Codes, Codes], float]
Features = dict[Hashable, float]


def neighbors(
    x: Codes,
    size: int,
    *,
    substitute: bool = True,
    indel: bool = True,
    double: bool = False,
    locations: int | None = None,
    related: Callable[[int, int], bool] | None = None,
    insertable: Collection[int] | None = None,
) -> set[Codes]:
    """The neighbors of ``x`` over the codes ``0 .. size-1``; ``locations`` are counted from the end."""
    length = len(x)
    reach = length + 1 if locations is None else locations
    positions = [i for i in range(length) if length - i <= reach]
    gaps = [i for i in range(length + 1) if length + 1 - i <= reach]
    movable = range(size) if insertable is None else insertable
    choices = {i: [s for s in range(size) if s != x[i] and (related is None or related(x[i], s))] for i in positions}
    found: set[Codes] = set()
    if substitute:
        found |= {_replace(x, {i: s}) for i in positions for s in choices[i]}
    if double:
        for i, j in combinations(positions, 2):
            found |= {_replace(x, {i: s, j: t}) for s, t in product(choices[i], choices[j])}
    if indel:
        found |= {(*x[:i], s, *x[i:]) for i in gaps for s in movable}
        found |= {x[:i] + x[i + 1 :] for i in positions if x[i] in movable}
    return found - {x}


def _replace(x: Codes, changes: Mapping[int, int]) -> Codes:
    return tuple(changes.get(i, symbol) for i, symbol in enumerate(x))


def ring_distance(a: int, b: int, size: int) -> int:
    """The distance of two codes on the ring ``0 .. size-1``."""
    return min((a - b) % size, (b - a) % size)


def barker(log_ratio: float) -> float:
    """t / (1 + t)."""
    if log_ratio >= 0:
        return 1 / (1 + math.exp(-log_ratio))
    return math.exp(log_ratio) / (1 + math.exp(log_ratio))


def mpf(log_ratio: float) -> float:
    """The square root of t."""
    return math.exp(log_ratio / 2)


def metropolis(log_ratio: float) -> float:
    """min(1, t)."""
    return math.exp(min(log_ratio, 0.0))


def csk_features(x: Codes, t_min: int, t_max: int, form: str = "sqrt") -> dict[Codes, float]:
    """The features of the contiguous subsequence kernel, keyed by the n-grams; ``form`` is "sqrt" or "cosine"."""
    fitting = [t for t in range(t_min, t_max + 1) if t <= len(x)]
    features: dict[Codes, float] = {}
    for t in fitting:
        counts = Counter(x[i : i + t] for i in range(len(x) - t + 1))
        norm = math.sqrt(sum(count**2 for count in counts.values()))
        for gram, count in counts.items():
            value = math.sqrt(count / counts.total()) if form == "sqrt" else count / norm
            features[gram] = value / math.sqrt(len(fitting))
    return features


def csk(x: Codes, y: Codes, t_min: int, t_max: int, form: str = "sqrt") -> float:
    """The contiguous subsequence kernel."""
    return dot(csk_features(x, t_min, t_max, form), csk_features(y, t_min, t_max, form))


def hamming(x: Codes, y: Codes) -> float:
    """exp(-mismatches / length) for equal lengths, else 0."""
    if len(x) != len(y):
        return 0.0
    return math.exp(-sum(a != b for a, b in zip(x, y, strict=True)) / max(len(x), 1))


def cyclic_gaussian(x: Codes, y: Codes, size: int) -> float:
    """exp(-sum of squared ring distances / length) for equal lengths, else 0."""
    if len(x) != len(y):
        return 0.0
    return math.exp(-sum(ring_distance(a, b, size) ** 2 for a, b in zip(x, y, strict=True)) / max(len(x), 1))


def length_dirac(x: Codes, y: Codes) -> float:
    """1 for equal lengths, else 0."""
    return float(len(x) == len(y))


def dot(a: Mapping[Any, float], b: Mapping[Any, float]) -> float:
    """The inner product of two sparse feature vectors."""
    return sum(value * b[key] for key, value in a.items() if key in b)


def operator(log_p: LogProb, x: Codes, around: Iterable[Codes], g: Callable[[float], float]) -> dict[Codes, float]:
    """The Zanella–Stein operator at ``x``: g(p(y)/p(x)) at each neighbor y, minus their sum at ``x``."""
    here = log_p(x)
    if here == -math.inf:
        raise ValueError(f"the model calls {x} impossible")
    coefficients = {y: g(log_p(y) - here) for y in around if y != x}
    coefficients[x] = -math.fsum(coefficients.values())
    return coefficients


def stein_matrix(
    log_p: LogProb,
    sequences: Sequence[Codes],
    neighborhood: Callable[[Codes], Iterable[Codes]],
    g: Callable[[float], float],
    kernel: Kernel,
) -> list[list[float]]:
    """The operator applied to both arguments of the kernel, for every pair of sequences."""
    rows = [operator(log_p, x, neighborhood(x), g) for x in sequences]
    matrix = [[0.0] * len(rows) for _ in rows]
    for i, left in enumerate(rows):
        for j, right in enumerate(rows[: i + 1]):
            terms = (u * v * kernel(a, b) for a, u in left.items() for b, v in right.items())
            matrix[i][j] = matrix[j][i] = math.fsum(terms)
    return matrix


def u_statistic(matrix: Sequence[Sequence[float]]) -> float:
    """The mean of the entries off the diagonal."""
    n = len(matrix)
    return math.fsum(matrix[i][j] for i in range(n) for j in range(n) if i != j) / (n * (n - 1))


def stein_features(
    log_p: LogProb,
    x: Codes,
    neighborhood: Callable[[Codes], Iterable[Codes]],
    g: Callable[[float], float],
    features: Callable[[Codes], Mapping[Any, float]],
) -> Features:
    """The operator applied to explicit features: psi(x), sparse."""
    psi: Features = {}
    for y, weight in operator(log_p, x, neighborhood(x), g).items():
        for key, value in features(y).items():
            psi[key] = psi.get(key, 0.0) + weight * value
    return psi


def markov_log_prob(table: Any, order: int, x: Codes) -> float:
    """A chain with stopping; ``table`` has ``order + 1`` axes, index 0 is the boundary and s + 1 the symbol s."""
    path = [0] * order + [symbol + 1 for symbol in x] + [0]
    total = 0.0
    for end in range(order, len(path)):
        entry = table
        for index in path[end - order : end + 1]:
            entry = entry[index]
        total += _log(entry)
    return total


def poisson_bernoulli_log_prob(mean_length: float, p: float, x: Codes) -> float:
    """Poisson length, symbol 1 with probability ``p``."""
    length = len(x)
    log_length = length * math.log(mean_length) - mean_length - math.lgamma(length + 1)
    return log_length + sum(math.log(p if symbol else 1 - p) for symbol in x)


def mrf_log_prob(length_potential: float, theta: float, max_length: int, x: Codes) -> float:
    """The linear-chain Markov random field, unnormalized."""
    if not 1 <= len(x) <= max_length:
        return -math.inf
    return length_potential * len(x) + theta * sum(a == b for a, b in pairwise(x))


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf

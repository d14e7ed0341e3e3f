# SPDX-License-Identifier: Apache-2.0
r"""What can be tested with logged log-probabilities alone, where the model itself is not at hand.

Many servers report the log-probability of each token that they sampled, and those of the most probable alternatives. A
kernel Stein check needs more: the probabilities of *edited* sequences, which nobody has evaluated. From the
log-probabilities of the sampled sequences alone, no ratio of an edit is known, and no valid p-value can be computed,
because the distribution of these log-probabilities under the model is unknown.

With the alternatives, each step has a known distribution: that of the rank of the sampled token. Its randomized
probability integral transform is exactly uniform if tokens were sampled as the log says
(:func:`~pyro_ksd.fit_tests.uniform_ranks`).
"""

from __future__ import annotations

import torch
from torch import Tensor

from pyro_ksd.common.random_numbers import check_generator
from pyro_ksd.common.tensor_checks import check_tensor

_SAME = 1e-6  # logs of equal probabilities, in single precision
_ROUNDED = 1e-3  # by how much a sum of logged probabilities may exceed 1


def uniform_ranks(chosen: Tensor, top: Tensor, generator: torch.Generator | None = None) -> Tensor:
    r"""Numbers that are independent and uniform if tokens were sampled from the distribution that was logged.

    With the tokens of each step in descending order of probability, those outside of the top ones taken as one,

    .. math:: u = \sum_{s \text{ more probable than } x} p(s) + V \sum_{s \text{ as probable as } x} p(s), \quad
        V \sim \operatorname{Uniform}(0, 1),

    is uniform given all tokens before, whatever the distribution of the step is (Brockwell, 2007, "Universal
    residuals"). Large values are missing where tokens were cut off (top-k, top-p); small values are too frequent where
    the temperature was lower. This compares the sampling of a server with its own log. It does not say whether the log
    is that of the model.

    :param chosen: ``[M]``, the log-probability of each sampled token, before any truncation or temperature.
    :param top: ``[M, K]``, the ``K`` largest log-probabilities at the same step, ``-inf`` where there are fewer.
    :param generator: of ``V``; torch's global one if left out.
    :returns: double ``[M]``, for a test of uniformity, such as ``scipy.stats.kstest(u, "uniform")``.

    >>> top = torch.tensor([0.5, 0.3]).log().expand(3, -1)  # and other tokens with 0.2 in all
    >>> chosen = torch.tensor([0.5, 0.3, 0.01]).log()
    >>> u = uniform_ranks(chosen, top, torch.Generator().manual_seed(0))
    >>> bool(u[0] < 0.5), bool(0.5 < u[1] < 0.8), bool(u[2] > 0.8)
    (True, True, True)
    """
    check_tensor("chosen", chosen, "M")
    check_tensor("top", top, len(chosen), "K")
    if generator is not None:
        check_generator(generator)
    own = chosen.double()[:, None]
    others = top.double()
    total = others.exp().sum(1)
    _refuse(~(own[:, 0] <= 0), "chosen: expected log-probabilities, at most 0", own[:, 0])
    _refuse(~(total <= 1 + _ROUNDED), "top: expected probabilities that add up to at most 1", total)
    same = (others - own).abs() <= _SAME * others.abs().clamp(min=1.0)
    larger = (others > own) & ~same
    probability = torch.where(same, others.exp(), 0.0).sum(1)
    before = torch.where(larger, others.exp(), 0.0).sum(1)
    is_other = ~same.any(1)
    missing = is_other & ((others > -torch.inf) & (others < own)).any(1)
    _refuse(missing, "chosen: expected one of the top log-probabilities, or a smaller one than all of them", own[:, 0])
    rest = (1 - total).clamp(min=0.0)
    uniform = torch.rand(len(chosen), dtype=torch.double, generator=generator)
    return torch.where(is_other, 1 - rest + uniform * rest, before + uniform * probability).clamp(0.0, 1.0)


def _refuse(bad: Tensor, message: str, values: Tensor) -> None:
    """Names the first bad step."""
    if bad.any():
        row = int(bad.nonzero()[0])
        raise ValueError(f"{message}, found {float(values[row]):g} at step {row}; log natural logarithms")

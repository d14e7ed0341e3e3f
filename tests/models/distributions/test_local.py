# SPDX-License-Identifier: Apache-2.0
"""Distributions that are products of local factors and a term of the length."""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.models.distributions.factor_table import FactorTable
from pyro_ksd.models.distributions.local import LocalSequence
from pyro_ksd.sequences.container import Sequences

SIZE = 2
SPACE = Sequences.of([list(x) for length in range(5) for x in product(range(SIZE), repeat=length)], SIZE)
EDITS = zs().edits(SPACE)
FACTORS = torch.randn(2, 3, 3, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0))


class Plain(LocalSequence):
    """Nothing but the factors."""

    arg_constraints = {}  # noqa: RUF012

    def __init__(self, factors: Tensor = FACTORS[:1], batch: tuple[int, ...] = ()) -> None:
        super().__init__(factors, 20, torch.Size(batch), None)

    def _generate(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        raise NotImplementedError


class WithLength(Plain):
    """A term for each length; no sequence of three symbols."""

    def _length_terms(self, longest: int) -> Tensor:
        terms = -0.3 * torch.arange(longest + 1, dtype=torch.double) ** 2
        return terms.masked_fill(torch.arange(longest + 1) == 3, -torch.inf).expand(len(self._table), -1)


def local(member: int = 0) -> Tensor:
    return FactorTable(FACTORS).log_joint(SPACE.padded(-1), torch.full((len(SPACE),), member))


def test_size_and_order_come_from_the_factors() -> None:
    assert Plain().order == 2
    assert Plain().alphabet_size == SIZE
    assert Plain(torch.zeros(1, 5, 5)).order == 1
    assert Plain(torch.zeros(1, 5, 5)).alphabet_size == 4


def test_log_joint_is_the_sum_of_the_factors() -> None:
    torch.testing.assert_close(Plain().log_joint(SPACE), local())
    batch = Plain(FACTORS, (2,))
    found = batch.log_prob(SPACE.padded(-1)[:, None])
    torch.testing.assert_close(found, torch.stack([local(0), local(1)], 1))


def test_term_of_the_length_is_added() -> None:
    expected = local() - 0.3 * SPACE.lengths.double() ** 2
    expected[SPACE.lengths == 3] = -torch.inf
    torch.testing.assert_close(WithLength().log_joint(SPACE), expected)


def test_ratios_are_differences_of_log_joints() -> None:
    for model in (Plain(), WithLength()):
        possible = SPACE[model.log_joint(SPACE) > -torch.inf]
        edits = zs().edits(possible)
        expected = model.log_joint(edits.apply(possible)) - model.log_joint(possible)[edits.owner]
        torch.testing.assert_close(model.log_ratio(possible, edits), expected, rtol=1e-11, atol=1e-11)
    assert (expected == -torch.inf).any()


def test_ratios_need_terms_only_up_to_the_longest_edit() -> None:
    asked: list[int] = []

    class Asked(WithLength):
        def _length_terms(self, longest: int) -> Tensor:
            asked.append(longest)
            return super()._length_terms(longest)

    Asked().log_ratio(SPACE, EDITS)
    assert asked == [5]

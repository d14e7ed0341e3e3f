# SPDX-License-Identifier: Apache-2.0
"""Tables of log-factors against sums over windows."""

from __future__ import annotations

import re
from itertools import product

import pytest
import torch
from torch import Tensor

from pyro_ksd.edits.neighborhoods import DoubleSubstitutions, Neighborhood, zs
from pyro_ksd.models.distributions.factor_table import FactorTable, check_order, context_is_possible
from pyro_ksd.sequences.container import Sequences

pytestmark = pytest.mark.usefixtures("engine")

SIZE, MODELS = 2, 3
SPACE = Sequences.of([list(x) for length in range(5) for x in product(range(SIZE), repeat=length)], SIZE)
AROUND: list[Neighborhood] = [zs(), DoubleSubstitutions()]


def factors(order: int) -> Tensor:
    generator = torch.Generator().manual_seed(order)
    table = torch.randn([MODELS] + [SIZE + 1] * (order + 1), dtype=torch.double, generator=generator)
    table[(slice(None), *[1] * (order + 1))] = -torch.inf  # a run of 1 that is too long
    return table


def truth(table: Tensor, x: list[int]) -> Tensor:
    """The sum of the factors of all windows, ``[MODELS]``."""
    order = table.ndim - 2
    padded = [SIZE] * order + x + [SIZE]
    windows = [tuple(padded[i : i + order + 1]) for i in range(len(x) + 1)]
    return torch.stack([table[(slice(None), *window)] for window in windows]).sum(0)


def truths(table: Tensor, sequences: Sequences) -> Tensor:
    return torch.stack([truth(table, x) for x in sequences.to_lists()], 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("order", [1, 2, 3])
def test_log_joint_is_the_sum_over_windows(order: int) -> None:
    table = FactorTable(factors(order))
    assert len(table) == MODELS
    assert table.order == order
    assert table.boundary == SIZE
    expected = truths(factors(order), SPACE)
    for model in range(MODELS):
        found = table.log_joint(SPACE.padded(-1), torch.full((len(SPACE),), model))
        torch.testing.assert_close(found, expected[model], rtol=1e-12, atol=1e-12)
    which = torch.arange(len(SPACE)) % MODELS
    found = table.log_joint(SPACE.padded(-1), which)
    torch.testing.assert_close(found, expected.gather(0, which[None])[0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("piece", [2**15, 5])
@pytest.mark.parametrize("around", AROUND, ids=["zs", "double substitutions"])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_ratios_are_differences_of_log_joints(
    order: int, around: Neighborhood, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyro_ksd.models.distributions.factor_table._PIECE", piece)
    table, values = FactorTable(factors(order)), truths(factors(order), SPACE)
    possible = SPACE[(values > -torch.inf).all(0)]
    edits = around.edits(possible)
    before, after = truths(factors(order), possible), truths(factors(order), edits.apply(possible))
    expected = after - before[:, edits.owner]
    torch.testing.assert_close(table.log_ratios(possible, edits), expected, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(table.log_ratio(possible, edits), expected[0], rtol=1e-11, atol=1e-11)
    rows = torch.arange(len(possible)) % MODELS
    found = table.log_ratio(possible, edits, rows=rows)
    torch.testing.assert_close(found, expected.gather(0, rows[edits.owner][None])[0], rtol=1e-11, atol=1e-11)
    assert (expected == -torch.inf).any()


def test_terms_of_the_length_are_added() -> None:
    table, terms = FactorTable(factors(1)), torch.tensor([0.5, -torch.inf, 2.0, 1.0, -1.0, 0.25]).double()
    possible = SPACE[(truths(factors(1), SPACE)[0] > -torch.inf) & (SPACE.lengths != 1)]
    edits = zs().edits(possible)
    new, own = edits.new_lengths(possible.lengths), possible.lengths[edits.owner]
    plain = table.log_ratio(possible, edits)
    found = table.log_ratio(possible, edits, terms)
    assert (found[new == 1] == -torch.inf).all()
    torch.testing.assert_close(found[new != 1], (plain + terms[new] - terms[own])[new != 1], rtol=1e-11, atol=1e-11)


def test_ratio_between_impossible_sequences_is_no_nan() -> None:
    never_1 = factors(1)
    never_1[:, :, 1] = -torch.inf
    table = FactorTable(never_1)
    assert not table.log_ratio(SPACE, zs().edits(SPACE)).isnan().any()
    assert not table.log_ratios(SPACE, zs().edits(SPACE)).isnan().any()


def test_contexts_in_which_the_boundary_follows_a_symbol_are_impossible() -> None:
    assert context_is_possible(2, 1).tolist() == [True] * 3
    found = context_is_possible(2, 3)
    for context in product(range(3), repeat=3):
        starts = [symbol == 2 for symbol in context]
        assert bool(found[context]) == (starts == sorted(starts, reverse=True))


def test_entries_of_impossible_contexts_do_not_count() -> None:
    spoiled = factors(2)
    spoiled[:, :SIZE, SIZE] = torch.nan
    edits = zs().edits(SPACE)
    found, expected = FactorTable(spoiled).log_ratio(SPACE, edits), FactorTable(factors(2)).log_ratio(SPACE, edits)
    assert torch.equal(found, expected)


def test_orders_are_bounded_by_the_size_of_the_table() -> None:
    check_order(12, 3)
    check_order(1, 8000)
    for order, size, most in ((13, 3, 12), (2, 8000, 1)):
        with pytest.raises(ValueError, match=f"order: expected at most {most} for {size} symbols, found {order}"):
            check_order(order, size)
    with pytest.raises(ValueError, match="order: expected an integer of at least 1, found 0"):
        check_order(0, 3)


@pytest.mark.parametrize(
    ("order", "size", "models", "expected", "gigabytes"),
    [
        (5, 60, 1, "at most 3", 8 * 61**6 / 1e9),
        (1, 20_000, 1, "none", 8 * 20_001**2 / 1e9),
        (3, 30, 500, "at most 2", 500 * 8 * 31**4 / 1e9),
        (27, 1, 1, "at most 26", 8 * 2**28 / 1e9),
    ],
)
def test_the_size_of_a_table_is_forecast(order: int, size: int, models: int, expected: str, gigabytes: float) -> None:
    with pytest.raises(ValueError, match=rf"order: expected {expected} for {size} symbols, found {order}") as error:
        check_order(order, size, models)
    [stated] = re.findall(r"would take ([\d.,]+) GB, more than 1.07 GB; lower the order", str(error.value))
    assert float(stated.replace(",", "")) == pytest.approx(gigabytes, rel=0.01)


@pytest.mark.parametrize(("order", "size", "models"), [(26, 1, 1), (12, 3, 1), (3, 60, 1), (2, 30, 500)])
def test_tables_of_up_to_a_gigabyte_are_made(order: int, size: int, models: int) -> None:
    assert 8 * models * (size + 1) ** (order + 1) <= 2**30
    check_order(order, size, models)


def test_absurd_orders_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r"found 1000000000, .* would take 1e\d+ GB"):
        check_order(10**9, 3)


def test_ratios_have_gradients() -> None:
    around = zs().edits(SPACE)
    values = torch.zeros(1, SIZE + 1, SIZE + 1, dtype=torch.double, requires_grad=True)
    ratio = FactorTable(values).log_ratio(SPACE, around)
    [gradient] = torch.autograd.grad(ratio[:5].sum(), values)
    assert bool(gradient.any())
    with torch.no_grad():
        assert FactorTable(values).log_ratio(SPACE, around).equal(ratio)


@pytest.mark.parametrize("which", [slice(1, 3), torch.tensor([3, 0])])
def test_tables_of_some_models(which: slice | torch.Tensor) -> None:
    generator = torch.Generator().manual_seed(0)
    factors = torch.randn(4, 3, 3, dtype=torch.double, generator=generator)
    some = FactorTable(factors).of_models(which)
    assert len(some) == 2
    assert some.values.equal(FactorTable(factors[which]).values)

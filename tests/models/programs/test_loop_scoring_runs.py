# SPDX-License-Identifier: Apache-2.0
"""Runs that make a given sequence: values and log-probabilities of the sites."""

from __future__ import annotations

import math
import re
from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from loop_programs import (
    CHAIN,
    INITIAL,
    TRANSITION,
    S,
    assert_same,
    chain,
    enumerated,
    limited,
    space,
)
from pyro import poutine, settings
from torch import Tensor
from torch.distributions import constraints

from pyro_ksd.models.programs.loop import LoopProgram
from pyro_ksd.models.programs.loop_scoring_runs import (
    AccumulatedRun,
    CannotMakeSequence,
    CheckedRun,
    ConditionedRun,
    masked_log_prob,
)
from pyro_ksd.models.programs.loop_site_names import SiteNames
from pyro_ksd.sequences.container import Sequences


def test_sites_of_shape_1():
    def program():
        law, stop, t = INITIAL[None], False, 0
        while not stop:
            x = pyro.sample(f"x_{t}", dist.Categorical(law))
            assert x.shape == (1,)
            stop = pyro.sample(f"stop_{t}", dist.Bernoulli(torch.full((1,), 0.3, dtype=torch.double)))
            law, t = TRANSITION[x], t + 1

    assert_same(LoopProgram(program, S).log_joint(space()), CHAIN.log_joint(space()))


def test_values_have_the_dtypes_of_samples():
    seen: set[tuple[str, torch.dtype]] = set()

    def program():
        stop, t = False, 0
        while not stop:
            x = pyro.sample(f"x_{t}", dist.Binomial(2, torch.tensor(0.5, dtype=torch.double)))
            stop = pyro.sample(f"stop_{t}", dist.Bernoulli(torch.tensor(0.3, dtype=torch.float32)))
            seen.update({("x", x.dtype), ("stop", stop.dtype)})
            t += 1

    def log_prob(x):
        symbols = sum(math.log([0.25, 0.5, 0.25][symbol]) for symbol in x)
        return symbols + math.log(0.3) + (len(x) - 1) * math.log(0.7)

    sequences = space(shortest=1)
    assert_same(LoopProgram(program, S).log_joint(sequences), enumerated(log_prob, sequences), 1e-6)
    assert seen == {("x", torch.double), ("stop", torch.float32)}


def test_factors_observed_and_deterministic_sites():
    def program():
        pyro.factor("constant", torch.tensor(7.0, dtype=torch.double))
        stop, t, total = False, 0, torch.tensor(0.0, dtype=torch.double)
        while not stop:
            x = pyro.sample(f"x_{t}", dist.Categorical(INITIAL))
            total = pyro.deterministic(f"total_{t}", total + x)
            pyro.factor(f"f_{t}", 0.1 * total)
            stop = pyro.sample(f"stop_{t}", dist.Bernoulli(torch.tensor(0.3, dtype=torch.double)))
            t += 1
        pyro.sample("seen", dist.Normal(total, 1.0), obs=torch.tensor(2.0, dtype=torch.double))

    def log_prob(x):
        value = 7.0 + math.log(0.3) + (len(x) - 1) * math.log(0.7)
        value += sum(INITIAL[symbol].log().item() + 0.1 * sum(x[: t + 1]) for t, symbol in enumerate(x))
        return value - (sum(x) - 2) ** 2 / 2 - math.log(2 * math.pi) / 2

    sequences = space(shortest=1)
    assert_same(LoopProgram(program, S).log_joint(sequences), enumerated(log_prob, sequences))


def test_mask_counts_and_scale_does_not():
    def program(mask):
        with poutine.mask(mask=mask), poutine.scale(scale=5.0):
            pyro.factor("f", torch.tensor(2.0, dtype=torch.double))
        chain()()

    for mask, extra in ((True, 2.0), (False, 0.0)):
        model = LoopProgram(lambda mask=mask: program(mask), S)
        assert_same(model.log_joint(space(2)), CHAIN.log_joint(space(2)) + extra)


class Fair(dist.TorchDistribution):
    """1/2 for everything."""

    arg_constraints = {}  # noqa: RUF012

    def sample(self, sample_shape=torch.Size()):  # noqa: B008
        return torch.ones(sample_shape, dtype=torch.long)

    def log_prob(self, value):
        return torch.full_like(value, math.log(0.5), dtype=torch.double)


class FairCoin(Fair):
    support = constraints.integer_interval(0, 1)


def test_laws_without_support():
    model = LoopProgram(lambda: pyro.sample("x_0", Fair(validate_args=False)), S)
    assert_same(model.log_joint(Sequences.of([[0], [2]], S)), torch.full((2,), math.log(0.5), dtype=torch.double))


SMALL_LAWS = {
    "coin": (FairCoin(validate_args=False), "0..1"),
    "categorical": (dist.Categorical(torch.tensor([0.5, 0.5])), "0..1"),
    "bernoulli": (dist.Bernoulli(0.5), "Boolean()"),
    "binomial": (dist.Binomial(1, torch.tensor(0.5)), "IntegerInterval(lower_bound=0, upper_bound=1.0)"),
}


@pytest.mark.parametrize("name", SMALL_LAWS)
@pytest.mark.parametrize("validate", [True, False])
def test_symbols_outside_of_the_support(name, validate):
    law, _ = SMALL_LAWS[name]

    def program():
        for t in range(2):
            pyro.sample(f"x_{t}", law)

    with settings.context(validate_distributions_pyro=validate, validate_distributions_torch=validate):
        model = LoopProgram(program, S)
        inside = model.log_joint(Sequences.of([[0, 1], [1, 1]], S))
        assert_same(inside, torch.full((2,), 2 * math.log(0.5)).double(), 1e-6)
        for first in ([0, 2], [0, 0]):
            with pytest.raises(
                ValueError, match=r"site 'x_1': found the symbol 2 in the sequence \[0, 2\], expected"
            ) as e:
                LoopProgram(program, S).log_joint(Sequences.of([first, [0, 2], [1, 1]], S))
            assert SMALL_LAWS[name][1] in str(e.value)
            assert "fix alphabet_size=" in str(e.value)


@pytest.mark.parametrize("index", [lambda x: x, int])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("first", [0, 1])
def test_log_probabilities_that_are_none(index, bad, first):
    potential = torch.tensor([0.5, bad, 0.5], dtype=torch.double)

    def program():
        for t in range(2):
            x = pyro.sample(f"x_{t}", dist.Categorical(INITIAL))
            pyro.factor(f"f_{t}", potential[index(x)])

    data = Sequences.of([[first, 2], [0, 1], [2, 2]], S)
    site, sequence = ("f_0", r"\[1, 2\]") if first else ("f_1", r"\[0, 1\]")
    message = rf"site '{site}': expected a log-probability, found {bad} for the sequence {sequence}; fix"
    with pytest.raises(ValueError, match=message):
        LoopProgram(program, S).log_joint(data)


@pytest.mark.parametrize("validate", [True, False])
def test_laws_of_nan(validate):
    broken = torch.tensor([[0.2, 0.3, 0.5], [math.nan] * 3, [0.2, 0.3, 0.5]])

    def program():
        law, stop, t = broken[0], False, 0
        while not stop:
            x = pyro.sample(f"x_{t}", dist.Categorical(law))
            stop = pyro.sample(f"stop_{t}", dist.Bernoulli(0.5 * broken[x].sum()))
            law, t = broken[x], t + 1

    with settings.context(validate_distributions_pyro=validate, validate_distributions_torch=validate):
        model = LoopProgram(program, S)
        for data in ([[1, 0]], [[0, 0], [1, 0]]):
            with pytest.raises(ValueError, match=r"site 'stop_0': .* found nan for the sequence \[1, 0\]"):
                model.log_joint(Sequences.of(data, S))


def test_long_sequences_are_cut_in_messages():
    def program():
        for t in range(30):
            pyro.sample(f"x_{t}", dist.Categorical(torch.ones(2)))

    with pytest.raises(ValueError, match=r"the sequence \[(0, ){20}...\], expected 0..1"):
        LoopProgram(program, S).log_joint(Sequences.of([[0] * 29 + [2]], S))


NAMES = SiteNames("x_{}", "stop_{}")


def arguments(symbols: list[int], stop: bool = True) -> tuple[Any, ...]:
    return NAMES, {}, torch.tensor(symbols, dtype=torch.long).unbind(), stop


def test_a_checked_run_sums_the_log_probabilities() -> None:
    for symbols in ([0], [2, 1], [1, 1, 0]):
        with CheckedRun(*arguments(symbols), S) as run:
            chain()()
        assert run.complete
        assert run.total == pytest.approx(CHAIN.log_joint(Sequences.of([symbols], S)).item(), abs=1e-12)
        assert run.ended == f"stop_{len(symbols) - 1}"


def test_a_site_in_single_precision_is_summed_in_double_precision() -> None:
    fn, value = dist.Normal(torch.zeros(10_007), 1.3), torch.randn(10_007, generator=torch.Generator().manual_seed(0))
    expected = math.fsum(fn.log_prob(value).tolist())
    assert float(masked_log_prob({"fn": fn, "value": value, "mask": None})) == pytest.approx(expected, rel=1e-12)


def test_an_accumulated_run_sums_single_precision_in_double_precision() -> None:
    probs = torch.tensor([0.1, 0.2, 0.7])
    symbols = torch.randint(3, (300,), generator=torch.Generator().manual_seed(0)).tolist()
    with AccumulatedRun(*arguments(symbols), S) as run:
        for t in range(len(symbols)):
            pyro.sample(f"x_{t}", dist.Categorical(probs))
    expected = math.fsum(dist.Categorical(probs).log_prob(torch.tensor(symbols)).tolist())
    assert float(run.total) == pytest.approx(expected, rel=1e-13)


def test_an_accumulated_run_is_the_same_under_vmap() -> None:
    def total(symbols: Tensor) -> Tensor:
        with AccumulatedRun(NAMES, {}, symbols.unbind(), True, S) as run:
            chain()()
        return run.total

    tokens = torch.tensor([[0, 1], [2, 2], [1, 0]])
    with settings.context(validate_distributions_torch=False, validate_distributions_pyro=False):
        found = torch.func.vmap(total)(tokens)
    assert_same(found, CHAIN.log_joint(Sequences.of(tokens, S)))


def test_symbols_outside_of_the_support_are_not_a_number_in_an_accumulated_run() -> None:
    coin = FairCoin(validate_args=False)
    for symbol, size, expected in ((1, S, math.log(0.5)), (2, S, math.nan), (2, 2, math.log(0.5))):
        with AccumulatedRun(*arguments([symbol]), size) as run:
            pyro.sample("x_0", coin)
        assert run.total.item() == pytest.approx(expected, nan_ok=True)


def test_a_run_that_is_not_to_stop_is_complete_only_if_the_program_ends_anyway() -> None:
    with ConditionedRun(*arguments([0, 1, 2], stop=False)) as run:
        limited(3, stop_at_the_limit=True)()
    assert run.complete
    with pytest.raises(CannotMakeSequence), ConditionedRun(*arguments([0, 1], stop=False)):
        limited(3, stop_at_the_limit=True)()
    with ConditionedRun(*arguments([0, 1, 2], stop=False)) as run:
        limited(3, stop_at_the_limit=False)()  # has no stop site that could say no
    assert not run.complete


def test_symbols_that_are_missing_or_too_many() -> None:
    with ConditionedRun(*arguments([0, 1, 2, 0])) as run:
        limited(3, stop_at_the_limit=False)()
    assert not run.complete

    def always_two() -> None:
        for t in range(2):
            pyro.sample(f"x_{t}", dist.Categorical(INITIAL))

    with pytest.raises(CannotMakeSequence), ConditionedRun(*arguments([0])):
        always_two()


def test_a_program_with_more_symbols_than_the_data_is_refused():
    """Also by one symbol, and if only a rare site has it."""

    def late():
        for t in range(2):
            pyro.sample(f"x_{t}", dist.Categorical(torch.ones(S + t, dtype=torch.double) / (S + t)))

    with pytest.raises(ValueError, match=f"x_1.*{S + 1}"):
        LoopProgram(late, S).log_joint(Sequences.of([[0, 1]], S))


@pytest.mark.parametrize("length", [20, 21])
def test_errors_show_the_first_twenty_symbols(length):
    def wrong():
        for t in range(length):
            pyro.sample(f"x_{t}", dist.Categorical(INITIAL))
        pyro.factor("end", torch.tensor(math.nan))

    shown = "[" + ", ".join("0" * 20) + (", ...]" if length > 20 else "]")
    with pytest.raises(ValueError, match=re.escape(shown)):
        LoopProgram(wrong, S).log_joint(Sequences.of([[0] * length], S))

# SPDX-License-Identifier: Apache-2.0
"""Programs whose log-probability changes from run to run are refused, and nothing of theirs is changed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro import poutine
from pyro_programs import CHAIN, INITIAL, SIZE, chain_steps, stops
from torch import Tensor
from torch.distributions import constraints

from pyro_ksd import ksd_check
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.programs.repeatability import InitialParams
from pyro_ksd.sequences.container import Sequences

DATA = CHAIN.draw(30, torch.Generator().manual_seed(0))


# ---------------------------------------------------------------------------------- parameters


def with_param(initial: Callable[[], Any], first: int = 0) -> Callable[..., None]:
    """Independent symbols whose distribution is a parameter, from a certain step on."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                probs = INITIAL.float()
                if t >= first:
                    probs = pyro.param("probs", initial(), constraint=constraints.simplex)
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(probs), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", dist.Bernoulli(0.2), obs=stops(lengths, t).float())

    return program


RANDOM: dict[str, Callable[[], Any]] = {
    "tensor": lambda: torch.rand(SIZE),
    "callable": lambda: lambda: torch.rand(SIZE),
    "numpy": lambda: lambda: torch.as_tensor(np.random.rand(SIZE)),  # noqa: NPY002
    "random": lambda: lambda: torch.tensor([random.random() for _ in range(SIZE)]),
    "hardly random": lambda: lambda: torch.tensor([0.2, 0.3, 0.5]) + 1e-5 * torch.rand(SIZE),
}


@pytest.mark.parametrize("kind", RANDOM)
def test_random_initial_values_are_refused(kind: str) -> None:
    message = "param 'probs': found an initial value that changes from run to run"
    with pytest.raises(ValueError, match=message) as error:
        ksd_check(with_param(RANDOM[kind]), DATA, num_bootstrap=5, progress=False)
    assert "train the program first" in str(error.value)
    assert "pass parameters={'probs': value}" in str(error.value)
    assert len(pyro.get_param_store()) == 0


def test_random_initial_values_at_late_steps_are_refused() -> None:
    long = Sequences.of([[0] * 30, [1] * 30, [0, 1]], SIZE)
    with pytest.raises(ValueError, match="param 'probs': found an initial value that changes"):
        as_model(with_param(RANDOM["callable"], first=28), long)
    model = as_model(with_param(RANDOM["tensor"], first=30), long)  # reached by insertions alone
    with pytest.raises(ValueError, match="param 'probs': found an initial value that changes"):
        [model.log_joint(Sequences.of([[0] * 31], SIZE)) for _ in range(2)]


def test_values_of_the_store_and_of_the_user_go_first() -> None:
    value = torch.tensor([0.2, 0.3, 0.5])
    program = with_param(RANDOM["callable"])
    expected = as_model(with_param(lambda: value), DATA).log_joint(DATA)
    found = as_model(program, DATA, parameters={"probs": value}).log_joint(DATA)
    torch.testing.assert_close(found, expected)
    pyro.param("probs", value, constraint=constraints.simplex)
    torch.testing.assert_close(as_model(program, DATA).log_joint(DATA), expected)


def test_a_param_without_any_value() -> None:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("length", -pyro.param("cost") * lengths)

    with pytest.raises(ValueError, match="param 'cost': found neither an initial value nor one in the parameter store"):
        as_model(program, DATA)


def test_initial_params_are_kept_apart_from_the_store() -> None:
    params = InitialParams()
    values = []
    for initial in (torch.tensor(2.0), torch.tensor(2.0)):
        msg = {"name": "a", "args": ("a", initial), "done": False, "fn": None}
        params.prepare(msg)
        values.append(msg["fn"]("a", initial, constraint=constraints.positive))  # type: ignore[misc]
    assert [value.item() for value in values] == [2.0, 2.0]
    assert len(params) == 1
    assert len(pyro.get_param_store()) == 0
    for other in (torch.tensor(3.0), torch.ones(2)):
        with pytest.raises(ValueError, match="changes from run to run"):
            params.prepare({"name": "a", "args": ("a", other), "done": False})


# ---------------------------------------------------------------------------------- random numbers


def test_a_program_that_draws_is_refused() -> None:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            chain_steps(sequences, lengths)
            pyro.factor("noise", torch.rand(1))

    with pytest.raises(ValueError, match="draws random numbers"):
        as_model(program, DATA)


def scored_by(net: torch.nn.Module, update: bool = False) -> Any:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        pyro.module("net", net, update_module_params=update)
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("score", net(lengths[:, None].double())[:, 0] - 2.0 * lengths)

    return program


def linear(weight: float) -> torch.nn.Module:
    net = torch.nn.Linear(1, 1).double()
    torch.nn.init.constant_(net.weight, weight)
    torch.nn.init.zeros_(net.bias)
    return net


def test_weights_of_a_module_that_the_store_has_otherwise_are_refused() -> None:
    own = scored_by(linear(0.5))
    expected = [-1.5 * length for length in DATA.lengths.tolist()]
    assert as_model(own, DATA).log_joint(DATA).tolist() == pytest.approx(expected)
    own(DATA.tokens, DATA.lengths)  # the store has the weights of the module itself
    assert as_model(own, DATA).log_joint(DATA).tolist() == pytest.approx(expected)
    pyro.clear_param_store()
    pyro.module("net", linear(1.5))  # as if they had been loaded
    with pytest.raises(ValueError, match=r"param 'net\$\$\$weight': found other values in the parameter store.*upd"):
        as_model(own, DATA)
    copied = as_model(scored_by(linear(0.5), update=True), DATA).log_joint(DATA)
    assert copied.tolist() == pytest.approx([-0.5 * length for length in DATA.lengths.tolist()])


@pytest.mark.parametrize("option", ["parameters", "posterior"])
def test_values_for_the_weights_of_a_module_are_refused(option: str) -> None:
    value = torch.zeros(1, 1).double() if option == "parameters" else torch.zeros(3, 1, 1).double()
    with pytest.raises(ValueError, match=rf"{option}: site 'net\$\$\$weight' is a weight of a module"):
        ksd_check(scored_by(linear(0.5)), DATA, **{option: {"net$$$weight": value}})

# SPDX-License-Identifier: Apache-2.0
"""Programs run without changing the user's session."""

from __future__ import annotations

import contextlib
import random
import threading
from typing import Any

import numpy as np
import pyro
import pyro.distributions as dist
import pyro_programs as programs
import pytest
import torch
from loop_programs import (
    INITIAL,
    S,
    chain,
    slow,
    space,
)
from pyro import poutine, settings
from torch import Tensor, nn
from torch.distributions import constraints

from pyro_ksd import ksd_check
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.programs.loop import LoopProgram
from pyro_ksd.models.session_state import (
    default_dtype_kept,
    isolated,
    params_kept,
    random_states_kept,
    session_kept,
    settings_kept,
    unvalidated,
)

DATA = programs.CHAIN.draw(25, torch.Generator().manual_seed(1))


class BrokenError(Exception):
    pass


def breaking() -> None:
    pyro.param("leak", torch.tensor(1.0))
    pyro.sample("x_0", dist.Categorical(INITIAL))
    torch.rand(1)
    np.random.random()  # noqa: NPY002
    random.random()
    raise BrokenError


def states() -> tuple[Any, ...]:
    names = ("validate_distributions_pyro", "validate_distributions_torch", "validate_infer", "validate_poutine")
    return (
        torch.get_rng_state().tolist(),
        np.random.get_state()[1].tolist(),  # noqa: NPY002
        random.getstate(),
        list(pyro.get_param_store().keys()),
        [settings.get(name) for name in names],
        len(pyro.poutine.runtime._PYRO_STACK),
    )


@pytest.mark.parametrize("validate", [True, False])
def test_state_is_left_alone(validate):
    with settings.context(validate_distributions_torch=validate):
        before = states()
        model = LoopProgram(chain(), S)
        model.log_joint(space())
        model.draw(5, torch.Generator().manual_seed(0))
        slow(chain(index=int)).log_joint(space(2))
        assert states() == before


def test_state_is_left_alone_by_programs_that_break():
    before = states()
    model = LoopProgram(breaking, S)
    with pytest.raises(BrokenError):
        model.draw(5, torch.Generator().manual_seed(0))
    assert states() == before
    state = torch.get_rng_state()
    with pytest.raises(BrokenError):
        model.log_joint(space(1))
    assert torch.equal(torch.get_rng_state(), state)
    assert states()[3:] == before[3:]


@pytest.mark.parametrize(
    "source",
    [
        lambda: nn.functional.dropout(torch.ones(50)).sum(),
        lambda: poutine.block(lambda: pyro.sample("z", dist.Normal(0.0, 1.0)))(),
    ],
)
def test_programs_that_draw_on_their_own(source):
    def program():
        pyro.factor("drawn", source())
        chain()()

    state = torch.get_rng_state()
    with pytest.raises(ValueError, match="draws random numbers although all its sites have values"):
        LoopProgram(program, S).log_joint(space(1, shortest=1))
    assert torch.equal(torch.get_rng_state(), state)


def broken(sequences: Tensor, lengths: Tensor) -> None:
    pyro.param("left behind", torch.ones(1))
    torch.rand(3)
    raise ArithmeticError("on purpose")


@pytest.mark.parametrize("program", [programs.hmm, programs.chain_with_stop, programs.chain_in_a_loop, broken])
def test_the_users_session_is_untouched(program: Any) -> None:
    kept = torch.ones(2, requires_grad=True)
    pyro.clear_param_store()
    pyro.param("mine", kept)
    before = pyro.get_param_store()._params["mine"]
    torch.manual_seed(11)
    state = torch.get_rng_state()
    for validation in (True, False):
        with pyro.validation_enabled(validation):
            try:
                ksd_check(program, DATA, num_bootstrap=5, progress=False)
            except ValueError:
                assert program is broken
            assert torch.distributions.Distribution._validate_args is validation
            assert pyro.infer.util.is_validation_enabled() is validation
    assert torch.equal(torch.get_rng_state(), state)
    assert list(pyro.get_param_store().keys()) == ["mine"]
    assert pyro.get_param_store()._params["mine"] is before
    assert torch.get_default_dtype() is torch.float32
    assert torch.is_grad_enabled()
    pyro.clear_param_store()


def disturb() -> None:
    pyro.param("leak", torch.tensor(1.0))
    pyro.param("mine", torch.tensor(5.0)).data.add_(0)
    torch.rand(3)


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("validate", [False, True])
def test_what_is_isolated_leaves_no_trace(validate: bool, fails: bool) -> None:
    kept = pyro.param("mine", torch.tensor(2.0))
    before = states()
    with contextlib.suppress(BrokenError), isolated(validate=validate):
        assert torch.distributions.Distribution._validate_args is validate
        assert not torch.is_grad_enabled()
        disturb()
        assert len(pyro.get_param_store()) == 2
        if fails:
            raise BrokenError
    assert states() == before
    assert pyro.param("mine") is kept
    assert torch.is_grad_enabled()


def test_isolated_programs_are_seeded_whatever_the_state_outside() -> None:
    torch.manual_seed(8)
    expected = torch.rand(3)
    found = []
    for outside in (8, 9):
        torch.manual_seed(outside)
        with isolated(seed=8):
            assert torch.equal(torch.rand(3), expected)
        with isolated():
            found.append(torch.rand(3))
    assert torch.equal(*found)
    assert not torch.equal(found[0], expected)


def test_settings_of_pyro_are_kept() -> None:
    before = settings.get()
    with contextlib.suppress(BrokenError), settings_kept():
        pyro.enable_validation(False)
        settings.set(cholesky_relative_jitter=8.0, module_local_params=True)
        raise BrokenError
    assert settings.get() == before


def test_one_thread_at_a_time() -> None:
    entered, leave = threading.Event(), threading.Event()
    order = []

    def first() -> None:
        with session_kept(seed=0):
            entered.set()
            leave.wait(5)
            with isolated():  # the same thread may go further in
                order.append("first")

    def second() -> None:
        entered.wait(5)
        with isolated():
            order.append("second")

    threads = [threading.Thread(target=run) for run in (first, second)]
    for thread in threads:
        thread.start()
    entered.wait(5)
    threads[1].join(0.05)
    assert order == []
    leave.set()
    for thread in threads:
        thread.join(5)
    assert order == ["first", "second"]


def test_new_parameters_are_forgotten_and_old_ones_stay_the_same_tensors() -> None:
    pyro.param("mine", torch.tensor(0.5), constraint=constraints.unit_interval)
    before = pyro.get_param_store()._params["mine"]
    with contextlib.suppress(BrokenError), params_kept():
        pyro.param("leak", torch.tensor(1.0))
        pyro.get_param_store()["mine"] = torch.tensor(0.75)
        assert pyro.get_param_store()._params["mine"] is not before
        raise BrokenError
    assert list(pyro.get_param_store().keys()) == ["mine"]
    assert pyro.get_param_store()._params["mine"] is before
    assert pyro.param("mine").item() == pytest.approx(0.5)


def test_unvalidated_distributions() -> None:
    before = states()
    with unvalidated():
        dist.Normal(0.0, -1.0)
        torch.distributions.Normal(0.0, -1.0)
    assert states() == before
    with pytest.raises(ValueError, match="scale"):
        dist.Normal(0.0, -1.0)


def test_a_seed_is_that_of_all_random_states() -> None:
    def numbers(seed: int) -> list[float]:
        with random_states_kept(seed):
            return [torch.rand(1).item(), np.random.random(), random.random()]  # noqa: NPY002

    before = states()
    first = numbers(1)
    assert states() == before
    assert numbers(1) == first
    assert all(a != b for a, b in zip(numbers(2**62), first, strict=True))
    with contextlib.suppress(BrokenError), random_states_kept(3):
        random.random()
        raise BrokenError
    assert states() == before


def test_the_default_dtype_is_kept() -> None:
    with contextlib.suppress(BrokenError), default_dtype_kept():
        torch.set_default_dtype(torch.float64)
        raise BrokenError
    assert torch.get_default_dtype() == torch.float32


def test_a_program_may_touch_all_that_is_kept() -> None:
    """Whatever a program does to numpy, ``random`` and the default dtype: the session is as before."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        np.random.seed(0)  # noqa: NPY002
        random.seed(0)
        torch.manual_seed(0)
        torch.set_default_dtype(torch.float64)
        np.random.random()  # noqa: NPY002
        programs.chain_with_stop(sequences, lengths)

    before = states()
    found = as_model(program, DATA).log_joint(DATA)
    torch.testing.assert_close(found, programs.CHAIN.log_joint(DATA))
    assert states() == before
    assert torch.get_default_dtype() == torch.float32

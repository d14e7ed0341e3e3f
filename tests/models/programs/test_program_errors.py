# SPDX-License-Identifier: Apache-2.0
"""What is said of errors inside a user's program."""

from __future__ import annotations

import re
from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro import poutine
from pyro.nn import PyroModule
from pyro_programs import FEW_SEQUENCES as DATA
from pyro_programs import SIZE, stops
from torch import Tensor

from pyro_ksd import ksd_check
from pyro_ksd.edits.neighborhoods import Substitutions, zs
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.programs.program_errors import called_with, is_ours

TOKENS = torch.tensor([[0, 1, 2], [1, 0, 0]])
LENGTHS = torch.tensor([3, 1])
BOTH = {"sequences": TOKENS, "lengths": LENGTHS}


def message(program: Any, error: Exception, arguments: dict[str, Any], longest: int | None = None) -> str:
    with pytest.raises(ValueError, match="the program failed") as caught:  # noqa: SIM117
        with called_with(program, arguments, 4, longest):
            raise error
    assert caught.value.__cause__ is error
    return str(caught.value)


def test_what_is_said() -> None:
    assert message(len, RuntimeError("first\nsecond"), BOTH) == (
        "the program failed with RuntimeError: first; it was called as program(sequences, lengths) with the codes 0..3 "
        "of the symbols, [2, 3], and the lengths; run it on the data by itself to find the reason"
    )
    assert "program(x) with the codes 0..3 of the symbols, [2, 3], filled with -1 after the ends" in message(
        len, KeyError(), {"x": TOKENS}
    )
    assert "the symbols, [2, 3], and the lengths, and the covariates {'age': torch.int64 [2]}; run" in message(
        len, RuntimeError(), {**BOTH, "covariates": {"age": LENGTHS}}
    )
    assert (
        "program(x, covariates) with the codes 0..3 of the symbols, [2, 3], filled with -1 after the ends, and the "
        "covariates torch.int64 [2]" in (message(len, RuntimeError(), {"x": TOKENS, "covariates": LENGTHS}))
    )
    assert message(len, ArithmeticError("on purpose"), {}).startswith(
        "the program failed with ArithmeticError: on purpose; run"
    )


def test_advice() -> None:
    by_symbol = "if it looks up tables by symbols, they need 4 rows: widen them"
    by_position = "if it can score no sequence longer than the data (2 symbols), as with a table of positions"
    for error in (IndexError(), KeyError()):
        assert by_symbol in message(len, error, BOTH, longest=3)
        assert by_position in message(len, error, BOTH, longest=2)
    assert by_symbol not in message(len, RuntimeError(), BOTH, longest=3)
    assert "see pyro_ksd.models.AutoregressiveModel" in message(torch.nn.Linear(1, 1), KeyError(), BOTH)
    assert "AutoregressiveModel" not in message(PyroModule(), KeyError(), BOTH)


def test_errors_of_this_package_keep_their_message() -> None:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        pyro.sample("v", dist.Normal(0.0, 1.0))
        pyro.param("w", lambda: torch.rand(2))

    with pytest.raises(ValueError, match=r"or pass parameters=\{'w': value\}$"):
        as_model(program, DATA)
    with pytest.raises(ValueError, match="locations: expected None") as caught, called_with(len, {}, 4):
        zs(locations=0)
    assert is_ours(caught.value)
    assert not is_ours(ValueError("never raised"))


def too_few_weights(x: Tensor) -> None:
    with pyro.plate("sequences", len(x)):
        pyro.factor("taste", torch.ones(SIZE - 1)[x.clamp(min=0)].sum(1))


def test_error_of_a_program_tells_what_it_was_called_with() -> None:
    expected = "program(x) with the codes 0..2 of the symbols, [5, 5], filled with -1 after the ends; if it"
    with pytest.raises(ValueError, match=re.escape(expected)):
        as_model(too_few_weights, DATA)


@pytest.mark.parametrize("posterior", [None, {"weight": torch.zeros(2)}])
def test_network_is_told_from_a_program(posterior: dict[str, Tensor] | None) -> None:
    with pytest.raises(ValueError, match=r"see pyro_ksd\.models\.AutoregressiveModel"):
        ksd_check(torch.nn.Embedding(SIZE, 4), DATA, posterior=posterior)


WEIGHTS = torch.rand(5, SIZE, dtype=torch.double, generator=torch.Generator().manual_seed(0)).softmax(-1)


def by_position(sequences: Tensor, lengths: Tensor) -> None:
    """A position-weight matrix for at most five symbols, as many as the data have."""
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            probs = WEIGHTS[t]
            with poutine.mask(mask=t < lengths):
                pyro.sample(f"x_{t}", dist.Categorical(probs), obs=sequences[:, t])
                pyro.sample(f"stop_{t}", dist.Bernoulli(torch.tensor(0.3).double()), obs=stops(lengths, t))


def test_a_table_of_positions_is_scored_as_far_as_it_goes() -> None:
    model = as_model(by_position, DATA)
    expected = [
        sum(float(WEIGHTS[t, a].log()) for t, a in enumerate(x))
        + (len(x) - 1) * torch.tensor(0.7).log().item()
        + torch.tensor(0.3).log().item()
        for x in DATA.to_lists()
    ]
    torch.testing.assert_close(model.log_joint(DATA), torch.tensor(expected).double(), rtol=1e-6, atol=1e-6)
    edits = Substitutions().edits(DATA)
    assert model.log_ratio(DATA, edits).isfinite().all()
    with pytest.raises(ValueError, match=r"no sequence longer than the data \(5 symbols\).*neighborhood=Substitutions"):
        ksd_check(by_position, DATA, num_bootstrap=5, progress=False)
    check = ksd_check(by_position, DATA, neighborhood=Substitutions(), num_bootstrap=5, progress=False)
    assert check["ksd"].attrs["edits"] == "substitution"

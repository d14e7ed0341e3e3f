# SPDX-License-Identifier: Apache-2.0
"""Every style of model through the one call."""

from __future__ import annotations

import math
from typing import Any

import pyro
import pyro.distributions as dist
import pyro_programs as programs
import pytest
import torch
from pyro.distributions import TorchDistribution
from pyro_programs import CHAIN, EXAMPLES, SIZE
from torch import Tensor
from torch.distributions import constraints

from pyro_ksd import Sequences, ksd_check
from pyro_ksd.models import constrain

DATA = CHAIN.draw(25, torch.Generator().manual_seed(1))
STYLES = ["chain_with_stop", "chain_with_end_symbol", "chain_as_one_site", "chain_in_a_loop", "chain_without_loop"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_program_runs_with_no_further_argument(name: str) -> None:
    short = [x for x in DATA.to_lists() if len(x) <= 5]  # the sums over all hidden paths take their time
    possible = [x for x in short if EXAMPLES[name].log_joint(x) > -math.inf]  # type: ignore[arg-type]
    check = ksd_check(EXAMPLES[name].program, Sequences.of(possible, SIZE), num_bootstrap=10, progress=False)
    assert 0 < float(check["ksd"]["p_value_overall"]) <= 1
    generates = name in {"chain with stop", "chain as one site"}
    assert check["ksd"].attrs["kind"] == ("parametric" if generates else "wild")


def test_five_styles_give_the_same_p_value() -> None:
    def run(model: Any) -> Any:
        return ksd_check(model, DATA, bootstrap="wild", num_bootstrap=200, seed=5, progress=False)["ksd"].to_dataset()

    expected = run(CHAIN)
    for style in STYLES:
        found = run(getattr(programs, style))
        assert float(found["p_value_overall"]) == float(expected["p_value_overall"])
        assert found["p_value"].values.tolist() == expected["p_value"].values.tolist()
        assert found["statistic"].values.tolist() == pytest.approx(expected["statistic"].values.tolist(), abs=1e-9)


def test_the_parametric_bootstrap_of_a_program_has_the_law_of_the_distribution() -> None:
    found = [ksd_check(m, DATA, num_bootstrap=300, progress=False) for m in (CHAIN, programs.chain_with_stop)]
    a, b = (check["ksd_null"]["ksd"].values[0] for check in found)
    for view in range(a.shape[1]):  # two samples of one law: their means differ by little
        spread = ((a[:, view].var() + b[:, view].var()) / 300) ** 0.5
        assert abs(a[:, view].mean() - b[:, view].mean()) < 4 * spread


class Backwards(TorchDistribution):
    """A user's own distribution: the chain, read from the end to the start."""

    arg_constraints: dict[str, Any] = {}  # noqa: RUF012
    support = constraints.independent(constraints.integer_interval(-1, SIZE - 1), 1)

    def __init__(self) -> None:
        super().__init__(torch.Size(), torch.Size([60]), validate_args=False)

    def log_prob(self, value: Tensor) -> Tensor:
        return CHAIN.log_prob(self._turned(value))

    def sample(self, sample_shape: Any = torch.Size()) -> Tensor:  # noqa: B008
        return self._turned(CHAIN.sample(sample_shape))

    @staticmethod
    def _turned(value: Tensor) -> Tensor:
        lengths = (value >= 0).sum(-1, keepdim=True)
        index = lengths - 1 - torch.arange(value.shape[-1])
        return value.gather(-1, index.clamp(min=0)).masked_fill(index < 0, -1)


def test_a_distribution_of_the_users_own() -> None:
    turned = Sequences.of([x[::-1] for x in DATA.to_lists()], SIZE)
    check = ksd_check(Backwards(), turned, num_bootstrap=60, progress=False)
    assert check["ksd"].attrs["kind"] == "parametric"
    assert float(check["ksd"]["p_value_overall"]) > 0.05
    with pytest.raises(ValueError, match=r"expected one distribution over padded sequences .* found Normal with batch"):
        ksd_check(dist.Normal(torch.zeros(3), 1.0), turned, progress=False)


def test_an_output_constrained_program() -> None:
    from pyro_ksd.models.conversion import as_model

    ends_with_two = lambda x: x.tokens.gather(1, (x.lengths - 1).clamp(min=0)[:, None])[:, 0] == 2  # noqa: E731
    inside = DATA[ends_with_two(DATA)]
    model = constrain(as_model(programs.chain_with_stop, DATA), ends_with_two)
    check = ksd_check(model, inside, num_bootstrap=20, progress=False)
    assert check["ksd"].attrs["kind"] == "parametric"
    with pytest.raises(ValueError, match=r"found 18 of 25 sequences outside: sequence 2, \[0\]; .*leave them out"):
        ksd_check(model, DATA, num_bootstrap=20, progress=False)


def test_a_sampler_can_be_passed_in() -> None:
    check = ksd_check(programs.chain_backwards, DATA, sampler=CHAIN.draw, num_bootstrap=30, progress=False)
    expected = ksd_check(CHAIN, DATA, num_bootstrap=30, progress=False)
    assert check["ksd"].attrs["kind"] == "parametric"
    assert float(check["ksd"]["p_value_overall"]) == float(expected["ksd"]["p_value_overall"])


def test_own_views_and_options_of_default_views_exclude_each_other() -> None:
    from pyro_ksd import default_views

    with pytest.raises(ValueError, match="neighborhood= and balancing= belong to the default views"):
        ksd_check(CHAIN, DATA, views=default_views(), balancing="mpf")


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
            except ArithmeticError:
                assert program is broken
            assert torch.distributions.Distribution._validate_args is validation
            assert pyro.infer.util.is_validation_enabled() is validation
    assert torch.equal(torch.get_rng_state(), state)
    assert list(pyro.get_param_store().keys()) == ["mine"]
    assert pyro.get_param_store()._params["mine"] is before
    assert torch.get_default_dtype() is torch.float32
    assert torch.is_grad_enabled()
    pyro.clear_param_store()

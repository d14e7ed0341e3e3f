# SPDX-License-Identifier: Apache-2.0
"""What the baselines share: options, programs and samplers, seeds, level and power."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyro_programs
import pytest
import torch
from baseline_results import parts
from example_models import Unsampled, walk, walks
from pictures import axes_of, labels
from scipy.stats import binom

from pyro_ksd import plot_null, plot_views, summary, verdict
from pyro_ksd.checks.baselines import likelihood_ratio_check, mmd_check
from pyro_ksd.kernels import ContiguousKernel
from pyro_ksd.models import constrain
from pyro_ksd.sequences.container import Sequences

THREE_SYMBOLS = Sequences.of([[0, 1, 2], [2, 1], [0], [1, 1]], 3)

CHECKS = [mmd_check, likelihood_ratio_check]


@pytest.mark.parametrize("check", CHECKS)
def test_result_can_be_read_and_drawn_as_that_of_the_stein_check(check: Any) -> None:
    found = check(walk(), walks(20, hold=0.6), num_bootstrap=60, progress=False)
    assert set(found.children) == {"ksd", "ksd_null", "ksd_data", "observed_data"}
    assert verdict(found).startswith("the model does not fit (p = 0.0")
    assert "p-values from 60 draws of the parametric bootstrap" in repr(summary(found))
    assert len(axes_of(plot_null(found))) == found["ksd"].sizes["view"]
    assert len(labels(plot_views(found))) == found["ksd"].sizes["view"] + 1


@pytest.mark.parametrize("check", CHECKS)
def test_seeds_give_the_same_result(check: Any) -> None:
    def null(seed: int) -> Any:
        return parts(check(walk(), walks(), num_bootstrap=10, seed=seed, progress=False))[1]

    state = torch.get_rng_state()
    first = null(3)
    assert torch.equal(torch.get_rng_state(), state)
    np.testing.assert_array_equal(null(3), first)
    assert not np.allclose(null(4), first)


@pytest.mark.parametrize("check", CHECKS)
def test_programs_samplers_and_constraints(check: Any) -> None:
    options = {"num_bootstrap": 5, "progress": False}
    program = check(pyro_programs.chain_with_stop, THREE_SYMBOLS, **options)
    assert parts(program)[1].shape[0] == 5
    by_sampler = check(Unsampled(walk()), walks(), sampler=walk().draw, **options)
    np.testing.assert_array_equal(parts(by_sampler)[1], parts(check(walk(), walks(), **options))[1])
    long = constrain(walk(), lambda s: s.lengths >= 2)
    with pytest.raises(ValueError, match="expected data inside the set of the constrained model"):
        check(long, Sequences.of([[0, 1], [0]], 5), **options)


def test_progress_can_be_seen(terminal: pytest.CaptureFixture[str]) -> None:
    for kind in ("parametric", "wild"):
        mmd_check(walk(), walks(), num_bootstrap=2, bootstrap=kind)  # type: ignore[arg-type]
        assert f"{kind} bootstrap: 100%" in terminal.readouterr().err
    likelihood_ratio_check(walk(), walks(), num_bootstrap=2)
    assert "parametric bootstrap: 100%" in terminal.readouterr().err


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"level": 1.0}, "level: expected a number between 0 and 1, such as 0.05, found 1.0"),
        ({"num_bootstrap": 0}, "num_bootstrap: expected an integer of at least 1, found 0"),
        ({"data": walks(1)}, "expected at least 2 sequences, found 1"),
        ({"data": Sequences.of(["ab", "b"])}, "expected sequences over the model's 5 symbols, found an alphabet of 2"),
        (
            {"model": Unsampled(walk())},
            "model: expected one that can be sampled, found Unsampled, which cannot; pass sampler=, a function of",
        ),
        ({"model": pyro_programs.hmm, "data": THREE_SYMBOLS}, "or give a program the argument num_sequences"),
    ],
)
def test_both_refuse(check: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check(**({"model": walk(), "data": walks(), "progress": False} | arguments))


TESTS = [
    pytest.param(mmd_check, {"bootstrap": "parametric", "num_samples": 12}, id="mmd-parametric"),
    pytest.param(mmd_check, {"bootstrap": "wild"}, id="mmd-wild"),
    pytest.param(likelihood_ratio_check, {"alternative": 1}, id="likelihood-ratio-order-1"),
    pytest.param(likelihood_ratio_check, {"alternative": 2, "pseudocount": 0.5}, id="likelihood-ratio-order-2"),
    pytest.param(likelihood_ratio_check, {"alternative": walk(hold=0.2)}, id="likelihood-ratio-given"),
]


def rejections(
    check: Any, more: dict[str, Any], *, size: int, runs: int, draws: int, hold: float = 0.0, level: float = 0.05
) -> dict[str, int]:
    """How often each view, and all together, reject a walk that never holds."""
    count: Counter[str] = Counter()
    for run in range(runs):
        x = walks(size, hold, seed=run)
        ksd = check(walk(), x, num_bootstrap=draws, seed=run, progress=False, **more)["ksd"]
        p_values = dict(zip(ksd["view"].values, ksd["p_value"].values, strict=True))
        p_values["overall"] = float(ksd["p_value_overall"])
        count.update({name: int(p <= level + 1e-9) for name, p in p_values.items()})
    return count


@pytest.mark.parametrize(("check", "more"), TESTS[:3])
def test_level_in_few_runs(check: Any, more: dict[str, Any]) -> None:
    if check is mmd_check:
        more = more | {"kernels": {"pairs": ContiguousKernel(2)}}
    low, high = binom.interval(0.9999, 40, 0.25)
    assert low <= rejections(check, more, size=6, runs=40, draws=19, level=0.25)["overall"] <= high


@pytest.mark.slow
@pytest.mark.parametrize(("check", "more"), TESTS)
def test_level(check: Any, more: dict[str, Any]) -> None:
    low, high = binom.interval(0.999, 1000, 0.05)
    counts = rejections(check, more, size=8, runs=1000, draws=199)
    print(f"\n{check.__name__} {more}: {dict(counts)} of 1000, band {low:.0f} to {high:.0f}")
    assert all(count <= high for count in counts.values())
    if more.get("bootstrap") != "wild":  # among the signs of few pairs some change nothing, and such ties count
        assert all(low <= count for count in counts.values())


@pytest.mark.slow
@pytest.mark.parametrize(("check", "more"), TESTS)
def test_power(check: Any, more: dict[str, Any]) -> None:
    # The maximum mean discrepancy needs a fault as large as this: it knows the model by a few sequences only.
    counts = rejections(check, more, size=20, runs=200, draws=199, hold=0.6)
    print(f"\n{check.__name__} {more}: {dict(counts)} of 200")
    assert counts["overall"] >= 150

# SPDX-License-Identifier: Apache-2.0
"""Replicated data of a check: how many there are, and that they do not depend on anything else."""

from __future__ import annotations

import pytest
import torch

from pyro_ksd import ksd_check
from pyro_ksd.checks import replication
from pyro_ksd.checks.replication import replicated_data
from pyro_ksd.examples import random_walk
from pyro_ksd.models import SequenceModel, with_sampler
from pyro_ksd.sequences.container import Sequences


def drawn(count: int) -> Sequences:
    return random_walk(3, mean_length=3.0).draw(count, torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("size", "many", "num_sets"), [(5, False, 100), (50, False, 40), (500, False, 10), (500, True, 100)]
)
def test_the_number_of_data_sets(size: int, many: bool, num_sets: int) -> None:
    found = replicated_data(random_walk(3, mean_length=3.0), drawn(size), 0, many=many)
    assert found is not None
    assert found.length.shape == (num_sets, size)


def test_very_large_data_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replication, "_LARGEST", 9)
    assert replicated_data(random_walk(3), drawn(10), 0, many=False) is None
    assert replicated_data(random_walk(3), drawn(9), 0, many=False) is not None


def test_the_same_seed_gives_the_same_data() -> None:
    one, same, other = (replicated_data(random_walk(3), drawn(10), seed, many=False) for seed in (0, 0, 1))
    assert one is not None
    assert same is not None
    assert other is not None
    assert torch.equal(one.length, same.length)
    assert not torch.equal(one.length, other.length)


def test_a_sampler_that_fails_later_is_warned_of() -> None:
    calls = []

    def sampler(num_sequences: int, generator: torch.Generator) -> Sequences:
        calls.append(num_sequences)
        if len(calls) > 1:
            raise ValueError("no more")
        return random_walk(3).draw(num_sequences, generator)

    model = with_sampler(random_walk(3), sampler)
    with pytest.warns(UserWarning, match="no group posterior_predictive, as draws from the model failed: .*no more"):
        check = ksd_check(model, drawn(20), bootstrap="wild", num_bootstrap=19, progress=False)
    assert "posterior_predictive" not in check.children
    assert set(check["observed_data"].data_vars) == {"length"}


def test_models_that_cannot_be_sampled_have_none() -> None:
    class Score(SequenceModel):
        alphabet_size = 3

        def log_joint(self, sequences: Sequences) -> torch.Tensor:
            return -2.0 * sequences.lengths.double()

    check = ksd_check(Score(), drawn(20), num_bootstrap=19, progress=False)
    assert "posterior_predictive" not in check.children


def test_symbols_are_kept_on_request() -> None:
    check = ksd_check(random_walk(3), drawn(10), num_bootstrap=19, replicates=True, progress=False)
    token, length = check["posterior_predictive"]["token"], check["posterior_predictive"]["length"]
    assert ((token >= 0).sum("position") == length).all()
    assert (check["observed_data"]["token"].values == check["ksd_data"]["token"].values).all()
    with pytest.raises(ValueError, match="replicates: expected True or False"):
        ksd_check(random_walk(3), drawn(10), replicates=3, progress=False)  # type: ignore[arg-type]

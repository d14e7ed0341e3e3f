# SPDX-License-Identifier: Apache-2.0
"""Latent sites are summed out in parallel, also where the user asked for one value after the other."""

from __future__ import annotations

from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro import poutine
from pyro_programs import EMISSION, HIDDEN_MOVES, HIDDEN_START, bernoulli, hmm, stops
from pyro_programs import FEW_SEQUENCES as DATA
from torch import Tensor

from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.programs.enumeration import InParallel


def sequential(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths), dim=-1):
        z: Any = None
        for t in pyro.markov(range(sequences.shape[1])):
            with poutine.mask(mask=t < lengths):
                probs = HIDDEN_START if z is None else HIDDEN_MOVES[z]
                z = pyro.sample(f"z_{t}", dist.Categorical(probs), infer={"enumerate": "sequential"})
                pyro.sample(f"x_{t}", dist.Categorical(EMISSION[z]), obs=sequences[:, t])
                pyro.sample(f"stop_{t}", bernoulli(), obs=stops(lengths, t))


def test_the_sum_is_the_same() -> None:
    torch.testing.assert_close(as_model(sequential, DATA).log_joint(DATA), as_model(hmm, DATA).log_joint(DATA))


@pytest.mark.parametrize("observed", [None, torch.tensor(0)])
def test_only_latent_sites_change(observed: Tensor | None) -> None:
    def program() -> None:
        pyro.sample("z", dist.Categorical(HIDDEN_START), obs=observed, infer={"enumerate": "sequential"})
        pyro.sample("w", dist.Categorical(HIDDEN_START))

    nodes = poutine.trace(InParallel()(program)).get_trace().nodes
    assert nodes["z"]["infer"]["enumerate"] == ("parallel" if observed is None else "sequential")
    assert "enumerate" not in nodes["w"]["infer"]

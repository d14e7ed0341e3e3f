# SPDX-License-Identifier: Apache-2.0
"""Modules in training mode are found, and not changed."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor

import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro import poutine
from pyro.nn import PyroModule
from pyro_programs import CHAIN, SIZE, stops
from torch import Tensor, nn

from pyro_ksd import AutoregressiveModel, ksd_check
from pyro_ksd.models.training_mode import in_evaluation_mode

DATA = CHAIN.draw(30, torch.Generator().manual_seed(0))


class Network(PyroModule):
    """Logits of each symbol from the one before, with a layer in between."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Embedding(SIZE + 1, 4), layer, nn.Linear(4, SIZE))

    def forward(self, sequences: Tensor, lengths: Tensor) -> None:
        before = torch.full_like(lengths, SIZE)
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                logits = self.inner(before)
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(logits=logits), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", dist.Bernoulli(0.2), obs=stops(lengths, t).float())
                before = sequences[:, t]


LAYERS = [nn.BatchNorm1d(4), nn.Dropout(0.3), nn.AlphaDropout(0.3), nn.RReLU()]


@pytest.mark.parametrize("layer", LAYERS, ids=[type(layer).__name__ for layer in LAYERS])
@pytest.mark.parametrize("as_closure", [False, True])
def test_training_mode_is_found_and_nothing_changes(layer: nn.Module, as_closure: bool) -> None:
    torch.manual_seed(0)
    network = Network(copy.deepcopy(layer))
    before = copy.deepcopy(network.state_dict())
    program = (lambda sequences, lengths: network(sequences, lengths)) if as_closure else network
    with pytest.raises(ValueError, match=rf"module {type(layer).__name__}: found training mode.*call \.eval\(\)"):
        ksd_check(program, DATA, num_bootstrap=5, progress=False)
    network.eval()
    check = ksd_check(program, DATA, num_bootstrap=5, progress=False)
    assert check["ksd"].attrs["kind"] == "wild"
    for name, value in network.state_dict().items():
        assert torch.equal(value, before[name]), name
    assert not network.training


def test_autoregressive_networks_in_training_mode() -> None:
    layers = nn.Sequential(nn.Embedding(SIZE + 1, 4), nn.Dropout(0.5), nn.Linear(4, SIZE))
    with pytest.raises(ValueError, match=r"module Dropout: found training mode.*\.eval\(\)"):
        AutoregressiveModel(layers, prompt=[SIZE], end=0, max_length=5)
    AutoregressiveModel(layers.eval(), prompt=[SIZE], end=0, max_length=5)


@pytest.mark.parametrize(
    ("module", "arguments", "refused"),
    [
        (nn.GRU(2, 2, num_layers=2, dropout=0.5), [torch.zeros(1, 1, 2)], True),
        (nn.GRU(2, 2, num_layers=2), [torch.zeros(1, 1, 2)], False),
        (nn.MultiheadAttention(2, 1, dropout=0.5), [torch.zeros(1, 1, 2)] * 3, True),
        (nn.MultiheadAttention(2, 1), [torch.zeros(1, 1, 2)] * 3, False),
        (nn.TransformerEncoderLayer(2, 1, 2, dropout=0.5), [torch.zeros(1, 1, 2)], True),
        (nn.Dropout(0.0), [torch.zeros(1)], False),
        (nn.Linear(1, 1), [torch.zeros(1)], False),
        (nn.LayerNorm(1), [torch.zeros(1)], False),
    ],
)
def test_which_modules_are_refused(module: nn.Module, arguments: list[Tensor], refused: bool) -> None:
    def run() -> None:
        with in_evaluation_mode():
            module(*arguments)

    if refused:
        with pytest.raises(ValueError, match="found training mode, in which its output is random"):
            run()
    module.train(not refused)
    run()
    module.train()
    module(*arguments)  # the hook is gone


def test_other_threads_may_train_in_the_meantime() -> None:
    dropout = nn.Dropout()
    with in_evaluation_mode(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(dropout, torch.ones(3)).result().shape == (3,)
        with pytest.raises(ValueError, match="module Dropout: found training mode"):
            dropout(torch.ones(3))

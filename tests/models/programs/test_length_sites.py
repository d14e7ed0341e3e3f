# SPDX-License-Identifier: Apache-2.0
"""Which programs of vectors depend on the length of a sequence, other than by masks."""

from __future__ import annotations

from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro import poutine
from torch import Tensor

from pyro_ksd import ksd_check
from pyro_ksd.models.length_distribution import has_length_distribution
from pyro_ksd.models.programs.vectorized import VectorizedProgram
from pyro_ksd.sequences.container import Sequences

CHANNELS = 4


def tones(sequences: Tensor, lengths: Tensor, more: Any = None, *, ups: Any = 0.2) -> None:
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                fn = dist.Bernoulli(torch.as_tensor(ups).expand(CHANNELS)).to_event(1)
                pyro.sample(f"y_{t}", fn, obs=sequences[:, t].float())
                if more is not None:
                    more(t, sequences, lengths)


def beside(name: str) -> Any:
    """The program with something more inside the plate."""

    def stop(t: int, sequences: Tensor, lengths: Tensor) -> None:
        # With this probability a stop and its absence have the same log-probability.
        pyro.sample(f"stop_{t}", dist.Bernoulli(0.5), obs=(lengths == t + 1).float())

    def copy(t: int, sequences: Tensor, lengths: Tensor) -> None:
        pyro.deterministic(f"copy_{t}", lengths)

    def count(t: int, sequences: Tensor, lengths: Tensor) -> None:
        with poutine.mask(mask=torch.tensor(t == 0)):
            pyro.sample(f"length_{t}", dist.Poisson(3.0), obs=lengths.float())

    def term(t: int, sequences: Tensor, lengths: Tensor) -> None:
        pyro.factor(f"term_{t}", torch.zeros(len(lengths)))

    def of_length(t: int, sequences: Tensor, lengths: Tensor) -> None:
        pyro.sample(f"more_{t}", dist.Normal(lengths.float(), 1.0), obs=torch.zeros(len(lengths)))

    def hidden(t: int, sequences: Tensor, lengths: Tensor) -> None:
        pyro.sample(f"z_{t}", dist.Categorical(torch.ones(2) / 2), infer={"enumerate": "parallel"})

    more = {"stop": stop, "copy": copy, "count": count, "term": term, "of length": of_length, "hidden": hidden}[name]

    def program(sequences: Tensor, lengths: Tensor) -> None:
        tones(sequences, lengths, more)

    return program


GENERATOR = torch.Generator().manual_seed(0)
DATA = Sequences.of(
    [torch.bernoulli(torch.full((length, CHANNELS), 0.3), generator=GENERATOR) for length in (3, 1, 4, 2, 2)]
)


@pytest.mark.parametrize(
    ("name", "defined"),
    [("stop", None), ("count", None), ("term", None), ("of length", None), ("copy", False), ("hidden", False)],
)
def test_sites_that_depend_on_the_length(name: str, defined: bool | None) -> None:
    assert VectorizedProgram(beside(name), DATA).defines_lengths is defined


def test_symbols_alone_do_not() -> None:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        tones(sequences, lengths)

    def masked_by_itself(sequences: Tensor, lengths: Tensor) -> None:
        inside = torch.arange(sequences.shape[1]) < lengths[:, None]
        fn = dist.Bernoulli(torch.full((*sequences.shape,), 0.2)).to_event(1).mask(inside).to_event(1)
        with pyro.plate("sequences", len(lengths)):
            pyro.sample("y", fn, obs=sequences.float())

    for each in (program, masked_by_itself):
        model = VectorizedProgram(each, DATA)
        assert model.defines_lengths is False
        assert not has_length_distribution(model, DATA)
    # Where symbols are no vectors, the sum over all of them shows it.
    plain = Sequences(DATA.tokens, DATA.lengths, DATA.alphabet_size)

    def symbols(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("score", -lengths.float())

    assert VectorizedProgram(symbols, plain).defines_lengths is None


@pytest.mark.filterwarnings("ignore:the view.s. .* cannot be used with")  # of few data
def test_a_true_model_is_not_rejected_for_the_vectors_that_the_data_lack() -> None:
    x = torch.bernoulli(torch.full((40, 5, 6), 0.2), generator=torch.Generator().manual_seed(0))

    def coins(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    fn = dist.Bernoulli(torch.full((6,), 0.2)).to_event(1)
                    pyro.sample(f"y_{t}", fn, obs=sequences[:, t])

    with pytest.warns(UserWarning, match="no probability to lengths"):
        check = ksd_check(coins, Sequences.of(list(x)), num_bootstrap=200, progress=False)
    assert "length" not in check["ksd"]["view"].values
    assert float(check["ksd"]["p_value_overall"]) > 0.05

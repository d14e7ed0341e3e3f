# SPDX-License-Identifier: Apache-2.0
"""What users get wrong in the layout of a program, and what they are told."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyro
import pyro.distributions as dist
import pyro_programs as programs
import pytest
import torch
from pyro import poutine
from pyro_programs import FEW_SEQUENCES as DATA
from pyro_programs import INITIAL, chain_steps, chain_with_stop
from torch import Tensor

from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.programs.plate_layout import (
    Layout,
    check_latents,
    find_layout,
    in_plate,
    is_enumerated,
    plate_depth,
    sample_sites,
)


def latent_inside(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths)):
        pyro.sample("mood", dist.Normal(0.0, 1.0))
        chain_steps(sequences, lengths)


def global_latent(sequences: Tensor, lengths: Tensor) -> None:
    pyro.sample("rate", dist.Beta(1.0, 1.0))
    with pyro.plate("sequences", len(lengths)):
        chain_steps(sequences, lengths)


def factor_outside_the_plate(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths)):
        chain_steps(sequences, lengths)
    pyro.factor("taste", lengths.double().sum())


def hard_coded_everywhere(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", 7):
        pyro.sample("x", dist.Bernoulli(0.5), obs=torch.ones(7))


def no_plate(sequences: Tensor, lengths: Tensor) -> None:
    chain_steps(sequences, lengths)


def two_plates(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths)):
        chain_steps(sequences, lengths)
    with pyro.plate("again", len(lengths)):
        pyro.factor("length", -lengths.double())


def subsampled(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths), subsample_size=2) as index:
        chain_steps(sequences[index], lengths[index])


def sequential(sequences: Tensor, lengths: Tensor) -> None:
    for i in pyro.plate("sequences", len(lengths)):
        for t in range(int(lengths[i])):
            pyro.sample(f"x_{i}_{t}", dist.Categorical(INITIAL), obs=sequences[i, t])


def enumerated_outside(sequences: Tensor, lengths: Tensor) -> None:
    pyro.sample("regime", dist.Categorical(torch.ones(2) / 2), infer={"enumerate": "parallel"})
    with pyro.plate("sequences", len(lengths)):
        chain_steps(sequences, lengths)


def enumerated_without_markov(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths)):
        for t in range(30):
            pyro.sample(f"z_{t}", dist.Categorical(torch.ones(2) / 2), infer={"enumerate": "parallel"})


MISTAKES: list[tuple[Callable[..., Any], str]] = [
    (latent_inside, "site 'mood': found a latent inside the plate 'sequences' that is neither observed nor enumerated"),
    (global_latent, "site 'rate': found a global latent without a value, expected one in parameters="),
    (factor_outside_the_plate, "site 'taste': stands outside the plate 'sequences', but its log-probability changes"),
    (hard_coded_everywhere, "found the plates {'sequences': 7} when the program was tried with 3 sequences and"),
    (no_plate, "expected a plate with as many members as sequences, found no plate"),
    (two_plates, "expected one plate over the sequences, found several of their number: ['again', 'sequences']"),
    (subsampled, "plate 'sequences': found 2 of 3 members, expected all of them; a subsampled plate"),
    (sequential, "plate 'sequences': found a sequential plate (for ... in pyro.plate), expected a vectorized one"),
    (enumerated_outside, "site 'regime': found an enumerated latent outside the plate 'sequences'; it would couple"),
    (enumerated_without_markov, "found 30 enumerated sites without pyro.markov ('z_0', 'z_1', ...)"),
]


@pytest.mark.parametrize(("program", "message"), MISTAKES, ids=[program.__name__ for program, _ in MISTAKES])
def test_mistake_is_named(program: Callable[..., Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        as_model(program, DATA)


def trace(program: Callable[..., Any], count: int) -> Any:
    return poutine.trace(program).get_trace(DATA.tokens[:count], DATA.lengths[:count])


@pytest.mark.parametrize(
    ("program", "expected", "depth"),
    [
        (chain_with_stop, Layout("sequences", -1, frozenset()), 1),
        (programs.chain_backwards, Layout("walks", -1, frozenset()), 1),
        (programs.chain_without_loop, Layout("sequences", -2, frozenset()), 2),
        (programs.nested_features, Layout("sequences", -1, frozenset()), 2),
        (programs.scaled_and_subject_to_priors, Layout("sequences", -1, frozenset({"prior"})), 1),
    ],
)
def test_layout_of_programs(program: Callable[..., Any], expected: Layout, depth: int) -> None:
    assert find_layout(trace(program, 3), 3, trace(program, 5), 5) == expected
    assert plate_depth(trace(program, 3)) == depth


def test_a_plate_that_has_the_number_of_sequences_by_chance_is_told_from_theirs() -> None:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("three", 3, dim=-2), pyro.plate("sequences", len(lengths), dim=-1):
            pyro.factor("length", -lengths.double().expand(3, -1))

    assert find_layout(trace(program, 3), 3, trace(program, 5), 5) == Layout("sequences", -1, frozenset())


def test_sites_of_a_trace() -> None:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        pyro.param("weight", torch.ones(1))
        with pyro.plate("rows", 2):
            pyro.sample("prior", dist.Normal(0.0, 1.0))
        with pyro.plate("sequences", len(lengths)):
            pyro.sample("state", dist.Bernoulli(0.5), infer={"enumerate": "parallel"})
            pyro.sample("first", dist.Categorical(INITIAL), obs=sequences[:, 0], infer={"enumerate": "parallel"})

    sites = dict(sample_sites(trace(program, 3)))
    assert list(sites) == ["prior", "state", "first"]
    assert [in_plate(site, "sequences") for site in sites.values()] == [False, True, True]
    assert [is_enumerated(site) for site in sites.values()] == [False, True, False]


def test_sites_outside_the_plate_that_only_longer_sequences_have_are_refused() -> None:
    def late(sequences: Tensor, lengths: Tensor) -> None:
        pyro.deterministic("longest", lengths.max())
        if len(lengths) > 3:
            pyro.factor("late", torch.zeros(()))
        with pyro.plate("sequences", len(lengths)):
            chain_steps(sequences, lengths)

    layout = Layout("sequences", -1, frozenset())
    check_latents(trace(late, 3), layout)
    with pytest.raises(
        ValueError, match="site 'late': stands outside the plate 'sequences', but only longer sequences"
    ):
        check_latents(trace(late, 4), layout)
    check_latents(trace(late, 4), Layout("sequences", -1, frozenset({"late"})))


@pytest.mark.parametrize(("count", "is_refused"), [(20, False), (21, True)])
def test_up_to_twenty_enumerated_sites_need_no_markov(count: int, is_refused: bool) -> None:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(count):
                pyro.sample(f"z_{t}", dist.Bernoulli(0.5), infer={"enumerate": "parallel"})

    layout = Layout("sequences", -1, frozenset())
    if is_refused:
        with pytest.raises(ValueError, match=r"found 21 enumerated sites without pyro\.markov"):
            check_latents(trace(program, 3), layout)
    else:
        check_latents(trace(program, 3), layout)

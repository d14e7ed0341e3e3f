# SPDX-License-Identifier: Apache-2.0
"""What users get wrong in a Pyro program, and what they are told."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro import poutine
from pyro_programs import INITIAL, MOVES, SIZE, bernoulli, chain_with_stop, stops
from torch import Tensor

from pyro_ksd import ksd_check
from pyro_ksd.models.conversion import as_model
from pyro_ksd.sequences.container import Sequences

DATA = Sequences.of([[0, 1, 1, 2], [2], [1, 1, 0], [0, 0], [2, 1, 0, 1, 1]], SIZE)


def steps(sequences: Tensor, lengths: Tensor) -> None:
    """The sites of a right chain, to stand inside a plate."""
    for t in range(sequences.shape[1]):
        with poutine.mask(mask=t < lengths):
            probs = INITIAL.expand(len(lengths), -1) if t == 0 else MOVES[sequences[:, t - 1]]
            pyro.sample(f"x_{t}", dist.Categorical(probs), obs=sequences[:, t])
            pyro.sample(f"stop_{t}", bernoulli(), obs=stops(lengths, t))


def latent_inside(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths)):
        pyro.sample("mood", dist.Normal(0.0, 1.0))
        steps(sequences, lengths)


def global_latent(sequences: Tensor, lengths: Tensor) -> None:
    pyro.sample("rate", dist.Beta(1.0, 1.0))
    with pyro.plate("sequences", len(lengths)):
        steps(sequences, lengths)


def factor_summed_over_the_batch(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths)):
        steps(sequences, lengths)
        pyro.factor("taste", sequences.sum().double())


def factor_outside_the_plate(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths)):
        steps(sequences, lengths)
    pyro.factor("taste", lengths.double().sum())


def missing_mask(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            pyro.sample(f"x_{t}", dist.Categorical(INITIAL), obs=sequences[:, t])
            with poutine.mask(mask=t < lengths):
                pyro.sample(f"stop_{t}", bernoulli(), obs=stops(lengths, t))


def ignores_lengths(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            pyro.sample(f"x_{t}", dist.Categorical(INITIAL), obs=sequences[:, t])


def padding_is_no_symbol(x: Tensor) -> None:
    with pyro.plate("sequences", len(x)):
        for t in range(x.shape[1]):
            pyro.sample(f"x_{t}", dist.Categorical(INITIAL), obs=x[:, t])


def unknown_symbols(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                pyro.sample(f"x_{t}", dist.Categorical(torch.ones(2) / 2), obs=sequences[:, t])


def hard_coded_batch_size(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(DATA)):
        steps(sequences + torch.zeros(len(DATA), 1, dtype=torch.long), lengths)


def hard_coded_everywhere(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", 7):
        pyro.sample("x", dist.Bernoulli(0.5), obs=torch.ones(7))


def no_plate(sequences: Tensor, lengths: Tensor) -> None:
    steps(sequences, lengths)


def two_plates(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths)):
        steps(sequences, lengths)
    with pyro.plate("again", len(lengths)):
        pyro.factor("length", -lengths.double())


def subsampled(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths), subsample_size=2) as index:
        steps(sequences[index], lengths[index])


def sequential(sequences: Tensor, lengths: Tensor) -> None:
    for i in pyro.plate("sequences", len(lengths)):
        for t in range(int(lengths[i])):
            pyro.sample(f"x_{i}_{t}", dist.Categorical(INITIAL), obs=sequences[i, t])


def enumerated_outside(sequences: Tensor, lengths: Tensor) -> None:
    pyro.sample("regime", dist.Categorical(torch.ones(2) / 2), infer={"enumerate": "parallel"})
    with pyro.plate("sequences", len(lengths)):
        steps(sequences, lengths)


def enumerated_without_markov(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths)):
        for t in range(30):
            pyro.sample(f"z_{t}", dist.Categorical(torch.ones(2) / 2), infer={"enumerate": "parallel"})


def forbids_the_second_symbol(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths)):
        steps(sequences, lengths)
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                pyro.factor(f"ban_{t}", torch.where((sequences[:, t] == 2) & (t > 0), -torch.inf, 0.0))


def nan_at_a_site(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths)):
        steps(sequences, lengths)
        pyro.factor("root", (lengths - 3.0).sqrt())


def three_arguments(sequences: Tensor, lengths: Tensor, table: Tensor) -> None:
    """Not called."""


MISTAKES: list[tuple[Callable[..., Any], str]] = [
    (latent_inside, "site 'mood': found a latent inside the plate 'sequences' that is neither observed nor enumerated"),
    (global_latent, "site 'rate': found a global latent without a value, expected one in parameters="),
    (factor_summed_over_the_batch, "log-joint of a sequence changes with the other sequences of the batch"),
    (factor_outside_the_plate, "site 'taste': stands outside the plate 'sequences', but its log-probability changes"),
    (missing_mask, "log-joint of a sequence changes with the padding after its end"),
    (ignores_lengths, "expected steps t >= lengths to count nothing: put them under poutine.mask(mask=t < lengths)"),
    (padding_is_no_symbol, "filled with -1 after the ends: a value that is no symbol"),
    (unknown_symbols, "the program does not score the data: site 'x_0': Expected value argument"),
    (hard_coded_batch_size, "the program runs on all 5 sequences, but not on a few of them: a batch size seems to be"),
    (hard_coded_everywhere, "found the plates {'sequences': 7} when the program was tried with 3 sequences and"),
    (no_plate, "expected a plate with as many members as sequences, found no plate"),
    (two_plates, "expected one plate over the sequences, found several of their number: ['again', 'sequences']"),
    (subsampled, "plate 'sequences': found 2 of 3 members, expected all of them; a subsampled plate"),
    (sequential, "plate 'sequences': found a sequential plate (for ... in pyro.plate), expected a vectorized one"),
    (enumerated_outside, "site 'regime': found an enumerated latent outside the plate 'sequences'; it would couple"),
    (enumerated_without_markov, "found 30 enumerated sites without pyro.markov ('z_0', 'z_1', ...)"),
    (nan_at_a_site, "site 'root': found NaN in the log-probability of sequence"),
    (three_arguments, "found the parameters ['sequences', 'lengths', 'table']"),
]


@pytest.mark.parametrize(("program", "message"), MISTAKES, ids=[program.__name__ for program, _ in MISTAKES])
def test_mistake_is_named(program: Callable[..., Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        as_model(program, DATA)


def test_an_impossible_sequence_is_named_with_its_site() -> None:
    message = "probability zero to 1 of 5 sequences: sequence 0, [0, 1, 1, 2], at site ban_3. It cannot have"
    with pytest.warns(UserWarning, match=re.escape(message)):
        ksd_check(forbids_the_second_symbol, DATA, order=1, num_bootstrap=5, progress=False)


def bans_within_a_nested_plate(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths), dim=-1):
        pyro.factor("length", -lengths.double())
        with pyro.plate("symbols", SIZE, dim=-2):
            inside = torch.arange(sequences.shape[1]) < lengths[:, None]
            counts = ((sequences == torch.arange(SIZE)[:, None, None]) & inside).sum(-1)
            pyro.factor("crowd", torch.where(counts > 2, -torch.inf, 0.0))


def test_one_of_several_values_of_a_site_is_enough_to_blame_it() -> None:
    with pytest.warns(UserWarning, match=re.escape("sequence 4, [2, 1, 0, 1, 1], at site crowd. It cannot have made")):
        ksd_check(bans_within_a_nested_plate, DATA, num_bootstrap=5, progress=False)


def returns_nothing(sequences: Any = None, lengths: Any = None, num_sequences: int = 0) -> None:
    if lengths is not None:
        chain_with_stop(sequences, lengths)


def returns_tokens_only(sequences: Any = None, lengths: Any = None, num_sequences: int = 0) -> Any:
    if lengths is not None:
        return chain_with_stop(sequences, lengths)
    return torch.zeros(num_sequences, 4, dtype=torch.long)


def stops_generating_early(sequences: Any = None, lengths: Any = None, num_sequences: int = 0) -> Any:
    if lengths is not None:
        return chain_with_stop(sequences, lengths)
    tokens, lengths = chain_with_stop(num_sequences=num_sequences)
    return tokens[:, :3], lengths


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (returns_nothing, "the program was asked for 8 sequences (num_sequences=8) and returned nothing, expected"),
        (returns_tokens_only, "returned a tensor [8, 4], expected (sequences, lengths) of shapes [8, T] and [8]"),
        (stops_generating_early, "of 8 generated sequences were still alive after 3 steps"),
    ],
)
def test_generation_is_checked(program: Callable[..., Any], message: str) -> None:
    model = as_model(program, DATA)
    with pytest.raises(ValueError, match=re.escape(message)):
        model.draw(8, torch.Generator().manual_seed(0))  # type: ignore[attr-defined]


def returns_a_pair(x: Any = None, num_sequences: int = 0) -> Any:
    from pyro_programs import CHAIN

    with pyro.plate("sequences", num_sequences if x is None else len(x)):
        return pyro.sample("x", CHAIN, obs=x), None


def test_generation_of_one_tensor_is_checked() -> None:
    model = as_model(returns_a_pair, DATA)
    with pytest.raises(ValueError, match=re.escape("expected a tensor [4, T] filled with -1 after the end")):
        model.draw(4)  # type: ignore[attr-defined]


@pytest.mark.parametrize("model", [3, "chain", object()])
def test_what_is_no_model(model: Any) -> None:
    with pytest.raises(ValueError, match="model: expected a Pyro program, a distribution, or an object with log_joint"):
        as_model(model, DATA)


def conditional_on_length(sequences: Tensor, lengths: Tensor) -> None:
    """As Pyro's own HMM example: nothing says how long a sequence is."""
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                probs = INITIAL.expand(len(lengths), -1) if t == 0 else MOVES[sequences[:, t - 1]]
                pyro.sample(f"x_{t}", dist.Categorical(probs), obs=sequences[:, t])


def test_a_model_without_a_length_law_is_checked_by_substitutions() -> None:
    with pytest.warns(UserWarning, match="the model gives no probability to lengths") as caught:
        check = ksd_check(conditional_on_length, DATA, num_bootstrap=5, progress=False)
    assert 'pyro.sample(f"stop_{t}", dist.Bernoulli(p)' in str(caught[0].message)
    assert check["ksd"].attrs["edits"] == "substitution"
    assert "length" not in check["ksd"]["view"].values


def test_a_model_without_a_length_law_refuses_insertions() -> None:
    from pyro_ksd.edits.neighborhoods import Substitutions, zs

    with pytest.raises(ValueError, match="view 'content-1': found edits that change the length, but the model"):
        ksd_check(conditional_on_length, DATA, neighborhood=zs(), num_bootstrap=5, progress=False)
    ksd_check(conditional_on_length, DATA, neighborhood=Substitutions(2), num_bootstrap=5, progress=False)


@pytest.mark.parametrize("cost", [0.0, 0.5, 1.5])
def test_a_score_without_a_finite_sum_is_checked_given_the_lengths(cost: float) -> None:
    """All sequences of a length together have the score ``(3 exp(-cost))^length``, which falls if cost > log 3."""

    def score(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("length", -cost * lengths)

    if cost > math.log(SIZE):
        check = ksd_check(score, DATA, num_bootstrap=5, progress=False)
    else:
        with pytest.warns(UserWarning, match="the model gives no probability to lengths") as caught:
            check = ksd_check(score, DATA, num_bootstrap=5, progress=False)
        assert 'pyro.factor("length", -cost * lengths)' in str(caught[0].message)
    assert ("length" in check["ksd"]["view"].values) == (cost > math.log(SIZE))


def test_data_for_a_model_may_be_lists() -> None:
    rows = [[0, 1, 2], [2, 1], [0]]
    own = as_model(chain_with_stop, rows)
    assert own.log_joint(Sequences.of(rows)).equal(
        as_model(chain_with_stop, Sequences.of(rows)).log_joint(Sequences.of(rows))
    )


def uniform_up_to_40(sequences: Tensor, lengths: Tensor) -> None:
    """All lengths up to 40 are equally probable: no law of the length, it seems, until sequences get too long."""
    with pyro.plate("sequences", len(lengths)):
        pyro.factor("length", torch.where((lengths >= 1) & (lengths <= 40), 0.0, -torch.inf))
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                pyro.sample(f"x_{t}", dist.Categorical(INITIAL), obs=sequences[:, t])


def test_a_uniform_law_of_the_length_is_a_law() -> None:
    check = ksd_check(uniform_up_to_40, DATA, num_bootstrap=5, progress=False)
    assert check["ksd"].attrs["edits"] == "deletion, insertion, substitution"


def hmm_given_lengths(sequences: Tensor, lengths: Tensor) -> None:
    """The layout of Pyro's own HMM example."""
    with pyro.plate("sequences", len(lengths), dim=-1):
        z: Any = 0
        for t in pyro.markov(range(int(lengths.max()))):
            with poutine.mask(mask=(t < lengths)):
                moves = torch.tensor([[0.9, 0.1], [0.3, 0.7]], dtype=torch.double)
                z = pyro.sample(f"z_{t}", dist.Categorical(moves[z]), infer={"enumerate": "parallel"})
                emission = torch.stack([INITIAL, INITIAL.flip(0)])
                pyro.sample(f"x_{t}", dist.Categorical(emission[z]), obs=sequences[:, t])


def test_an_hmm_given_the_lengths_is_checked_by_substitutions() -> None:
    with pytest.warns(UserWarning, match="the model gives no probability to lengths"):
        check = ksd_check(hmm_given_lengths, DATA, num_bootstrap=5, progress=False)
    assert check["ksd"].attrs["edits"] == "substitution"
    assert list(check["ksd"]["view"].values) == ["content-1", "content-2", "content-3", "start"]


def given_lengths_with_a_ban(sequences: Tensor, lengths: Tensor) -> None:
    """Nothing says how long a sequence is, but 1 must not follow 1: repeating a sequence soon becomes impossible."""
    moves = MOVES.clone().fill_diagonal_(0.0)
    logits = (moves / moves.sum(-1, keepdim=True)).log()
    with pyro.plate("sequences", len(lengths)):
        for t in range(1, sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                pyro.sample(f"x_{t}", dist.Categorical(logits=logits[sequences[:, t - 1]]), obs=sequences[:, t])
        pyro.sample("x_0", dist.Categorical(INITIAL), obs=sequences[:, 0])


def test_a_ban_is_no_law_of_the_length() -> None:
    data = Sequences.of([[1, 2, 0, 2, 1], [0, 1], [2]], SIZE)  # repeated, it has 1 after 1
    with pytest.warns(UserWarning, match="the model gives no probability to lengths"):
        ksd_check(given_lengths_with_a_ban, data, num_bootstrap=5, progress=False)


def test_error_of_a_program_tells_what_it_was_called_with() -> None:
    def too_few_weights(x: Tensor) -> None:
        with pyro.plate("sequences", len(x)):
            pyro.factor("taste", torch.ones(SIZE - 1)[x.clamp(min=0)].sum(1))

    with pytest.raises(IndexError) as error:
        as_model(too_few_weights, DATA)
    assert error.value.__notes__ == [
        "The program was called as program(x) with the codes 0..2 of the symbols, long [5, 5], filled with -1 behind "
        "the ends."
    ]


@pytest.mark.parametrize("posterior", [None, {"weight": torch.zeros(2)}])
def test_network_is_told_from_a_program(posterior: dict[str, Tensor] | None) -> None:
    with pytest.raises(IndexError) as error:
        ksd_check(torch.nn.Embedding(SIZE, 4), DATA, posterior=posterior)
    assert "see pyro_ksd.models.AutoregressiveModel" in error.value.__notes__[-1]


def test_model_comes_first() -> None:
    with pytest.raises(ValueError, match="found function; the model comes first, then the data"):
        ksd_check(DATA, chain_with_stop)


def test_data_without_a_symbol_are_refused() -> None:
    for data in (["", ""], [[], []], torch.zeros(2, 0, dtype=torch.long)):
        with pytest.raises(ValueError, match="data: expected symbols, found 2 empty sequences only; look at how"):
            ksd_check(chain_with_stop, data)


def test_guide_is_no_point() -> None:
    with pytest.raises(
        ValueError, match="expected values by name, found function; give a guide or draws as posterior="
    ):
        as_model(chain_with_stop, DATA, parameters=lambda: None)  # type: ignore[arg-type]

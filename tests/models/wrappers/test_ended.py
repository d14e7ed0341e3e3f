# SPDX-License-Identifier: Apache-2.0
"""Models whose sequences end with a symbol that is part of the data."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro import poutine
from pyro_programs import simplex
from torch import Tensor

from pyro_ksd import ksd_check, ksd_compare
from pyro_ksd.edits.neighborhoods import BeforeEnd, Substitutions, zs
from pyro_ksd.models import MarkovSequence
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.length_distribution import has_length_distribution
from pyro_ksd.models.model_batch import ModelList
from pyro_ksd.models.wrappers.ended import EndedBatch, EndedModel, common_ends, end_codes, ends_once
from pyro_ksd.sequences.container import Sequences

SIZE, END = 4, 1
START = torch.tensor([0.5, 0.0, 0.2, 0.3], dtype=torch.double)
MOVES = simplex(SIZE, SIZE)  # the row of the end symbol is never used by a sequence that ends there
OTHER = simplex(SIZE, SIZE, seed=5)


def bigrams(sequences: Tensor, lengths: Tensor, moves: Tensor = MOVES) -> None:
    """A bigram model with an end symbol among its symbols, and no other word about lengths."""
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            probs = START.expand(len(lengths), -1) if t == 0 else moves[sequences[:, t - 1]]
            with poutine.mask(mask=t < lengths):
                pyro.sample(f"x_{t}", dist.Categorical(probs), obs=sequences[:, t])


def drawn(count: int, seed: int = 0, moves: Tensor = MOVES) -> Sequences:
    generator = torch.Generator().manual_seed(seed)
    rows = []
    for _ in range(count):
        row = [int(torch.multinomial(START, 1, generator=generator))]
        while row[-1] != END:
            row.append(int(torch.multinomial(moves[row[-1]], 1, generator=generator)))
        rows.append(row)
    return Sequences.of(rows, SIZE)


def log_joint(x: list[Any]) -> float:
    if not x or x.index(END) != len(x) - 1 if END in x else True:
        return -math.inf
    pairs = pairwise(x)
    first = math.log(START[x[0]]) if START[x[0]] > 0 else -math.inf
    return first + sum(math.log(MOVES[a, b]) for a, b in pairs)


def test_ratios_against_plain_python() -> None:
    data = drawn(6)
    model = as_model(bigrams, data, end=END)
    for around in (zs(), BeforeEnd(zs())):
        edits = around.edits(data)
        found = model.log_ratio(data, edits).tolist()
        pairs = zip(edits.owner.tolist(), edits.apply(data).to_lists(), strict=True)
        expected = [log_joint(y) - log_joint(data.to_lists()[owner]) for owner, y in pairs]
        assert found == pytest.approx(expected, abs=1e-10)
        assert -math.inf in found


def test_the_true_model_is_accepted_and_a_wrong_one_rejected() -> None:
    options: dict[str, Any] = {"end": END, "num_bootstrap": 200, "localize": False, "progress": False}
    rejected = 0
    for seed in range(5):
        check = ksd_check(bigrams, drawn(150, seed), **options)
        assert check["ksd"].attrs["edits"] == "deletion, insertion, substitution"
        assert "length" in check["ksd"]["view"].values
        rejected += float(check["ksd"]["p_value_overall"]) <= 0.05
        wrong = ksd_check(lambda sequences, lengths: bigrams(sequences, lengths, OTHER), drawn(150, seed), **options)
        assert float(wrong["ksd"]["p_value_overall"]) < 0.05
    assert rejected <= 2  # more have a probability of 0.0012


def test_edits_in_front_of_the_end_say_as_much() -> None:
    data = drawn(60)
    options: dict[str, Any] = {"num_bootstrap": 20, "progress": False}
    named = ksd_check(bigrams, data, end=END, **options)
    found = ksd_check(bigrams, data, neighborhood=BeforeEnd(zs()), **options)
    assert found["ksd"]["statistic"].values.tolist() == named["ksd"]["statistic"].values.tolist()
    fewer = ksd_check(bigrams, data, neighborhood=BeforeEnd(Substitutions()), views="content-2", **options)
    assert fewer["ksd"].attrs["edits"] == "substitution"


@pytest.mark.slow
def test_level_by_simulation() -> None:
    """40 data sets of the true model: at most 8 rejections at 0.05 with probability 0.9999."""
    rejected = 0
    for seed in range(40):
        check = ksd_check(bigrams, drawn(100, seed), end=END, order=1, num_bootstrap=99, progress=False)
        rejected += float(check["ksd"]["p_value_overall"]) <= 0.05
    assert rejected <= 8


@pytest.mark.parametrize("moves", [MOVES, OTHER])
def test_without_the_end_the_check_is_refused(moves: Tensor) -> None:
    data = drawn(30, moves=moves)
    message = "all 30 sequences end with 1, which stands nowhere else.*if it marks the end, pass end=1"
    with pytest.raises(ValueError, match=message):
        ksd_check(bigrams, data, num_bootstrap=5, progress=False)
    with pytest.raises(ValueError, match=f"model 'one': {message}"):
        ksd_compare({"one": bigrams, "other": bigrams}, data, progress=False)
    ksd_check(bigrams, data, neighborhood=Substitutions(), views="content-1", num_bootstrap=5, progress=False)


def test_comparisons() -> None:
    models = {"true": bigrams, "wrong": lambda sequences, lengths: bigrams(sequences, lengths, OTHER)}
    found = ksd_compare(models, drawn(150), end=END, progress=False)["ksd_compare"]
    assert found["rank"].sel(view="overall").values.tolist() == [0, 1]
    assert found.attrs["edits"] == "deletion, insertion, substitution"


def generative(sequences: Any = None, lengths: Any = None, num_sequences: int = 0) -> Any:
    weight = pyro.sample("weight", dist.Beta(2.0, 2.0))
    moves = weight * MOVES + (1 - weight) * OTHER
    if lengths is not None:
        bigrams(sequences, lengths, moves)
        return None
    return drawn(num_sequences, int(torch.randint(10**6, ())), moves)


def test_parametric_posterior_and_refitted_checks() -> None:
    data = drawn(20)
    options: dict[str, Any] = {"end": END, "num_bootstrap": 5, "progress": False}
    parametric = ksd_check(generative, data, parameters={"weight": torch.tensor(1.0).double()}, **options)
    assert parametric["ksd"].attrs["kind"] == "parametric"
    wild = ksd_check(bigrams, data, bootstrap="wild", **options)
    statistic = parametric["ksd"]["statistic"]
    # Only null draws of one model show how wrong estimated lengths are. Elsewhere, edits of the last symbol tell them.
    others = [name for name in statistic["view"].values if name != "length"]
    assert statistic.sel(view=others).values == pytest.approx(wild["ksd"]["statistic"].sel(view=others).values)
    draws = {"weight": torch.tensor([1.0, 0.9, 0.8]).double()}
    for order in (None, 1):
        predictive = ksd_check(generative, data, posterior=draws, order=order, **options)
        realized = predictive["ksd_ppc"]["realized"][0, 0]
        assert realized.sel(view=others).values == pytest.approx(statistic.sel(view=others).values)

    def refit(program: Any, sequences: Sequences) -> dict[str, Tensor]:
        return {"weight": torch.tensor(1.0).double()}

    refitted = ksd_check(generative, data, refit=refit, **options)
    assert refitted["ksd"]["statistic"].sel(view=others).values == pytest.approx(statistic.sel(view=others).values)


def test_a_batch_gives_what_its_models_give() -> None:
    chains = [MarkovSequence.from_transitions(simplex(SIZE, seed=s), simplex(SIZE, SIZE, seed=s), 0.3) for s in (1, 2)]
    batch = EndedBatch(ModelList(chains), [END])
    data = Sequences.cat([drawn(4), Sequences.of([[0, 2]], SIZE)])
    which = torch.tensor([0, 1, 1, 0, 1])
    each = [EndedModel(chain, [END]) for chain in chains]
    torch.testing.assert_close(batch.log_joint(data), torch.stack([model.log_joint(data) for model in each]))
    chosen = torch.stack([each[index].log_joint(data)[row] for row, index in enumerate(which.tolist())])
    torch.testing.assert_close(batch.log_joint_each(data, which), chosen)
    edits = zs().edits(data[:4])
    expected = torch.stack([model.log_ratio(data[:4], edits) for model in each])
    torch.testing.assert_close(batch.log_ratio(data[:4], edits), expected)
    torch.testing.assert_close(
        batch.log_ratio_each(data[:4], edits, which[:4]), expected[which[edits.owner], torch.arange(len(edits))]
    )
    assert len(batch) == 2


def test_data_that_do_not_end() -> None:
    with pytest.raises(ValueError, match=r"end: expected 'c' as the last symbol.*2 of 4, first sequence 1, \['c', 'a'"):
        ksd_check(MarkovSequence.from_transitions(simplex(3), simplex(3, 3), 0.3), ["ac", "ca", "abc", "ab"], end="c")


def test_which_sequences_end() -> None:
    data = Sequences.of([[0, 1], [1], [1, 1], [0], [], [0, 1, 0]], 2)
    assert ends_once(data, [1]).tolist() == [True, True, False, False, False, False]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (["ab.", "b.", ".", "a.", "ba."], (0,)),
        (["ab.", "b.", ".", "a."], ()),  # too few
        (["ab.", "b.", ".", "a.", "b"], ()),
        (["ab.", "b.", ".", "a..", "b."], ()),
        (["ab.", "b.", "", "a.", "b."], ()),
        ([".", ".", ".", ".", "."], ()),  # one symbol alone is no end
        (["ab.", "b!", ".", "a.", "ba!"] * 2, (0, 1)),
        (["ab.", "b!", ".", "a.", "ba!"], ()),  # too few for two ends
        (["ab", "bb", "b", "aaab", "b"], ()),
        (["ac", "bd"] * 5, (2, 3)),
    ],
)
def test_common_ends(rows: list[str], expected: tuple[int, ...]) -> None:
    assert common_ends(Sequences.of(rows)) == expected


def test_ends_that_the_user_names() -> None:
    data = Sequences.of(["ab.", "b!"])
    assert end_codes(".", data) == end_codes(["."], data) == (1,)
    assert end_codes([".", "!"], data) == end_codes({"!", "."}, data) == (0, 1)
    pairs = Sequences.of([[("a", 1), ("b", 2)]])
    assert end_codes(("b", 2), pairs) == (1,)
    for wrong in ("?", [], [".", "?"], None, True, [["."]]):
        with pytest.raises(ValueError, match=r"end: expected the symbol with which every sequence ends, or a list of"):
            end_codes(wrong, data)


def test_symbols_and_not_codes_are_named() -> None:
    data = Sequences.of(["ab.", "b."], alphabet="ab.")
    chain = MarkovSequence.from_transitions(simplex(3), simplex(3, 3), 0.3)
    assert as_model(chain, data, end=".").ends == (2,)
    assert as_model(chain, data, end=".").log_joint(data).isfinite().all()
    with pytest.raises(ValueError, match="end: expected the symbol"):
        as_model(chain, data, end=2)


LETTERS = torch.tensor([0.3, 0.25, 0.2, 0.1, 0.08, 0.07], dtype=torch.double)  # the last three are ends


def letters(sequences: Tensor, lengths: Tensor, probs: Tensor = LETTERS) -> None:
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                pyro.sample(f"x_{t}", dist.Categorical(probs), obs=sequences[:, t])


def test_several_end_symbols() -> None:
    generator = torch.Generator().manual_seed(0)
    rows = []
    for _ in range(150):
        row = [int(torch.multinomial(LETTERS, 1, generator=generator))]
        while row[-1] < 3:
            row.append(int(torch.multinomial(LETTERS, 1, generator=generator)))
        rows.append("".join("abcXYZ"[code] for code in row))
    data = Sequences.of(rows, alphabet="abcXYZ")
    options: dict[str, Any] = {"num_bootstrap": 200, "progress": False}
    with pytest.raises(ValueError, match=r"end with one of \['X', 'Y', 'Z'\], which stand.*pass end=\['X'"):
        ksd_check(letters, data, **options)
    check = ksd_check(letters, data, end=["X", "Y", "Z"], **options)
    assert "length" in check["ksd"]["view"].values
    assert float(check["ksd"]["p_value_overall"]) > 0.05
    wrong = LETTERS[[2, 1, 0, 3, 4, 5]]
    found = ksd_check(lambda sequences, lengths: letters(sequences, lengths, wrong), data, end=list("XYZ"), **options)
    assert float(found["ksd"]["p_value_overall"]) < 0.05


def test_a_length_distribution_in_front_of_the_end() -> None:
    data = drawn(50)
    assert has_length_distribution(as_model(bigrams, data, end=END), data)

    def score(sequences: Tensor, lengths: Tensor) -> None:
        """Has no finite sum over all sequences that end."""
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("pairs", (sequences[:, 0] == 0).double())

    assert not has_length_distribution(as_model(score, data, end=END), data)
    with pytest.warns(UserWarning, match="gives no probability to lengths"):
        check = ksd_check(score, data, end=END, num_bootstrap=5, progress=False)
    assert check["ksd"].attrs["edits"] == "substitution"

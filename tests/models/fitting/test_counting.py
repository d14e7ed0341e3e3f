# SPDX-License-Identifier: Apache-2.0
"""The fit of Markov chains against loops, hand counts and an optimizer."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product
from typing import Any

import pytest
import torch
from example_models import walks

from pyro_ksd.models import MarkovSequence
from pyro_ksd.models.fitting.counting import fit_markov, fitted_log_likelihoods
from pyro_ksd.sequences.container import Sequences


def test_fit_by_hand() -> None:
    fitted = fit_markov([[0, 0, 1], [0, 1], [0], []], order=1)
    expected = [[1 / 4, 2 / 4, 1 / 4], [0, 0, 1], [3 / 4, 0, 1 / 4]]  # after 0, after 1, at the start; 2 is the stop
    assert fitted.probs.tolist() == [pytest.approx(row) for row in expected]
    assert float(fitted.log_joint(Sequences.of([[]], 2)).exp()) == pytest.approx(1 / 4)


def test_fit_of_order_2_by_hand() -> None:
    probs = fit_markov(["ab", "aab", "aab"], order=2).probs
    a, b, end = 0, 1, 2
    assert probs[end, end].tolist() == [1, 0, 0]
    assert probs[end, a].tolist() == pytest.approx([2 / 3, 1 / 3, 0])
    assert probs[a, a].tolist() == [0, 1, 0]
    assert probs[a, b].tolist() == [0, 0, 1]
    assert probs[b, a].tolist() == pytest.approx([1 / 3] * 3)  # never seen
    assert probs[a, end].tolist() == [0, 0, 0]  # cannot occur


def test_pseudocounts_make_all_but_the_empty_sequence_possible() -> None:
    fitted = fit_markov(Sequences.of([[0, 0, 1], [0]], 3), order=1, pseudocount=0.5)
    expected = [[1.5 / 5, 1.5 / 5, 0.5 / 5, 1.5 / 5], [0.5 / 3, 0.5 / 3, 0.5 / 3, 1.5 / 3], [0.25] * 4]
    expected += [[2.5 / 3.5, 0.5 / 3.5, 0.5 / 3.5, 0.0]]
    assert fitted.probs.tolist() == [pytest.approx(row) for row in expected]
    with_empty = fit_markov([[0], [0], []], order=1, pseudocount=1).probs
    assert with_empty[1].tolist() == pytest.approx([3 / 4, 1 / 4])


@pytest.mark.parametrize("order", [1, 2])
def test_no_chain_makes_the_data_more_probable(order: int) -> None:
    sequences = walks(20, hold=0.3)
    fitted = float(fit_markov(sequences, order).log_joint(sequences).sum())
    logits = torch.zeros([6] * (order + 1), dtype=torch.double, requires_grad=True)
    optimizer = torch.optim.LBFGS([logits], max_iter=150, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = -MarkovSequence(logits.softmax(-1), order=order).log_prob(sequences.padded(-1)).sum()
        value.backward()
        return value

    optimizer.step(loss)
    found = -float(loss().detach())
    assert fitted - 0.01 < found <= fitted + 1e-9


def counted_log_likelihood(sequences: Sequences, order: int) -> float:
    """By a dictionary of counts."""
    counts: Counter[tuple[Any, ...]] = Counter()
    for x in sequences.to_lists():
        padded = ["^"] * order + x + ["$"]
        counts.update(tuple(padded[i : i + order + 1]) for i in range(len(x) + 1))
    totals: Counter[tuple[Any, ...]] = Counter()
    for window, count in counts.items():
        totals[window[:-1]] += count
    return sum(count * math.log(count / totals[window[:-1]]) for window, count in counts.items())


@pytest.mark.parametrize("order", [1, 2, 3, 40])
def test_log_likelihoods_of_many_fits_at_once(order: int) -> None:
    sequences = Sequences.of([*walks(11).to_lists(), []], 5)
    found = fitted_log_likelihoods(sequences, 4, order)
    assert found.tolist() == pytest.approx([counted_log_likelihood(sequences[i : i + 4], order) for i in (0, 4, 8)])


@pytest.mark.parametrize(("order", "pseudocount"), [(1, 0.0), (2, 0.0), (1, 0.3), (2, 2.0)])
def test_log_likelihoods_are_those_of_the_fitted_chains(order: int, pseudocount: float) -> None:
    sequences = Sequences.of([*walks(11).to_lists(), []], 5)
    found = fitted_log_likelihoods(sequences, 4, order, pseudocount)
    sets = [sequences[i : i + 4] for i in (0, 4, 8)]
    expected = [float(fit_markov(x, order, pseudocount=pseudocount).log_joint(x).sum()) for x in sets]
    assert found.tolist() == pytest.approx(expected)


def test_a_fitted_chain_can_be_sampled_and_is_as_long_as_the_data() -> None:
    fitted = fit_markov(walks(30), order=2)
    drawn = fitted.draw(2000, torch.Generator().manual_seed(0))
    assert float(drawn.lengths.double().mean()) == pytest.approx(float(walks(30).lengths.double().mean()), rel=0.1)
    long = fit_markov(torch.zeros(1, 500, dtype=torch.long), order=1)
    assert long.draw(60, torch.Generator().manual_seed(0)).lengths.max() > 1000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"order": 0}, "order: expected an integer of at least 1, found 0"),
        (
            {"data": Sequences.of([[0, 59]], alphabet=60), "order": 5},
            "order: expected at most 3 for 60 symbols, found 5, for which the table of all contexts would take 412 GB",
        ),
        ({"order": 1, "pseudocount": -1.0}, "pseudocount: expected a number of at least 0, found -1.0"),
        ({"order": 1, "pseudocount": math.nan}, "pseudocount: expected a number of at least 0, found nan"),
        ({"data": "abc", "order": 1}, "expected several sequences, found the single string 'abc'"),
    ],
)
def test_fit_refuses(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit_markov(**({"data": walks()} | arguments))


@pytest.mark.parametrize(("longest", "room"), [(2, 1000), (10, 1000), (11, 1100), (30, 3000)])
def test_samples_of_a_fit_have_room(longest: int, room: int) -> None:
    assert fit_markov([[0, 1], [0] * longest], order=1).max_length == room


def witten_bell(words: list[str], context: str, symbol: str, symbols: str) -> float:
    """The probability of a symbol, or the stop "$", after a context that may begin with the start "^", by recursion."""
    followed = Counter(
        f"^{word}$"[end] for word in words for end in range(1, len(word) + 2) if f"^{word}$"[:end].endswith(context)
    )
    if context:
        shorter = {s: witten_bell(words, context[1:], s, symbols) for s in symbols}
        if context == "^" and "" not in words:
            shorter = {s: 0.0 if s == "$" else p / (1 - shorter["$"]) for s, p in shorter.items()}
    else:
        shorter = {s: 1 / len(symbols) for s in symbols}
    total, distinct = sum(followed.values()), len(followed)
    if not total:
        return shorter[symbol]
    return (followed[symbol] + distinct * shorter[symbol]) / (total + distinct)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("words", [["anna", "ann", "bea"], ["ab", "", "b", "abab"], ["a"], ["", ""]])
def test_backoff_against_a_recursion(words: list[str], order: int) -> None:
    alphabet = "abenx"  # x is in no word
    fitted = fit_markov(Sequences.of(words, alphabet), order, backoff=True)
    symbols = alphabet + "$"
    for codes in product(range(6), repeat=order):
        text = "".join((alphabet + "^")[code] for code in codes)
        context = "^" * text.startswith("^") + text.lstrip("^")
        if "^" in context[1:]:
            continue  # it cannot occur
        expected = [witten_bell(words, context, symbol, symbols) for symbol in symbols]
        assert sum(expected) == pytest.approx(1)
        assert fitted.probs[codes].tolist() == pytest.approx(expected, abs=1e-12)


def test_backoff_makes_all_but_the_empty_sequence_possible() -> None:
    fitted = fit_markov(["ab", "b"], order=3, backoff=True)
    space = [list(word) for length in range(5) for word in product(range(2), repeat=length)]
    values = fitted.log_joint(Sequences.of(space, 2))
    assert values[0] == -math.inf
    assert values[1:].isfinite().all()
    assert fit_markov(["ab", ""], order=3, backoff=True).log_joint(Sequences.of([[]], 2)).isfinite().all()


def test_backoff_and_pseudocounts_exclude_each_other() -> None:
    with pytest.raises(ValueError, match=r"^pseudocount: expected 0 with backoff=True, found 0\.5; choose one of them"):
        fit_markov(["ab"], 1, pseudocount=0.5, backoff=True)
    with pytest.raises(ValueError, match=r"^backoff: expected True or False, found 'yes'"):
        fit_markov(["ab"], 1, backoff="yes")  # type: ignore[arg-type]


def test_contexts_that_were_rarely_seen_are_warned_of() -> None:
    words = ["".join(word) for word in product("abcde", repeat=3)]
    fit_markov(words, 1)
    fit_markov(words, 3, backoff=True)
    with pytest.warns(
        UserWarning, match="^125 of the 156 contexts of 3 symbols .* fewer than 5 times, .* backoff=True"
    ) as seen:
        fit_markov(words, 3, pseudocount=0.1)
    assert seen[0].filename == __file__
    fit_markov(words * 5, 3)

# SPDX-License-Identifier: Apache-2.0
"""Autoregressive models against plain loops over one prefix at a time, on enumerated supports."""

from __future__ import annotations

import math
from functools import cache
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from scipy.stats import chisquare
from torch import Tensor

from pyro_ksd import AutoregressiveModel, ksd_check
from pyro_ksd.edits.neighborhoods import BeforeEnd, Substitutions, zs
from pyro_ksd.edits.prefix_neighborhoods import PrefixSubstitutions, prefix_zs
from pyro_ksd.edits.symmetry import check_symmetric
from pyro_ksd.kernels import ContiguousKernel, HammingKernel, LengthKernel, StartKernel
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.models import TopK, constrain
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.operators import TailBlockOperator, ZanellaOperator
from pyro_ksd.stein.views import View, default_views

SIZE, LONGEST, END, PROMPT = 4, 4, 2, [4, 1]
LISTS = [x for length in range(LONGEST + 2) for x in product(range(SIZE), repeat=length)]
SPACE = Sequences.of(LISTS, SIZE)


class Scrambled:
    """A causal network without any order: random logits for every sequence of codes up to the present one."""

    def __init__(self, seed: int = 48) -> None:  # an end is neither rare nor frequent
        generator = torch.Generator().manual_seed(seed)
        self.table = 1.5 * torch.randn(10_007, SIZE, dtype=torch.double, generator=generator)

    def __call__(self, codes: Tensor) -> Tensor:
        states = [torch.zeros(len(codes), dtype=torch.long)]
        for code in codes.unbind(1):
            states.append((states[-1] * 101 + code + 1) % len(self.table))
        return self.table[torch.stack(states[1:], 1)]


def rules(top_k: int | None) -> list[TopK]:
    return [] if top_k is None else [TopK(top_k)]


def model(top_k: int | None = 3, network: Any = None, **options: Any) -> AutoregressiveModel:
    arguments = {"prompt": PROMPT, "end": END, "max_length": LONGEST, "rules": rules(top_k)} | options
    return AutoregressiveModel(Scrambled() if network is None else network, **arguments)


def log_p(network: Any, x: tuple[int, ...], top_k: int | None, prompt: list[int], longest: int = LONGEST) -> float:
    """``log p(x)`` by the definition: one prefix after the other, each by itself."""
    if len(x) > longest or x[-1:] != (END,) or END in x[:-1]:
        return -math.inf
    total = 0.0
    for t in range(len(x)):
        with torch.no_grad():
            logits = network(torch.tensor([[*prompt, *x[:t]]]))[0, -1].double()
        kept = sorted(range(len(logits)), key=lambda s: -float(logits[s]))[:top_k]
        if x[t] not in kept:
            return -math.inf
        total += float(logits[x[t]] - logits[kept].logsumexp(0))
    return total


@cache
def truth(top_k: int | None = 3) -> Tensor:
    """The log-joints of all sequences, ``[N]``."""
    network = Scrambled()
    return torch.tensor([log_p(network, x, top_k, PROMPT) for x in LISTS], dtype=torch.double)


@pytest.mark.parametrize("top_k", [None, 2, 3])
def test_log_joint_against_a_loop(top_k: int | None) -> None:
    found, expected = model(top_k).log_joint(SPACE), truth(top_k)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    assert 0 < int(expected.isfinite().sum()) < len(LISTS)
    assert found.exp().sum() <= 1 + 1e-12  # what is missing never came to an end


def test_a_shorter_limit_only_takes_away() -> None:
    found = model(max_length=2).log_joint(SPACE)
    assert torch.equal(found[SPACE.lengths <= 2], model().log_joint(SPACE)[SPACE.lengths <= 2])
    assert (found[SPACE.lengths > 2] == -torch.inf).all()


def test_log_probabilities_do_for_logits() -> None:
    network = Scrambled()
    found = model(network=lambda codes: network(codes).log_softmax(-1)).log_joint(SPACE)
    torch.testing.assert_close(found, truth(), rtol=1e-12, atol=1e-12)


def test_logits_may_forbid() -> None:
    network = Scrambled()

    def without_zero(codes: Tensor) -> Tensor:
        return network(codes).index_fill(-1, torch.tensor([0]), -torch.inf)

    lm = model(None, without_zero)
    found = lm.log_joint(SPACE)
    assert (found[(SPACE.tokens.eq(0) & SPACE.mask).any(1)] == -torch.inf).all()
    assert found.isfinite().sum() == sum(2**length for length in range(LONGEST))
    assert not lm.candidates(SPACE, SIZE).eq(0).any()


@pytest.mark.parametrize("name", ["zs", "suited", "substitutions"])
def test_log_ratio_is_the_difference_of_log_joints(name: str) -> None:
    lm = model()
    p = truth()
    data = SPACE[p > -torch.inf]
    around = {"zs": zs(), "suited": lm.default_neighborhood, "substitutions": Substitutions(2)}[name]
    edits = around.edits(data)
    index = {x: row for row, x in enumerate(LISTS)}
    after = torch.tensor([p[index[tuple(y)]] for y in edits.apply(data).to_lists()])  # type: ignore[index]
    found = lm.log_ratio(data, edits)
    torch.testing.assert_close(found, after - p[p > -torch.inf][edits.owner], rtol=1e-11, atol=1e-11)
    assert found.isfinite().any()
    if name != "suited":
        assert (found == -torch.inf).any()


def test_no_edit_and_no_sequence() -> None:
    lm = model()
    data = Sequences.of([[END], [END]], SIZE)
    assert lm.log_ratio(data, BeforeEnd(Substitutions()).edits(data)).shape == (0,)
    assert lm.log_joint(data[:0]).shape == (0,)
    assert lm.candidates(data[:0], 2).shape == (0, 2, 2)


# --------------------------------------------------------------------------------------- edits that suit it


@pytest.mark.parametrize("top", [2, 3, 4])
def test_candidates_are_the_most_probable_symbols_after_each_prefix(top: int) -> None:
    lm, network = model(), Scrambled()
    short = [x for x in LISTS if len(x) < 4]
    codes = lm.candidates(Sequences.of(short, SIZE), top)
    assert codes.shape == (len(short), 4, min(top, 3))
    for row, x in enumerate(short):
        for t in range(len(x) + 1):
            with torch.no_grad():
                logits = network(torch.tensor([[*PROMPT, *x[:t]]]))[0, -1]
            expected = [s for s in logits.topk(min(top, 3)).indices.tolist() if s != END]
            assert [code for code in codes[row, t].tolist() if code >= 0] == expected


def neighborhoods(lm: AutoregressiveModel) -> dict[str, Any]:
    return {
        "suited": lm.default_neighborhood,
        "the paper's ZS": BeforeEnd(prefix_zs(lm.candidates, 3, locations=1)),
        "the paper's ZS′": BeforeEnd(PrefixSubstitutions(lm.candidates, 3, locations=1)),
        "two locations": BeforeEnd(prefix_zs(lm.candidates, 3, locations=2)),
        "fewer candidates": BeforeEnd(prefix_zs(lm.candidates, 2)),
    }


@pytest.mark.parametrize("top_k", [None, 2, 3])
@pytest.mark.parametrize("name", neighborhoods(model()))
def test_edits_are_symmetric(name: str, top_k: int | None) -> None:
    lm = model(top_k)
    check_symmetric(neighborhoods(lm)[name], SPACE[truth(top_k) > -torch.inf])


def test_edits_of_all_symbols_reach_no_more_of_the_support_at_one_location() -> None:
    """What the candidates leave out is impossible, so both operators are the same."""
    lm, p = model(), truth()
    data = SPACE[p > -torch.inf]
    views = [
        View(name, ZanellaOperator(around), ContiguousKernel(1))
        for name, around in (("all", BeforeEnd(zs(1))), ("few", BeforeEnd(prefix_zs(lm.candidates, 3, 1))))
    ]
    every, few = stein_matrices(lm, data, views)
    torch.testing.assert_close(few.dense(), every.dense(), rtol=1e-11, atol=1e-13)
    assert len(views[1].operator.neighborhood.edits(data)) < len(views[0].operator.neighborhood.edits(data))


@pytest.mark.parametrize("balancing", ["barker", "mpf"])
@pytest.mark.parametrize("top_k", [None, 3])
@pytest.mark.parametrize("name", [*neighborhoods(model()), "zs", "tail", "tail of all"])
def test_stein_identity(name: str, top_k: int | None, balancing: str) -> None:
    lm, p = model(top_k), truth(top_k).softmax(0)
    data, p = SPACE[p > 0], p[p > 0]
    operators: Any = {key: ZanellaOperator(around, balancing) for key, around in neighborhoods(lm).items()}
    operators["zs"] = ZanellaOperator(zs(), balancing)
    operators["tail"] = TailBlockOperator(balancing, lm.default_neighborhood.tail)
    operators["tail of all"] = TailBlockOperator(balancing, BeforeEnd(zs()).tail)
    kernels = [ContiguousKernel(1), ContiguousKernel(2), StartKernel(), LengthKernel()]
    views = [View(str(index), operators[name], kernel) for index, kernel in enumerate(kernels)]
    assert largest_mean(lm, data, views, p) < 1e-12
    other = model(top_k, Scrambled(seed=1))
    possible = other.log_joint(data) > -torch.inf
    assert largest_mean(other, data[possible], views, p[possible]) > 1e-3
    [gram] = stein_matrices(lm, data, [View("", operators[name], HammingKernel())])
    assert (gram.dense() @ p).abs().max() < 1e-12


def features(lm: Any, data: Sequences, views: list[View]) -> list[FeatureMatrix]:
    return [matrix for matrix in stein_matrices(lm, data, views) if isinstance(matrix, FeatureMatrix)]


def largest_mean(lm: Any, data: Sequences, views: list[View], p: Tensor) -> float:
    """The largest absolute value of a mean feature under ``p``."""
    found = features(lm, data, views)
    assert len(found) == len(views)
    return max(value for matrix in found for value in matrix.weighted_sum(p[None])[0].abs().tolist())


def test_the_tail_of_the_candidates_is_that_of_all_symbols() -> None:
    lm = model()
    data = SPACE[truth() > -torch.inf]
    views = [
        View(str(index), TailBlockOperator("barker", around.tail), LengthKernel())
        for index, around in enumerate([lm.default_neighborhood, BeforeEnd(zs())])
    ]
    one, other = features(lm, data, views)
    torch.testing.assert_close(one.values, other.values, rtol=1e-11, atol=1e-13)
    assert one.values.abs().max() > 0.1


# ---------------------------------------------------------------------------------------------------- draws


@pytest.mark.parametrize("top_k", [None, 2, 3])
def test_draws_follow_the_conditional_law(top_k: int | None) -> None:
    lm, p = model(top_k), truth(top_k).softmax(0)
    assert lm.can_draw
    assert truth(top_k).exp().sum() < 0.95  # so that something is rejected
    drawn = lm.draw(5_000, torch.Generator().manual_seed(1))
    assert drawn.alphabet == SIZE
    index = {x: row for row, x in enumerate(LISTS)}
    rows = torch.tensor([index[tuple(x)] for x in drawn.to_lists()])  # type: ignore[index]
    counts = rows.bincount(minlength=len(LISTS))
    assert counts[p == 0].sum() == 0
    likely = 5_000 * p >= 5
    rest = (~likely) & (p > 0)
    found, expected = counts[likely].tolist(), (5_000 * p[likely]).tolist()
    if rest.any():
        found, expected = [*found, int(counts[rest].sum())], [*expected, float(5_000 * p[rest].sum())]
    assert len(found) > 3
    assert chisquare(found, expected).pvalue > 1e-3


def test_seeds() -> None:
    lm = model()
    state = torch.get_rng_state()
    one, two, other = (lm.draw(30, torch.Generator().manual_seed(seed)).to_lists() for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), state)
    assert one == two != other
    with torch.random.fork_rng():
        torch.manual_seed(0)
        first, second = lm.draw(30).to_lists(), lm.draw(30).to_lists()
        torch.manual_seed(0)
        assert first == lm.draw(30).to_lists() != second


def test_what_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(codes: Tensor) -> Tensor:
        return torch.zeros(*codes.shape, SIZE).index_fill(-1, torch.tensor([END]), -torch.inf)

    monkeypatch.setattr("pyro_ksd.models.networks.autoregressive.MAX_PROPOSALS", 500)
    with pytest.raises(
        ValueError, match="found that 0 of 500 proposals of the model were; raise max_length, or choose"
    ):
        model(None, endless).draw(3)


# ---------------------------------------------------------------------------------------- calls of the network


class Recorded:
    """A network that remembers what it was asked."""

    def __init__(self) -> None:
        self.network, self.calls = Scrambled(), list[Tensor]()

    def __call__(self, codes: Tensor) -> Tensor:
        assert not torch.is_grad_enabled()
        self.calls.append(codes)
        return self.network(codes)


def test_calls_are_bounded_and_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = Recorded()
    lm = model(network=recorded)
    data = SPACE[truth() > -torch.inf]
    edits = lm.default_neighborhood.edits(data)

    def everything() -> list[Tensor]:
        drawn = lm.draw(100, torch.Generator().manual_seed(0))
        return [lm.log_joint(SPACE), lm.log_ratio(data, edits), lm.candidates(SPACE, 3), drawn.tokens, drawn.lengths]

    whole = everything()
    monkeypatch.setattr("pyro_ksd.models.networks.autoregressive.LOGITS", 100)
    recorded.calls.clear()
    for one, other in zip(whole, everything(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
    assert max(codes.numel() * SIZE for codes in recorded.calls) <= 100
    assert len(recorded.calls) > 50


def test_nothing_is_evaluated_twice_or_in_vain() -> None:
    recorded = Recorded()
    lm = model(network=recorded)
    data = Sequences.of([[0, END], [0, END], [1, END], [3, 3]], SIZE)
    recorded.calls.clear()
    lm.log_joint(data)
    assert [codes.tolist() for codes in recorded.calls] == [[[*PROMPT, 0], [*PROMPT, 0], [*PROMPT, 1]]]
    recorded.calls.clear()
    lm.log_ratio(data[:2], BeforeEnd(zs(1)).edits(data[:2]))
    asked = [tuple(row) for codes in recorded.calls for row in codes.tolist()]
    assert len(asked) == len(set(asked)) == 1 + 2 + 3 + 1  # [0, END], two others, three longer ones, and [END]
    recorded.calls.clear()
    lm.draw(1_000, torch.Generator().manual_seed(0))
    first, *_ = recorded.calls
    assert first.tolist() == [PROMPT]
    for codes in recorded.calls:
        assert len(codes.unique(dim=0)) == len(codes)


def test_rounding_does_not_make_drawn_sequences_impossible() -> None:
    """The second and the third symbol are as good as equal; which is larger depends on the size of the batch."""

    def unstable(codes: Tensor) -> Tensor:
        logits = torch.tensor([2.0, 1.0, 3.0, 0.0]).repeat(*codes.shape, 1)
        logits[..., 3] = 1.0 + (1e-7 if len(codes) % 2 else -1e-7)
        return logits

    lm = model(3, unstable)
    drawn = lm.draw(500, torch.Generator().manual_seed(0))
    assert lm.log_joint(drawn[:499]).isfinite().all()
    assert lm.log_joint(drawn[:498]).isfinite().all()
    clear = model(3, lambda codes: torch.tensor([2.0, 1.0, 3.0, 0.999]).repeat(*codes.shape, 1))
    third = (drawn.tokens == 3).any(1)
    assert (clear.log_joint(drawn) == -torch.inf).equal(third)
    assert 0 < int(third.sum()) < 500


# ------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prompt": []}, r"prompt: expected codes .* at least one, .* found torch.float32 \[0\]; give a start symbol"),
        ({"prompt": [[1, 2]]}, r"found torch.int64 \[1, 2\]"),
        ({"prompt": [0.5]}, r"found torch.float32 \[1\]"),
        ({"prompt": "ab"}, r"prompt: expected codes .* found the symbols 'ab'; give their codes, data.enc"),
        ({"end": 4}, "end: expected at most 3, as the network knows 4 symbols, found 4"),
        ({"end": -1}, "end: expected an integer of at least 0, found -1"),
        ({"max_length": 0}, "max_length: expected an integer of at least 1, found 0"),
        ({"rules": [TopK(5)]}, "rules: TopK: expected at most 4, as the network knows 4 symbols, found 5"),
        ({"rules": [3]}, r"rules: expected sampling rules in a list, such as .*TopK\(50\)\], found 3"),
        ({"rules": 3}, "rules: expected sampling rules in a list, .* found 3"),
        ({"network": lambda codes: codes}, r"network: expected .* logits \[1, 2, S\] .* found torch.int64 \[1, 2\]"),
        ({"network": lambda codes: torch.zeros(1, 4)}, r"found torch.float32 \[1, 4\]; give the logits"),
        ({"network": lambda codes: Scrambled()(codes)[:, -1:]}, r"found torch.float64 \[1, 1, 4\]"),
        ({"network": lambda codes: None}, "found None; give the logits"),
    ],
)
def test_refuses(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model(**options)


def test_a_network_that_looks_ahead_or_changes_its_mind_is_refused() -> None:
    message = r"network: expected logits that depend on nothing but .* \(network.eval\(\)\)"
    network = Scrambled()
    with pytest.raises(ValueError, match=message):
        model(network=lambda codes: network(codes.flip(1)).flip(1))
    forgetful = torch.nn.Sequential(torch.nn.Embedding(SIZE + 1, SIZE), torch.nn.Dropout(0.5))
    with pytest.raises(ValueError, match=r"^module Dropout: found training mode.*call \.eval\(\)"):
        model(network=forgetful)
    model(network=forgetful.eval())


@pytest.mark.parametrize(("change", "refused"), [(2e-6, False), (8e-6, True)])
def test_logits_may_change_by_rounding_alone(change: float, refused: bool) -> None:
    def network(codes: Tensor) -> Tensor:
        logits = torch.tensor([1.0, -1.0, 1.0, -1.0]).double()
        return (logits + change * (codes.shape[1] > len(PROMPT))).expand(*codes.shape, -1)

    if refused:
        with pytest.raises(ValueError, match="network: expected logits that depend on nothing but the codes"):
            model(network=network)
    else:
        model(network=network)


class Diverged:
    """A network whose logits are NaN once the codes contain a 3 after the prompt."""

    def __init__(self, wrong: float = math.nan) -> None:
        self.network, self.wrong = Scrambled(), wrong

    def __call__(self, codes: Tensor) -> Tensor:
        seen = (codes == 3).cumsum(1) > 0
        return self.network(codes).masked_fill(seen[..., None], self.wrong)


@pytest.mark.parametrize("top_k", [None, 3])
@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_a_network_that_gives_nan_is_refused(top_k: int | None, wrong: float) -> None:
    lm = model(top_k, Diverged(wrong))
    data = Sequences.of([[0, 2], [0, 3, 0, 2]], SIZE)
    assert lm.log_joint(data[:1]).isfinite().all()
    message = (
        r"network: expected logits that are numbers, .* found NaN or infinity after the codes \[4, 1, 0, 3\]; look"
    )
    with pytest.raises(ValueError, match=message):
        lm.log_joint(data)
    with pytest.raises(ValueError, match="network: expected logits that are numbers"):
        lm.draw(100, torch.Generator().manual_seed(0))
    with pytest.raises(ValueError, match="network: expected logits that are numbers"):
        lm.log_ratio(data[:1], zs().edits(data[:1]))
    if wrong != -math.inf:  # no symbol is a candidate then
        with pytest.raises(ValueError, match=message):
            lm.candidates(data, 3)


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
@pytest.mark.parametrize("top", [1, 3])
def test_candidates_with_one_wrong_logit_are_refused(wrong: float, top: int) -> None:
    def network(codes: Tensor) -> Tensor:
        seen = (codes == 3).cumsum(1) > 0
        logits = Scrambled()(codes)
        logits[..., 1] = logits[..., 1].masked_fill(seen, wrong)
        return logits

    lm = model(None, network)
    lm.candidates(Sequences.of([[0, 2]], SIZE), top)
    with pytest.raises(ValueError, match=r"found NaN or infinity after the codes \[4, 1, 0, 3\]"):
        lm.candidates(Sequences.of([[0, 2], [0, 3, 0, 2]], SIZE), top)


@pytest.mark.parametrize("logits", [[math.nan] * SIZE, [0.0, math.nan, 1.0, 2.0]])
def test_a_network_that_gives_nan_after_the_prompt_is_refused_at_once(logits: list[float]) -> None:
    with pytest.raises(ValueError, match=r"network: .* found NaN or infinity after the codes \[4, 1\]"):
        model(network=lambda codes: torch.tensor(logits).expand(*codes.shape, -1))


def test_a_network_with_too_few_positions_names_the_lengths() -> None:
    network = Scrambled()
    positions = torch.nn.Embedding(4, 1)  # of a prompt of 2 codes and 2 symbols

    def limited(codes: Tensor) -> Tensor:
        return network(codes) + 0 * positions(torch.arange(codes.shape[1]))

    lm = model(None, limited)
    assert lm.log_joint(Sequences.of([[0, 0, 2]], SIZE)).isfinite().all()
    message = (
        r"network: expected one that takes the prompt of 2 codes and up to max_length=4 symbols after it, found that "
        r"it fails for codes of shape \[1, 5\]: IndexError: .*; if they are .* lower max_length or shorten the prompt"
    )
    with pytest.raises(ValueError, match=message) as caught:
        lm.log_joint(Sequences.of([[0, 0, 0, 2]], SIZE))
    assert isinstance(caught.value.__cause__, IndexError)
    with pytest.raises(ValueError, match=r"up to max_length=4 symbols after it, found that it fails"):
        lm.draw(100, torch.Generator().manual_seed(0))
    with pytest.raises(ValueError, match=r"network: .* fails for codes of shape \[1, 5\]"):
        model(network=limited, prompt=[4, 1, 1, 1, 1])


def test_other_alphabets_and_numbers() -> None:
    with pytest.raises(ValueError, match=r"the model's 4 symbols, found an alphabet of 5"):
        model().log_joint(Sequences.of([[0]], 5))
    with pytest.raises(ValueError, match="num_sequences: expected an integer of at least 1, found 0"):
        model().draw(0)


# -------------------------------------------------------------------------------------------------- checks


def test_a_check_uses_the_edits_that_suit_the_model() -> None:
    lm = model()
    data = lm.draw(40, torch.Generator().manual_seed(5))
    options: dict[str, Any] = {"num_bootstrap": 50, "progress": False, "bootstrap": "wild"}
    check = ksd_check(lm, data, **options)
    same = ksd_check(lm, data, neighborhood=BeforeEnd(prefix_zs(lm.candidates, 3)), **options)
    every = ksd_check(lm, data, neighborhood=BeforeEnd(zs()), **options)
    assert check["ksd"]["view"].values.tolist() == [view.name for view in default_views()]
    assert check["ksd"]["statistic"].equals(same["ksd"]["statistic"])
    assert every["ksd"]["statistic"].values == pytest.approx(check["ksd"]["statistic"].values, rel=1e-10)
    inner = constrain(lm, lambda x: x.lengths >= 2)
    assert inner.default_neighborhood is not None
    long = data[data.lengths >= 2]
    assert float(ksd_check(inner, long, **options)["ksd"]["p_value_overall"]) > 0.05


@pytest.mark.parametrize("bootstrap", ["wild", "parametric"])
def test_a_check_finds_another_network_and_not_its_own(bootstrap: Any) -> None:
    lm, other = model(None), model(None, Scrambled(seed=1))
    options: dict[str, Any] = {"num_bootstrap": 99, "localize": False, "progress": False, "bootstrap": bootstrap}
    own, wrong = (one.draw(120, torch.Generator().manual_seed(3)) for one in (lm, other))
    assert float(ksd_check(lm, own, **options)["ksd"]["p_value_overall"]) > 0.05
    assert float(ksd_check(lm, wrong, **options)["ksd"]["p_value_overall"]) <= 0.02


def test_a_check_sees_the_length_of_sequences_with_a_fixed_end() -> None:
    """The only fault are ends that come too late: what the view of the length is for."""

    def coins(stop: float) -> AutoregressiveModel:
        law = torch.tensor([(1 - stop) / 3, (1 - stop) / 3, stop, (1 - stop) / 3], dtype=torch.double).log()
        return model(None, lambda codes: law.expand(*codes.shape, SIZE), max_length=30)

    data = coins(0.2).draw(60, torch.Generator().manual_seed(0))
    check = ksd_check(coins(0.4), data, views=["length"], bootstrap="wild", num_bootstrap=99, progress=False)
    assert float(check["ksd"]["p_value_overall"]) <= 0.02


def test_data_without_an_end_are_refused() -> None:
    data = Sequences.of([[0, END], [0, 1], [END, 0, END], []], SIZE)
    message = (
        r"end symbol 2 as their last symbol, and nowhere else, found others in 3 of 4, first sequence 1, \[0, 1\]; add"
    )
    with pytest.raises(ValueError, match=message):
        ksd_check(model(), data, progress=False)
    assert model().has_ended(data).tolist() == [True, False, False, False]


def test_prompts_of_the_data_are_for_a_model_that_has_none_for_all() -> None:
    plain = Sequences.of([[0, END], [END]], SIZE)
    prompted = plain.with_covariates({"prompt": [[4, 1], [1]]})
    model().check_data(plain)
    model().check_data(plain.with_covariates({"dose": torch.tensor([1.0, 2.0])}))
    model(prompt=None).check_data(prompted)
    message = r"^prompt: found prompts among the covariates, but the model has one for all, \[4, 1\], and would"
    with pytest.raises(ValueError, match=message):
        model().check_data(prompted)


def test_draws_after_prompts() -> None:
    covariates = Sequences.of([[END]] * 3, SIZE).with_covariates({"prompt": [[4, 1], [1], [0, 0, 3]]}).covariates
    assert covariates is not None
    each, one = model(prompt=None), model()
    assert each.takes_covariates
    assert not one.takes_covariates
    for lm in (each, one):
        drawn = [lm.draw_given(covariates, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)]
        assert drawn[0].covariates is not None
        assert drawn[0].to_lists() == drawn[1].to_lists() != drawn[2].to_lists()
        assert lm.has_ended(drawn[0]).all()
    assert (
        one.draw_given(covariates, torch.Generator().manual_seed(0)).to_lists()
        == one.draw(3, torch.Generator().manual_seed(0)).to_lists()
    )
    assert each.log_joint(each.draw_given(covariates)).isfinite().all()


def test_data_that_the_filter_makes_impossible_are_reported() -> None:
    lm = model()
    wild = model(None).draw(60, torch.Generator().manual_seed(0))
    outside = int((lm.log_joint(wild) == -torch.inf).sum())
    assert 0 < outside < 50
    with pytest.warns(UserWarning, match=f"gives probability zero to {outside} of 60 sequences"):
        check = ksd_check(lm, wild, bootstrap="wild", num_bootstrap=20, progress=False)
    assert check["ksd_impossible"].sizes["sequence"] == outside


# ------------------------------------------------------------------------------------- Hugging Face models


@pytest.fixture(scope="module")
def gpt2() -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    with torch.random.fork_rng():
        torch.manual_seed(4)
        options = {"n_positions": 16, "n_embd": 16, "n_layer": 2, "n_head": 2, "initializer_range": 0.3}
        return GPT2LMHeadModel(GPT2Config(vocab_size=SIZE, bos_token_id=0, eos_token_id=0, **options)).eval()


def of_gpt2(lm: Any, **options: Any) -> AutoregressiveModel:
    arguments: dict[str, Any] = {"prompt": [1, 3, 0], "end": END, "max_new_tokens": 4, "rules": rules(3)} | options
    return AutoregressiveModel.from_causal_lm(lm, **arguments)


@pytest.mark.parametrize("top_k", [None, 3])
def test_gpt2_against_its_own_logits(gpt2: Any, top_k: int | None) -> None:
    """One prefix at a time, so that nothing is padded."""
    expected = [log_p(lambda codes: gpt2(codes).logits, x, top_k, [1, 3, 0]) for x in LISTS]
    found = of_gpt2(gpt2, rules=rules(top_k)).log_joint(SPACE)
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.double), rtol=1e-4, atol=1e-4)
    assert found.isfinite().sum() > 5


def test_gpt2_draws_and_checks(gpt2: Any) -> None:
    lm = of_gpt2(gpt2)
    data = lm.draw(50, torch.Generator().manual_seed(0))
    assert lm.log_joint(data).isfinite().all()
    assert len(data.lengths.unique()) > 1
    check_symmetric(BeforeEnd(prefix_zs(lm.candidates, 3, locations=1)), data)
    options: dict[str, Any] = {"bootstrap": "wild", "num_bootstrap": 199, "progress": False}
    check = ksd_check(lm, data, neighborhood=BeforeEnd(prefix_zs(lm.candidates, 3, locations=1)), **options)
    assert float(check["ksd"]["p_value_overall"]) > 0.05
    other = of_gpt2(gpt2, prompt=[2, 2, 2]).draw(100, torch.Generator().manual_seed(1))
    possible = other[lm.log_joint(other) > -torch.inf]
    assert float(ksd_check(lm, possible, **options)["ksd"]["p_value_overall"]) <= 0.05


def test_gpt2_in_training_mode_is_refused(gpt2: Any) -> None:
    gpt2.train()
    try:
        with pytest.raises(ValueError, match=r"^module Dropout: found training mode.*call \.eval\(\)"):
            of_gpt2(gpt2)
    finally:
        gpt2.eval()


def test_one_new_token_is_enough_for_a_language_model(gpt2: Any) -> None:
    assert of_gpt2(gpt2, max_new_tokens=1).log_joint(Sequences.of([[END], [0, END]], SIZE)).isfinite().tolist() == [
        True,
        False,
    ]
    with pytest.raises(ValueError, match="max_new_tokens: expected an integer of at least 1, found 0"):
        of_gpt2(gpt2, max_new_tokens=0)


def test_language_models_see_all_codes() -> None:
    """Some would take a code for padding, and not look at it."""
    masks: list[Tensor] = []

    class Recorder(torch.nn.Module):
        device = torch.device("cpu")

        def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, use_cache: bool = True) -> Any:
            assert attention_mask is not None
            assert not use_cache
            masks.append(attention_mask)
            return SimpleNamespace(logits=torch.zeros(*input_ids.shape, SIZE))

    of_gpt2(Recorder().eval()).log_joint(Sequences.of([[0, END], [END]], SIZE))
    assert masks
    assert all(bool(mask.all()) for mask in masks)


def test_edits_for_a_language_model_are_checked(gpt2: Any) -> None:
    lm = of_gpt2(gpt2)
    data = Sequences.of([[0, END], [END]], SIZE)
    edits = BeforeEnd(Substitutions()).edits(data)
    assert lm.log_ratio(data, edits).shape == (3,)
    with pytest.raises(ValueError, match="the model's 4 symbols, found an alphabet of 5"):
        lm.log_ratio(Sequences.of([[0, END], [END]], SIZE + 1), edits)
    with pytest.raises(ValueError, match="edits: expected"):
        lm.log_ratio(data[:1], edits)
    with pytest.raises(ValueError, match="edits: expected"):
        lm.log_ratio(data, [edits])  # type: ignore[arg-type]


def test_a_model_with_a_prompt_for_each_sequence_draws_for_prompts_alone() -> None:
    with pytest.raises(ValueError, match="draw: expected prompts to draw for, as the model has none for all; call dr"):
        model(prompt=None).draw(3)


def test_a_failing_network_is_named_with_the_prompts_of_the_data() -> None:
    def limited(codes: Tensor) -> Tensor:
        if codes.shape[1] > 3:
            raise IndexError("too long")
        return Scrambled()(codes)

    data = Sequences.of([[0, 0, 0, END]], SIZE).with_covariates({"prompt": [[4, 1]]})
    with pytest.raises(ValueError, match=r"network: expected one that takes prompts and up to max_length=4 symbols"):
        model(None, limited, prompt=None).log_joint(data)


def test_errors_show_the_last_ten_codes() -> None:
    network = Diverged()
    lm = model(None, network, max_length=20)
    with pytest.raises(ValueError, match=r"after the codes \[0, 0, 0, 0, 0, 0, 0, 0, 0, 3\]; look"):
        lm.log_joint(Sequences.of([[*[0] * 12, 3, END]], SIZE))


def test_generators_are_checked() -> None:
    covariates = Sequences.of([[END]] * 2, SIZE).with_covariates({"prompt": [[4, 1], [1]]}).covariates
    for lm in (model(), model(prompt=None)):
        with pytest.raises(ValueError, match="generator: expected"):
            lm.draw_given(covariates, 5)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="covariates: expected"):
            lm.draw_given([[4, 1]])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="generator: expected"):
        model().draw(2, 5)  # type: ignore[arg-type]

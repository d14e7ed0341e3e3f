# SPDX-License-Identifier: Apache-2.0
"""What the experiment with a language model is made of."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from scipy.stats import binom
from torch import Tensor

from benchmarks.paper.language_model import mixture, stein_matrices_of_sets, with_what_is_there
from benchmarks.paper.question_network import START, LanguageModel, WordNetwork, sentences, trained
from pyro_ksd.edits.neighborhoods import BeforeEnd
from pyro_ksd.edits.prefix_neighborhoods import PrefixSubstitutions, prefix_zs
from pyro_ksd.kernels import ContiguousKernel
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.models import AutoregressiveModel
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.operators import ZanellaOperator
from pyro_ksd.stein.views import View

WORDS = (START, "a", "b", "c", "d", "?")
TOP_K, LONGEST, FLOOR = 3, 3, 1e-6
SPACE = Sequences.of([x for t in range(1, LONGEST + 1) for x in product(range(6), repeat=t)], 6)


@pytest.fixture(scope="module")
def lm() -> LanguageModel:
    """A network over a few words, as it is before training, but less indifferent."""
    with torch.random.fork_rng():
        torch.manual_seed(2)
        network = WordNetwork(len(WORDS)).double().eval()
    with torch.no_grad():
        network.head.weight.mul_(20)
    return LanguageModel(network, WORDS)


def test_sentences_end_with_their_mark_and_share_their_words() -> None:
    found = sentences()
    assert all(sentence[-1] in ".!?" and not set(sentence[:-1]) & set(".!?") for sentence in found)
    assert sum(sentence[-1] == "?" for sentence in found) > 300
    assert ("are", "you", "sentient", "?") in found


def test_training_is_reproducible_and_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    few = sentences()[:300]
    monkeypatch.setattr("benchmarks.paper.question_network.sentences", lambda: few)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    one, two, other = (trained.__wrapped__(seed, 1) for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    assert one.words == two.words
    for a, b in zip(one.network.parameters(), two.network.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(one.network.head.weight, other.network.head.weight)
    assert not one.network.training


def test_a_floor_changes_what_is_impossible_and_nothing_else(lm: LanguageModel) -> None:
    filtered, positive = (lm.questions("a b", LONGEST, TOP_K, floor) for floor in (0.0, FLOOR))
    before, after = filtered.log_joint(SPACE), positive.log_joint(SPACE)
    possible = before > -torch.inf
    assert 2 < int(possible.sum()) < int(filtered.has_ended(SPACE).sum())
    assert torch.equal(after > -torch.inf, filtered.has_ended(SPACE))
    torch.testing.assert_close(after[possible], before[possible], rtol=0, atol=1e-4)
    assert after[~possible].exp().sum() < LONGEST * FLOOR


def test_the_last_word_is_replaced_whether_it_is_a_candidate_or_not(lm: LanguageModel) -> None:
    model = lm.questions("a b", LONGEST, TOP_K)
    strict = BeforeEnd(PrefixSubstitutions(model.candidates, TOP_K, 1))
    every = BeforeEnd(PrefixSubstitutions(with_what_is_there(model.candidates), TOP_K + 1, 1))
    inside, outside = 0, 0
    for x in product(range(5), repeat=2):
        data = Sequences.of([[*x, 5]], 6)
        top = [code for code in model.candidates(Sequences.of([x], 6), TOP_K)[0, 1].tolist() if code >= 0]
        found, allowed = (sorted(around.edits(data).apply(data).to_lists()) for around in (every, strict))
        assert found == sorted([x[0], code, 5] for code in top if code != x[1])
        assert allowed == (found if x[1] in top else [])
        inside, outside = inside + (x[1] in top), outside + (x[1] not in top)
    assert min(inside, outside) > 3


def test_the_stein_identity_holds_as_well_as_exactly(lm: LanguageModel) -> None:
    filtered, positive = (lm.questions("a b", LONGEST, TOP_K, floor) for floor in (0.0, FLOOR))
    around = BeforeEnd(prefix_zs(with_what_is_there(filtered.candidates), TOP_K + 1, 1))
    p = positive.log_joint(SPACE).softmax(0)
    [matrix] = stein_matrices(positive, SPACE[p > 0], [View("", ZanellaOperator(around), ContiguousKernel(1))])
    assert isinstance(matrix, FeatureMatrix)
    assert matrix.weighted_sum(p[None, p > 0]).abs().max() < 10 * FLOOR
    uniform = torch.full_like(p[None, p > 0], 1 / int((p > 0).sum()))
    assert matrix.weighted_sum(uniform).abs().max() > 0.1


def test_features_of_data_sets_are_those_of_each_by_itself(lm: LanguageModel) -> None:
    model = lm.questions("a b", LONGEST, TOP_K, FLOOR)
    data = model.draw(30, torch.Generator().manual_seed(0))
    view = View("", ZanellaOperator(BeforeEnd(prefix_zs(model.candidates, TOP_K, 1))), ContiguousKernel(1))
    for index, matrix in enumerate(stein_matrices_of_sets(model, view, data, 10)):
        [alone] = stein_matrices(model, data[10 * index : 10 * index + 10], [view])
        torch.testing.assert_close(matrix.dense(), alone.dense(), rtol=1e-10, atol=1e-13)


def test_a_mixture_has_its_weight() -> None:
    def always(symbol: int) -> AutoregressiveModel:
        def network(codes: Tensor) -> Tensor:
            logits = torch.full((*codes.shape, 3), -torch.inf)
            logits[..., 2] = 0.0
            logits[:, 0] = torch.tensor([0.0, -torch.inf, -torch.inf]).roll(symbol)
            return logits

        return AutoregressiveModel(network, prompt=[0], end=2, max_length=2)

    law = mixture(always(0), always(1), 0.3)
    drawn = law.draw(2_000, torch.Generator().manual_seed(0))
    assert set(map(tuple, drawn.to_lists())) == {(0, 2), (1, 2)}
    low, high = binom.interval(0.999, 2_000, 0.3)
    assert low <= int((drawn.tokens[:, 0] == 1).sum()) <= high
    state = drawn.tokens[:, 0].double()
    assert abs(torch.corrcoef(torch.stack([state[:-1], state[1:]]))[0, 1]) < 0.1  # in no particular order

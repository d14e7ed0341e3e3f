# SPDX-License-Identifier: Apache-2.0
"""Groups of equal covariates and the content of prompts, against plain loops."""

from __future__ import annotations

import pytest
import torch

from pyro_ksd import Sequences
from pyro_ksd.sequences import PromptContent
from pyro_ksd.sequences.covariate_groups import CovariateGroups
from pyro_ksd.sequences.covariates import Covariates

PROMPTS = [[4, 1], [0], [3, 3, 4], [4, 1], [0], [1, 4]]
DATA = Sequences.of(["ab"] * 6).with_covariates(PROMPTS)


def covariates(rows: object) -> Covariates:
    return Covariates.of(rows, len(rows))  # type: ignore[arg-type]


def test_groups_are_equal_prompts() -> None:
    groups = CovariateGroups.of(DATA, "prompt")
    assert len(groups) == 4
    found = groups(covariates(PROMPTS)).to_dense()
    same = torch.tensor([[float(one == other) for other in PROMPTS] for one in PROMPTS]).double()
    assert torch.equal(found @ found.t(), same)
    assert [groups.label(column) for column in range(4)] == ["prompt 0", "prompt 1 4", "prompt 3 3 4", "prompt 4 1"]
    spelled = CovariateGroups.of(DATA, "prompt", ["the", "a", "b", "c"])
    assert spelled.label(3) == "prompt 4 a"  # 4 is a code that the alphabet lacks


def test_groups_do_not_depend_on_the_padding() -> None:
    groups = CovariateGroups.of(DATA, "prompt")
    assert groups(covariates([[4, 1], [0]])).to_dense().argmax(1).tolist() == [3, 0]
    assert groups(covariates([[4, 1, -1, -1, -1], [0, -1, -1, -1, -1]])).to_dense().argmax(1).tolist() == [3, 0]


def test_long_prompts_have_short_labels() -> None:
    data = Sequences.of(["a"]).with_covariates([list(range(20))])
    assert CovariateGroups.of(data, "prompt").labels == ("0 1 2 3 … 16 17 18 19",)


def test_groups_of_a_named_covariate() -> None:
    data = Sequences.of(["a", "b"]).with_covariates({"dose": torch.tensor([3, 1]), "age": torch.tensor([1.5, 2.5])})
    groups = CovariateGroups.of(data, "dose")
    assert data.covariates is not None
    assert groups(data.covariates).to_dense().tolist() == [[0.0, 1.0], [1.0, 0.0]]
    with pytest.raises(ValueError, match=r"by: expected one of the covariates \['age', 'dose'\], found 'doze'"):
        CovariateGroups.of(data, "doze")
    with pytest.raises(ValueError, match="by: expected whole numbers, such as groups or prompts, for 'age', found"):
        CovariateGroups.of(data, "age")
    with pytest.raises(ValueError, match="by: expected data with the covariate 'dose', found none"):
        CovariateGroups.of(Sequences.of(["a"]), "dose")


def test_unknown_groups_are_refused() -> None:
    with pytest.raises(ValueError, match=r"prompt: expected one of the 4 values of the data, found \[9\]"):
        CovariateGroups.of(DATA, "prompt")(covariates([[9]]))


def test_content_is_a_cosine_of_codes() -> None:
    """With many places hardly any codes share one, so that the products are those of the counts."""
    content = PromptContent(num_features=4096)
    found = content(covariates(PROMPTS))
    counts = torch.zeros(6, 5).double()
    for row, prompt in enumerate(PROMPTS):
        for code in prompt:
            counts[row, code] += 1
    counts = torch.nn.functional.normalize(counts, dim=1)
    torch.testing.assert_close(found @ found.t(), counts @ counts.t(), rtol=1e-12, atol=1e-12)
    assert torch.equal(content(covariates([[4, 1, -1], [3, 3, 4]]))[0], found[0])
    assert content.label(3) == "content 3 of prompts"


def test_content_spreads_codes_evenly() -> None:
    features = PromptContent(num_features=16)(covariates([[code] for code in range(16_000)]))
    assert ((features != 0).sum(1) == 1).all()
    shares = (features != 0).double().mean(0)
    assert (shares - 1 / 16).abs().max() < 0.01
    assert features.sum(0).abs().max() < 200  # of 1,000 with random signs


def test_refuses() -> None:
    with pytest.raises(ValueError, match="num_features: expected an integer of at least 1, found 0"):
        PromptContent(0)

# SPDX-License-Identifier: Apache-2.0
"""The groups of posterior predictive checks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import pyro  # noqa: E402

from pyro_ksd import MarkovSequence, Sequences, verdict  # noqa: E402
from pyro_ksd.fit_tests.predictive import posterior_predictive  # noqa: E402
from pyro_ksd.models.posterior.posterior_models import PosteriorModels  # noqa: E402
from pyro_ksd.results.predictive_groups import predictive_datatree  # noqa: E402
from pyro_ksd.stein.views import default_views  # noqa: E402


def program(x: Any = None, num_sequences: int | None = None) -> Any:
    stop = pyro.sample("stop", pyro.distributions.Beta(2.0, 2.0))
    chain = MarkovSequence.from_transitions(torch.ones(2) / 2, torch.ones(2, 2) / 2, stop)
    with pyro.plate("sequences", num_sequences if x is None else len(x)):
        return pyro.sample("x", chain, obs=x)


def test_a_posterior_predictive_check_needs_no_test_of_a_point(monkeypatch: pytest.MonkeyPatch) -> None:
    data = Sequences.of(["ab", "b", "aba", "aa"])
    models = PosteriorModels(program, data, {"stop": torch.tensor([0.3, 0.4, 0.5, 0.2]).view(2, 2)})
    found = posterior_predictive(models, data, default_views())
    monkeypatch.setattr("pyro_ksd.fit_tests.absolute.goodness_of_fit", None)
    monkeypatch.setattr("pyro_ksd.fit_tests.absolute.GoodnessOfFit", None)
    monkeypatch.setattr("pyro_ksd.results.groups.GoodnessOfFit", None)
    tree = predictive_datatree(found, data, {}, settings={"level": 0.05, "seed": 3})
    own = {"ksd", "ksd_null", "ksd_ngram", "ksd_edit", "ksd_ppc", "ksd_data"}
    assert set(tree.children) == own | {"observed_data", "posterior_predictive", "log_likelihood"}
    assert tree["ksd_ppc"].sizes == {"chain": 2, "draw": 2, "view": 10}
    np.testing.assert_array_equal(tree["ksd_ppc"]["realized"].values.reshape(4, 10), found.realized)
    assert tree["ksd"]["weight"].values.tolist() == [view.weight for view in default_views()]
    assert "foreign_share" not in tree["ksd"]
    assert "factor" not in tree["ksd_ngram"]
    np.testing.assert_array_equal(tree["ksd"]["p_value"], found.p_value)
    np.testing.assert_array_equal(tree["ksd_null"]["extreme"].values[0], found.replicated.extreme)
    assert {"kind": "posterior predictive", "seed": 3}.items() <= tree["ksd"].attrs.items()
    assert tree["ksd"].attrs["seconds_posterior"] > 0
    assert verdict(tree)

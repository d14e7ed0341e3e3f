# SPDX-License-Identifier: Apache-2.0
"""The groups of a monitor."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from pyro_ksd.fit_tests import Bets, StreamEvidence  # noqa: E402
from pyro_ksd.results.monitor_groups import monitor_datatree  # noqa: E402
from pyro_ksd.stein.stream_views import bounded_views  # noqa: E402


def test_groups_hold_what_is_known() -> None:
    views = bounded_views(2)[:2]
    evidence = StreamEvidence.at_start([Bets.at_start(one.num_features, one.reach) for one in views], 0.05)
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        rows = [torch.rand(40, one.num_features, dtype=torch.double, generator=generator) - 0.4 for one in views]
        psi = [values / values.shape[1] for values in rows]
        evidence = evidence.after(psi, torch.ones(40, dtype=torch.bool))
    tree = monitor_datatree(evidence, [one.view for one in views], "ab", settings={"seed": 3, "level": 0.05})
    monitor = tree["ksd_monitor"]
    assert monitor["num_sequences"].values.tolist() == [40, 80, 120]
    assert monitor["log_evidence"].values.tolist() == evidence.seen[:, :2].tolist()
    assert monitor["log_evidence_overall"].values.tolist() == evidence.seen[:, 2].tolist()
    assert monitor["p_value"].values.tolist() == (-evidence.most_of_views).exp().tolist()
    assert monitor.attrs["first_clear"] == evidence.first_clear
    assert monitor.attrs["most_evidence"] == evidence.most
    features = tree["ksd_monitor_feature"]
    assert set(features["label"].values) == {"a", "b", "aa", "ab", "ba", "bb"}
    for label, z in zip(features["label"].values, features["z"].values, strict=True):
        bets = evidence.bets[len(label) - 1]
        assert z == float(bets.z[int(label.replace("a", "0").replace("b", "1"), 2)])
    assert features["num_compared"].values.tolist() == [2, 2, 4, 4, 4, 4]

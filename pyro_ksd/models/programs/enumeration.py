# SPDX-License-Identifier: Apache-2.0
"""Discrete latent sites that are summed out, however the user asked for it."""

from __future__ import annotations

from typing import Any

from pyro.poutine.messenger import Messenger


class InParallel(Messenger):
    """Has sites with ``infer={"enumerate": "sequential"}`` enumerated in parallel: the sum is the same."""

    def _pyro_sample(self, msg: Any) -> None:
        if not msg["is_observed"] and msg["infer"].get("enumerate") == "sequential":
            msg["infer"]["enumerate"] = "parallel"

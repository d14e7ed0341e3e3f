# SPDX-License-Identifier: Apache-2.0
"""How to do a check, whatever its model and data are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyro_ksd.checks.by_argument import By
from pyro_ksd.checks.fit_options import passed
from pyro_ksd.common.checkpoints import Checkpoint
from pyro_ksd.common.option_checks import check_flag, check_share
from pyro_ksd.edits.neighborhoods import Neighborhood
from pyro_ksd.fit_tests.absolute import Bootstrap
from pyro_ksd.stein.balancing import Balancing
from pyro_ksd.stein.views import View


@dataclass(frozen=True, eq=False, kw_only=True)
class CheckRequest:
    """The arguments of :func:`~pyro_ksd.ksd_check` that are about neither the model nor the data.

    They have the meaning that they have there, and are checked before anything is computed.

    :ivar allows_stand_in: whether tables or automata may give the ratios of drawn data sets in place of the model, as
        long as they agree with it: ``order="auto"``.
    """

    views: str | View | Sequence[str | View] | None
    neighborhood: Neighborhood | None
    balancing: str | Balancing | None
    by: By | None
    bootstrap: Bootstrap
    num_bootstrap: int
    level: float
    tolerance: float | None
    localize: bool
    attribution: bool
    gram: bool
    replicates: bool
    allows_stand_in: bool
    checkpoint: Checkpoint | None
    seed: int
    progress: bool

    def __post_init__(self) -> None:
        for name in ("localize", "attribution", "gram", "replicates"):
            check_flag(name, getattr(self, name))
        if self.tolerance is not None:
            check_share("tolerance", self.tolerance)
        self.check_localized(
            tolerance=self.tolerance, attribution=self.attribution, gram=self.gram, replicates=self.replicates
        )

    def check_localized(self, **others: Any) -> None:
        """Checks that nothing is passed that needs more than p-values, beside ``localize=False``."""
        asked = passed(**others)
        if asked and not self.localize:
            raise ValueError(f"localize: expected True beside {asked}, found False; leave out localize= or {asked}")

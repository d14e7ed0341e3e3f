# SPDX-License-Identifier: Apache-2.0
"""The calls that run all of it: checks of a model, comparisons of several, monitors of a stream, and baselines."""

from pyro_ksd.checks.baselines import likelihood_ratio_check, mmd_check
from pyro_ksd.checks.model_check import ksd_check
from pyro_ksd.checks.model_comparison import ksd_compare
from pyro_ksd.checks.model_repair import repair
from pyro_ksd.checks.monitoring import Monitor, ksd_monitor
from pyro_ksd.checks.power_study import power
from pyro_ksd.checks.view_finder import find_view

__all__ = [
    "Monitor",
    "find_view",
    "ksd_check",
    "ksd_compare",
    "ksd_monitor",
    "likelihood_ratio_check",
    "mmd_check",
    "power",
    "repair",
]

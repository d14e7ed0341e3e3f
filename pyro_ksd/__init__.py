# SPDX-License-Identifier: Apache-2.0
"""Goodness-of-fit checks for Pyro models of variable-length discrete sequences, by kernel Stein discrepancies."""

from pyro_ksd.check import ksd_check
from pyro_ksd.models import HiddenMarkovSequence, IndependentSequence, LinearChainMRF, MarkovSequence
from pyro_ksd.report import summary
from pyro_ksd.sequences import Sequences
from pyro_ksd.views import View, default_views

__all__ = [
    "HiddenMarkovSequence",
    "IndependentSequence",
    "LinearChainMRF",
    "MarkovSequence",
    "Sequences",
    "View",
    "default_views",
    "ksd_check",
    "summary",
]

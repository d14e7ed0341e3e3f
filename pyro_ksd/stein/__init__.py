# SPDX-License-Identifier: Apache-2.0
"""Stein operators, views, and the Stein kernel matrices that they give; samples by the Zanella process."""

from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.balancing import as_balancing, barker, metropolis, mpf
from pyro_ksd.stein.operators import Operator, TailBlockOperator, ZanellaOperator
from pyro_ksd.stein.views import View, default_views
from pyro_ksd.stein.zanella_sampler import ZanellaSamples, zanella_sample

__all__ = [
    "Operator",
    "TailBlockOperator",
    "View",
    "ZanellaOperator",
    "ZanellaSamples",
    "as_balancing",
    "barker",
    "default_views",
    "metropolis",
    "mpf",
    "stein_matrices",
    "zanella_sample",
]

# SPDX-License-Identifier: Apache-2.0
"""Stein operators, views, and the Stein kernel matrices that they give; samples by the Zanella process."""

from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.balancing import as_balancing, barker, metropolis, mpf, tempered
from pyro_ksd.stein.length_views import length_view
from pyro_ksd.stein.operators import HeatBathOperator, LengthOperator, Operator, TailBlockOperator, ZanellaOperator
from pyro_ksd.stein.signs import Signs
from pyro_ksd.stein.views import View, default_views, further_views
from pyro_ksd.stein.zanella_sampler import ZanellaSamples, zanella_sample

__all__ = [
    "HeatBathOperator",
    "LengthOperator",
    "Operator",
    "Signs",
    "TailBlockOperator",
    "View",
    "ZanellaOperator",
    "ZanellaSamples",
    "as_balancing",
    "barker",
    "default_views",
    "further_views",
    "length_view",
    "metropolis",
    "mpf",
    "stein_matrices",
    "tempered",
    "zanella_sample",
]

# SPDX-License-Identifier: Apache-2.0
"""Pictures of a check; they need matplotlib, and neither torch nor Pyro."""

from pyro_ksd.plots.comparison import plot_compare
from pyro_ksd.plots.discrepancy import plot_discrepancy
from pyro_ksd.plots.evidence import plot_evidence
from pyro_ksd.plots.gram import plot_gram
from pyro_ksd.plots.lengths import plot_lengths
from pyro_ksd.plots.ngrams import plot_ngrams
from pyro_ksd.plots.null import plot_null
from pyro_ksd.plots.overview import plot_check
from pyro_ksd.plots.sequences import plot_sequences
from pyro_ksd.plots.views import plot_views

__all__ = [
    "plot_check",
    "plot_compare",
    "plot_discrepancy",
    "plot_evidence",
    "plot_gram",
    "plot_lengths",
    "plot_ngrams",
    "plot_null",
    "plot_sequences",
    "plot_views",
]

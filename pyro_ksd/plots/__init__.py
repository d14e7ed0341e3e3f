# SPDX-License-Identifier: Apache-2.0
"""Pictures of a check; they need matplotlib."""

from pyro_ksd.plots.null import plot_null

__all__ = ["plot_null"]

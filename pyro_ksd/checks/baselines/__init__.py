# SPDX-License-Identifier: Apache-2.0
"""Other tests of fit, to compare with: their results can be read and drawn as those of ``ksd_check``."""

from pyro_ksd.checks.baselines.likelihood_ratio import likelihood_ratio_check
from pyro_ksd.checks.baselines.mmd import mmd_check

__all__ = ["likelihood_ratio_check", "mmd_check"]

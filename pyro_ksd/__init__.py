# SPDX-License-Identifier: Apache-2.0
"""Goodness-of-fit checks for Pyro models of variable-length discrete sequences, by kernel Stein discrepancies.

Names are imported when they are used, so that saved checks can be read and drawn without torch and Pyro.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

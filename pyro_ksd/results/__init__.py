# SPDX-License-Identifier: Apache-2.0
"""Results: xarray groups, containers, tables and verdicts.

Names are imported when they are used, so that saved checks can be read without torch and Pyro.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

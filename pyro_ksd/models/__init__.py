# SPDX-License-Identifier: Apache-2.0
"""Models of sequences: Pyro programs, distributions, networks, and what is made of them.

Names are imported when they are used, so that the engine, which needs only the base class, does not load Pyro.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

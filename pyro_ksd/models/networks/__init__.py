# SPDX-License-Identifier: Apache-2.0
"""Networks that predict the next symbol, and torch distributions over whole sequences."""

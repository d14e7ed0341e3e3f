# SPDX-License-Identifier: Apache-2.0
"""Fits of models to data, for checks of models whose parameters were estimated."""

# SPDX-License-Identifier: Apache-2.0
"""Distributions over sequences that Pyro programs can sample and observe."""

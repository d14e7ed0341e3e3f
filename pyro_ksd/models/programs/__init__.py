# SPDX-License-Identifier: Apache-2.0
"""Pyro programs as models: their log-joints, sequence by sequence."""

# SPDX-License-Identifier: Apache-2.0
"""Models around other models: with a sampler, a constraint, or a table of a known order."""

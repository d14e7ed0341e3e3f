# SPDX-License-Identifier: Apache-2.0
"""The views that compare sequences with equal or similar covariates, for ``by=``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from torch import Tensor

from pyro_ksd.common.option_checks import found
from pyro_ksd.kernels.base import FeatureKernel
from pyro_ksd.kernels.conditional import ConditionalKernel
from pyro_ksd.models.networks.prompts import PROMPT
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.covariate_groups import CovariateFeatures, CovariateGroups, OwnFeatures
from pyro_ksd.sequences.covariates import Covariates
from pyro_ksd.stein.views import View

By = str | Callable[[Covariates], Tensor]
"""The name of a covariate, or a function that returns features of covariates."""

_DEFAULT = ("content-1", "content-2", "start", "length", "surprise")
"""The default views that are also looked at by covariates."""
_LEAST_EACH = 2.0  # sequences of a group on average


def with_conditional_views(
    views: Sequence[View], by: By | None, sequences: Sequences, *, are_default: bool
) -> list[View]:
    """Views, and after them those that compare sequences with equal or similar covariates only.

    :param by: as for :func:`~pyro_ksd.ksd_check`; without it, the views stay as they are.
    :param sequences: those that the model allows.
    :param are_default: whether the user asked for no views in particular.
    :raises ValueError: if there are no such covariates, or hardly any two sequences have the same.
    """
    if by is None:
        return list(views)
    features = _features(by, sequences)
    added = []
    for view in views:
        kernel = view.kernel
        is_chosen = view.name in _DEFAULT or not are_default
        if is_chosen and isinstance(kernel, FeatureKernel) and not isinstance(kernel, ConditionalKernel):
            added.append(
                replace(view, name=f"{view.name} by {features.name}", kernel=ConditionalKernel(kernel, features))
            )
    if not added:
        raise ValueError(
            f"by: expected a view whose kernel has features, found {[view.name for view in views]}; pass others in "
            "views="
        )
    for view in added:
        view.kernel.check_data(sequences)
    return [*views, *added]


def _features(by: object, sequences: Sequences) -> CovariateFeatures:
    """The function of the covariates."""
    if callable(by) and sequences.covariates is None:
        raise ValueError("by: expected sequences with covariates, found none; pass data.with_covariates(...)")
    if isinstance(by, CovariateFeatures):
        return by
    if callable(by):
        return OwnFeatures(by)
    if not isinstance(by, str):
        raise ValueError(
            "by: expected the name of a covariate, such as 'prompt', or a function of the covariates that returns "
            f"features [N, G], found {found(by)}"
        )
    symbols = [str(symbol) for symbol in sequences.symbols] if by == PROMPT else None
    groups = CovariateGroups.of(sequences, by, symbols)
    if len(sequences) < _LEAST_EACH * len(groups):
        raise ValueError(
            f"by: expected at least {_LEAST_EACH:.0f} sequences for each value of {by!r} on average, found "
            f"{len(sequences)} for {len(groups)} values; pass pyro_ksd.sequences.PromptContent(), which compares "
            "prompts by their content, or a function of the covariates"
        )
    return groups

# SPDX-License-Identifier: Apache-2.0
r"""The share of sequences that do not come from the model: a lower confidence bound, and a test with a tolerance.

Let the data come from :math:`(1 - \varepsilon)\, p + \varepsilon\, q`, with any :math:`q`. Without the sequences of
:math:`q` they are a sample of the model, in which no feature's score exceeds the critical value :math:`c` of the null
draws, with probability :math:`1 - \alpha`. So if a feature stays above :math:`c` whichever :math:`m` sequences are
removed, more than :math:`m` of them are foreign (:mod:`pyro_ksd.fit_tests.removal`). The spread of a score is that of
all sequences. It includes the foreign ones, and with them the random error of their number, so that the bound holds for
:math:`\varepsilon` as well as for the share in the data.

Nothing is assumed about :math:`q`, and the features need no bound. The robust test of Liu and Briol (2025) divides the
discrepancy by :math:`\sup_x \|\psi(x)\|`, which is infinite for most models of sequences of unbounded length.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_instance, check_level, check_share
from pyro_ksd.common.tensor_checks import check_tensor
from pyro_ksd.fit_tests.removal import Pushes
from pyro_ksd.fit_tests.statistics import p_value


@dataclass(frozen=True, eq=False)
class ForeignShare:
    """Lower confidence bounds of the share of sequences that do not come from the model.

    :ivar share: double ``[V]``, the bound that each view gives by itself; NaN for a view without reported features.
    :ivar share_overall: the bound that all views give together.
    """

    share: Tensor
    share_overall: float


def foreign_share(pushes: Sequence[Pushes | None], extreme: Tensor, level: float = 0.05) -> ForeignShare:
    r"""Lower confidence bounds of the share :math:`\varepsilon` of sequences that do not come from the model.

    With :math:`m_u` the fewest sequences whose removal brings the score of the feature :math:`u` down to :math:`c`,

    .. math:: \hat\varepsilon = \max_u \frac{(m_u - 1)_+}{n} .

    :math:`c` is the :math:`1 - \alpha` quantile of the largest score in the null draws: of the view for the bound of a
    view, of all views for the one overall. All features are looked at together, so no further correction is needed. A
    foreign sequence that resembles the model's in all features is not seen, so the true share may be larger.

    :param pushes: for each of ``V`` views of the same sequences, how strongly these push the sums of the features;
        ``None`` for a view without reported features.
    :param extreme: ``[B, V]``, the largest scores in the null draws, see
        :class:`~pyro_ksd.fit_tests.null_draws.NullDraws`.
    :param level: :math:`\alpha`; the bounds hold with probability ``1 - level``.

    >>> from pyro_ksd.kernels.stein_matrices import FeatureMatrix
    >>> from pyro_ksd.stein.sums import SteinSums
    >>> psi = torch.randn(1000, 3, generator=torch.Generator().manual_seed(0)).double()
    >>> psi[:100, 1] += 6.0  # 10 % do not come from the model
    >>> extreme = torch.linspace(0.0, 3.0, 999).double()[:, None]
    >>> features = FeatureMatrix(psi)
    >>> pushes = Pushes.none(SteinSums.of(features)).plus(features)
    >>> foreign_share([pushes], extreme).share_overall
    0.06
    """
    views = _reported(pushes, extreme)
    check_level(level)
    share = torch.full((len(pushes),), torch.nan, dtype=torch.double)
    if not views:
        return ForeignShare(share, math.nan)
    overall = 0.0
    together = _critical(extreme[:, list(views)].amax(1), level)
    for view, own in views.items():
        critical = torch.tensor([_critical(extreme[:, view], level), together], dtype=torch.double)
        if not len(own.codes):
            share[view] = 0.0
            continue
        removed = own.fewest(critical).amax(1)
        by_itself, with_others = ((removed - 1).clamp(min=0).double() / own.count).tolist()
        share[view] = by_itself
        overall = max(overall, with_others)
    return ForeignShare(share, overall)


def tolerance_p_value(pushes: Sequence[Pushes | None], extreme: Tensor, tolerance: float) -> tuple[Tensor, Tensor]:
    r"""p-values of the hypothesis that at most the share ``tolerance`` of the sequences does not come from the model.

    The largest score after the removal of :math:`\lceil n \varepsilon_0 \rceil` sequences is compared with the largest
    scores in the null draws. For a tolerance above 0, the p-value is at most ``level`` if and only if the bound of
    :func:`foreign_share` is at least the tolerance.

    :param pushes: as for :func:`foreign_share`.
    :param extreme: ``[B, V]``, as for :func:`foreign_share`.
    :param tolerance: :math:`\varepsilon_0`, at least 0 and below 1.
    :returns: p-values ``[V]``, NaN for a view without reported features, and that of all views together, a scalar.

    >>> from pyro_ksd.kernels.stein_matrices import FeatureMatrix
    >>> from pyro_ksd.stein.sums import SteinSums
    >>> psi = torch.randn(1000, 3, generator=torch.Generator().manual_seed(0)).double()
    >>> psi[:100, 1] += 6.0  # 10 % do not come from the model
    >>> extreme = torch.linspace(0.0, 3.0, 999).double()[:, None]
    >>> features = FeatureMatrix(psi)
    >>> pushes = Pushes.none(SteinSums.of(features)).plus(features)
    >>> [round(tolerance_p_value([pushes], extreme, share)[1].item(), 3) for share in (0.0, 0.05, 0.1)]
    [0.001, 0.001, 1.0]
    """
    views = _reported(pushes, extreme)
    check_share("tolerance", tolerance)
    each = torch.full((len(pushes),), torch.nan, dtype=torch.double)
    if not views:
        return each, torch.tensor(math.nan, dtype=torch.double)
    largest = torch.stack([own.score_after(num_foreign(tolerance, own.count)) for own in views.values()])
    own = extreme[:, list(views)]
    each[list(views)] = p_value(largest, own)
    return each, p_value(largest.amax(), own.amax(1))


def num_foreign(tolerance: float, size: int) -> int:
    """How many of ``size`` sequences may be foreign.

    >>> num_foreign(0.07, 100), num_foreign(0.071, 100)
    (7, 8)
    """
    return math.ceil(round(tolerance * size, 6))


def _reported(pushes: Sequence[Pushes | None], extreme: Tensor) -> dict[int, Pushes]:
    """What is known of the views that have scores in the null draws, by the number of the view."""
    check_instance("pushes", pushes, Sequence, "a list, one of each view, such as those of localize(...)")
    for own in pushes:
        if own is not None:
            check_instance("pushes", own, Pushes, "the pushes of sequences, such as those of localize(...)")
    check_tensor("extreme", extreme, "B", len(pushes))
    scored = (~extreme.isnan().any(0)).tolist()
    return {view: own for view, own in enumerate(pushes) if own is not None and scored[view]}


def _critical(largest: Tensor, level: float) -> float:
    """The value that a score must exceed for a p-value of at most ``level`` among null draws ``[B]``."""
    rank = math.floor(round(level * (len(largest) + 1), 6))
    return float(largest.sort(descending=True).values[rank - 1]) if rank else math.inf

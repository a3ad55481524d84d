"""Whether some rows will never fail, of which a law under which all rows fail in the end knows nothing.

Under a mixture cure model (Berkson and Gage, 1952, "Survival curve for cancer patients following treatment") a share p
of the rows never fails: an event adds log(1 - p) + log f, a censored row log(p + (1 - p) S). At p = 0 the score of p is

    U = sum over censored rows of (1/S - 1)  -  number of events,

whose mean under the law is 0. The coefficients of the law come from the same rows, so what their scores explain of each
row's term is taken out of its variance (Neyman, 1959, "Optimal asymptotic tests of composite hypotheses").
"""

import numpy as np
from numpy.typing import NDArray

from advrisk.risk.survival.frames import Floats
from advrisk.risk.survival.likelihood import LawLikelihood

_LONGEST = 50.0  # -log S of a row; beyond, one row would say everything


def cure_p_value(model: LawLikelihood, theta: Floats, clusters: NDArray[np.intp] | None) -> float:
    """One-sided: small where more rows hold out, and for longer, than a law under which all fail allows."""
    from scipy.special import ndtr

    eta, u = model.predictors(theta)
    censored = model.rows.censored
    z = (model.rows.log_t[censored] - eta[censored]) * np.exp(-u[censored])
    each = np.full(len(eta), -1.0)
    each[censored] = np.expm1(np.minimum(-model.family.log_survival(z).value, _LONGEST))
    scores = model.scores(theta)
    left = each - scores @ np.linalg.lstsq(scores.T @ scores, scores.T @ each, rcond=None)[0]
    by_cluster = left if clusters is None else np.bincount(clusters, weights=left)
    spread = float(np.sqrt(by_cluster @ by_cluster))
    return float(ndtr(-each.sum() / spread)) if spread > 0 else 1.0

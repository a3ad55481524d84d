"""Whether a run may stop early: betting p-values are valid at any time, so it may once every list is certified."""

from advrisk.assess.certificate.assessment import assess_certificates
from advrisk.assess.certificate.records import BETTING
from advrisk.core.errors import RiskError
from advrisk.ledger import Ledger
from advrisk.study import CertificateSpec


def is_decided(ledger: Ledger, spec: CertificateSpec) -> bool:
    """Whether betting p-values certify every list from the rows so far, each at its least share of zeta.

    False for another method, whose p-value is valid only once, at the end; also while an error prevents a certificate,
    which the certificate itself reports.
    """
    if spec.method != BETTING:
        return False
    try:
        assessment = assess_certificates(
            ledger,
            alpha=spec.alpha,
            zeta=spec.zeta,
            method=spec.method,
            arms=spec.arms,
            population=spec.population,
        )
    except RiskError:
        return False
    return assessment.decided

"""Whether a run may stop: bets hold whenever one stops, so nothing more need be run once every list is certified."""

from advrisk.assess.certificate.assessment import assess_certificates
from advrisk.assess.certificate.records import BETTING
from advrisk.core.errors import RiskError
from advrisk.ledger import Ledger
from advrisk.study import CertificateSpec


def is_decided(ledger: Ledger, asked: CertificateSpec) -> bool:
    """Whether bets certify every list by what is there, each at the share of zeta that it has at least.

    Never so where another method is asked for, whose p-value may be looked at once, at the end; nor where nothing can
    be said yet, or ever: what is wrong is told when a certificate is asked for.
    """
    if asked.method != BETTING:
        return False
    try:
        found = assess_certificates(
            ledger,
            alpha=asked.alpha,
            zeta=asked.zeta,
            method=asked.method,
            arms=asked.arms,
            population=asked.population,
        )
    except RiskError:
        return False
    return found.decided

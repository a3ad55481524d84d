"""Certificate: a test that the risk of a frozen list of arms is at most alpha, with a bounded error rate.

Feng et al., "PROSAC: Provably Safe Certification for Machine Learning Models under Adversarial Attacks" (AAAI 2025).
`counts` checks counts of failures. `p_values` and `betting` test them, once or after every sample. `families` tests
lists of arms, grids of eps and several models together. `planning` gives the number of samples needed. `exploration`
gives the guarantee of a search for settings that it did not try. `verdict` combines the tests into a certificate.
"""

from advrisk.risk.certificate.betting import betting_certified_risk, betting_p_values, calibration_order
from advrisk.risk.certificate.counts import Count
from advrisk.risk.certificate.exploration import SearchGuarantee, search_guarantee
from advrisk.risk.certificate.families import CertifiedSizes, certified_sizes, fixed_sequence, holm
from advrisk.risk.certificate.p_values import certified_risk, log_p_value, most_failures, p_value
from advrisk.risk.certificate.planning import power, samples_to_certify, smallest_n
from advrisk.risk.certificate.verdict import Certificate, Tested, certify, certify_in_order

__all__ = [
    "Certificate",
    "CertifiedSizes",
    "Count",
    "SearchGuarantee",
    "Tested",
    "betting_certified_risk",
    "betting_p_values",
    "calibration_order",
    "certified_risk",
    "certified_sizes",
    "certify",
    "certify_in_order",
    "fixed_sequence",
    "holm",
    "log_p_value",
    "most_failures",
    "p_value",
    "power",
    "samples_to_certify",
    "search_guarantee",
    "smallest_n",
]

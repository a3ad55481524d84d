"""Certificate: is the risk of a frozen list of arms at most alpha, said by a procedure that seldom says so wrongly?

Feng et al., "PROSAC: Provably Safe Certification for Machine Learning Models under Adversarial Attacks" (AAAI 2025).
`counts` checks what was counted; `p_values` and `betting` test it, at the end or after every sample; `families` tests
lists of arms, grids of eps and models together; `planning` says how many samples that takes; `exploration` what a
search promises about settings that it did not try; `verdict` puts a certificate together.
"""

from advrisk.risk.certificate.betting import betting_certified_risk, betting_p_values, look_order
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
    "certified_risk",
    "certified_sizes",
    "certify",
    "certify_in_order",
    "fixed_sequence",
    "holm",
    "log_p_value",
    "look_order",
    "most_failures",
    "p_value",
    "power",
    "samples_to_certify",
    "search_guarantee",
    "smallest_n",
]

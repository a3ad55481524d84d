"""Records of certificates: attacks, lists, models, and the run."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from advrisk.assess.certificate.calibration import CalibrationSet
from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.names import did_you_mean
from advrisk.core.plain import InJson, plain_fields
from advrisk.core.tables import Columns, Row, Tabular
from advrisk.risk.certificate.exploration import Kernel
from advrisk.risk.certificate.families import CertifiedSizes
from advrisk.risk.certificate.p_values import Method
from advrisk.risk.certificate.verdict import Certificate, Tested

AnyMethod = Literal["exact", "hoeffding-bentkus", "betting"]
BETTING: AnyMethod = "betting"
NO_P_VALUE = "the paper's mean p over the rounds of the search, on the samples searched on; it is no valid p-value"


def of_counts(method: AnyMethod) -> Method:
    """A method that needs counts only, in place of betting: for plans and secondary numbers."""
    return "hoeffding-bentkus" if method == "hoeffding-bentkus" else "exact"


@dataclass(frozen=True)
class AttackFacts:
    """One attack of a list: its configuration and its outcomes."""

    arm: str
    origin: str  # study | frozen
    family: str | None
    objective: str | None
    params: Mapping[str, Any]
    tries: int
    failures: int  # samples that some try broke
    first_try: int  # samples that the first try broke
    untold: int  # samples counted as failures because of an error or a timeout
    flags: tuple[str, ...]
    failed_at: tuple[int, ...]  # the failures by their index in the order of interim analyses, from 0
    keep: str | None = None
    max_queries: int | None = None
    version: int | None = None  # of the registered attack

    in_json: ClassVar[InJson] = {"failed_at": None}


@dataclass(frozen=True)
class AttackClaim:
    """One attack on one model in one norm, over its sizes; `largest` is None if none is certified."""

    model: str
    norm: str
    attack: str
    eps: tuple[float, ...]
    p: tuple[float, ...]
    largest: float | None  # certified, taken by itself
    together: float | None  # certified, if all attacks of the run share zeta


@dataclass(frozen=True)
class Premise:
    """A study's assumptions on p as a function of an attack's setting, for the theorem of `exploration`."""

    norm_bound: float  # B
    noise: float  # R
    kernel: Kernel
    length_scale: float  # as a share of the range of each parameter
    delta: float


@dataclass(frozen=True)
class SearchFacts:
    """A search for attacks of a list; `beta` is the smallest that it used, as a root."""

    name: str
    method: str
    rounds: int
    parameters: tuple[str, ...]
    beta: float | None
    mean_p: float | None = None  # the paper's mean over all rounds, on the tuning split: no valid p-value

    mean_p_is: ClassVar[str] = NO_P_VALUE
    in_json: ClassVar[InJson] = {"mean_p": "mean_p_as_printed", "mean_p_is": "mean_p_is"}


@dataclass(frozen=True)
class InterimPValue:
    """The betting p-value of a list, which is valid at any interim analysis."""

    n: int  # samples so far, in the preset order
    p: float
    decided_at: int | None  # the number of samples after which p was at most the list's share of zeta


@dataclass(frozen=True, eq=False)
class ListCertificate:
    """The attacks on one model within one norm and eps, and their certificate."""

    model: str
    norm: str
    eps: float
    attacks: tuple[AttackFacts, ...]  # the worst first
    certificate: Certificate | None  # by itself; None while the run is not finished
    look: InterimPValue
    certified: bool  # together with all other lists of the run
    level: float  # its share of zeta
    n_total: int
    union_at: tuple[int, ...]  # samples that any attack broke, by their index in the order of interim analyses
    wrong_at: tuple[int, ...]  # samples that are wrong, clean or attacked
    waits: bool = False  # an unfinished smaller eps must be certified before
    searches: tuple[SearchFacts, ...] = ()

    in_json: ClassVar[InJson] = {
        **dict.fromkeys(("model", "certificate", "certified", "n_total", "union_at", "wrong_at", "waits")),
        "verdict": "verdict",
        "certificate.n": "n",
    }

    @property
    def p(self) -> float | None:
        """The p-value of the list: the largest of its attacks."""
        return None if self.certificate is None else self.certificate.p

    @property
    def verdict(self) -> str:
        """The verdict in two words."""
        if self.certified:
            return "certified"
        return "not finished" if self.pending else "not certified"

    @property
    def pending(self) -> bool:
        """Whether it may still be certified once the run is finished."""
        if self.certified or self.certificate is None:
            return not self.certified
        return self.waits or (self.certificate.method == BETTING and self.certificate.n < self.n_total)

    def as_dict(self) -> dict[str, Any]:
        attacks = [plain_fields(one) | self._uncounted for one in self.attacks]
        return plain_fields(self) | {"by_itself": _by_itself(self.certificate), "attacks": attacks}

    @property
    def _uncounted(self) -> dict[str, None]:
        """Whether partial counts must be hidden, as the p-value of counts is valid only once."""
        return dict.fromkeys(("failures", "first_try", "untold")) if self.certificate is None else {}


@dataclass(frozen=True, eq=False)
class ModelCertificates:
    """One model: its lists in ascending eps, and the largest certified eps of every norm."""

    model: str
    criterion: str
    clean_error: Estimate
    n_wrong: int
    lists: tuple[ListCertificate, ...]
    sizes: Mapping[str, CertifiedSizes]  # by norm
    rows: str  # digest of the deciding rows
    n_refused: int = 0  # clean inputs that it refuses to answer
    targets: Mapping[int, tuple[int, ...]] = field(default_factory=dict)  # class -> classes that it was to be read as
    caveats: tuple[str, ...] = ()  # weaknesses of every claim about it

    in_json: ClassVar[InJson] = {
        **dict.fromkeys(("n_wrong", "sizes", "rows")),
        "n_refused": "clean_refused",
        **{name: name for name in ("certified", "verdict", "largest_eps")},
    }

    @property
    def certified(self) -> bool:
        """Whether all its lists are certified, without a caveat."""
        return all(one.certified for one in self.lists) and not self.caveats

    @property
    def largest_eps(self) -> Mapping[str, float | None]:
        """Norm -> the largest certified size."""
        return {norm: found.largest for norm, found in self.sizes.items()}

    @property
    def verdict(self) -> str:
        """The verdict on all its lists together."""
        some, every = any(one.certified for one in self.lists), all(one.certified for one in self.lists)
        failed = any(not one.certified and not one.pending for one in self.lists)
        if not some:
            return "not certified" if failed else "not decided yet"
        told = "certified" if every else "certified in part" if failed else "certified so far"
        return f"{told}, with caveats" if self.caveats else told

    def of(self, norm: str, eps: float) -> ListCertificate:
        """The list of that norm and eps."""
        for one in self.lists:
            if (one.norm, one.eps) == (norm, eps):
                return one
        known = ", ".join(f"{one.norm} {one.eps:g}" for one in self.lists)
        raise RiskError(f"{self.model} was not attacked within {norm} {eps:g}; known: {known}")


@dataclass(frozen=True, eq=False)
class CertificateAssessment(Tabular):
    """Every list of every model of a run, tested once on one calibration set."""

    alpha: float
    zeta: float
    method: AnyMethod
    calibration: CalibrationSet
    models: tuple[ModelCertificates, ...]
    most_failures: int  # with which a list of the smallest eps is certified, whatever the others do; -1: none
    smallest_n: int  # the fewest samples that can certify anything
    notes: tuple[str, ...] = ()
    n_claims: int = 0  # that share zeta, also those of models that are not shown
    n_sequences: int = 0  # number of pairs of a model and a norm
    premise: Premise | None = None  # of the searches' guarantees
    claims: tuple[AttackClaim, ...] = ()  # about single attacks, of all models

    columns: ClassVar[Columns] = {
        **dict.fromkeys(("model", "norm"), "text"),
        "eps": "number",
        "list_verdict": "text",
        "level": "number",
        "attack": "text",
        **dict.fromkeys(("tries", "failures", "n", "first_try", "untold"), "count"),
        **dict.fromkeys(("p", "certified_risk"), "number"),
        **dict.fromkeys(("clean_wrong", "clean_refused", "clean_n"), "count"),
        "caveats": "text",
    }

    in_json: ClassVar[InJson] = {
        **dict.fromkeys(("calibration", "n_claims", "n_sequences")),
        "calibration.n": "n",
        "calibration.fingerprint": "calibration",
        "calibration.population": "population",
        "premise": "search_guarantee",
        "claims": "attacks",
    }

    @property
    def lists(self) -> tuple[ListCertificate, ...]:
        """The lists of all models."""
        return tuple(one for model in self.models for one in model.lists)

    @property
    def finished(self) -> bool:
        """Whether every attack ran on every sample."""
        return all(one.certificate is not None for one in self.lists)

    @property
    def decided(self) -> bool:
        """Whether betting certifies every list, each at its least share of zeta."""
        return all(one.look.decided_at is not None for one in self.lists)

    def of(self, model: str) -> ModelCertificates:
        """The certificate of a model."""
        found = {one.model: one for one in self.models}
        if model not in found:
            raise RiskError(f"no certificate of {model!r}; {did_you_mean(model, found)}")
        return found[model]

    def bound(self, tests: Iterable[Tested]) -> Estimate:
        """The risk that the calibration samples certify, the largest of these tests."""
        bound = max(test.certified_risk for test in tests)
        return Estimate(bound, bound, bound, 1 - self.zeta, self.calibration.n, "certified bound")

    def rows(self) -> list[Row]:
        """A row for each attack, and one for the union of each list."""
        return [row for model in self.models for one in model.lists for row in _lines(model, one)]


def _by_itself(certificate: Certificate | None) -> dict[str, Any] | None:
    """The numbers of a list's own test, without the verdict, which depends on other lists."""
    if certificate is None:
        return None
    return {name: value for name, value in plain_fields(certificate).items() if name != "verdict"}


def _lines(model: ModelCertificates, one: ListCertificate) -> Iterator[dict[str, Any]]:
    shared = {"model": one.model, "norm": one.norm, "eps": one.eps, "list_verdict": one.verdict, "level": one.level}
    clean = {
        "clean_wrong": model.n_wrong,
        "clean_refused": model.n_refused,
        "clean_n": model.clean_error.n,
        "caveats": " ".join(model.caveats) or None,
    }
    n = None if one.certificate is None else one.certificate.n
    tested = {} if one.certificate is None else {test.name: test for test in one.certificate.arms}
    for attack in one.attacks:
        test = tested.get(attack.arm)
        yield (
            shared
            | {
                "attack": attack.arm,
                "tries": attack.tries,
                "failures": attack.failures,
                "n": n,
                "first_try": attack.first_try,
                "untold": attack.untold,
                "p": None if test is None else test.p,
                "certified_risk": None if test is None else test.certified_risk,
            }
            | one._uncounted
            | clean
        )
    for name, test in _together(one.certificate):
        yield (
            shared
            | {
                "attack": name,
                "tries": None,
                "failures": test.count.failures,
                "n": test.count.n,
                "first_try": None,
                "untold": None,
                "p": test.p,
                "certified_risk": test.certified_risk,
            }
            | clean
        )


def _together(certificate: Certificate | None) -> list[tuple[str, Tested]]:
    if certificate is None:
        return []
    found = [("any of them", certificate.union)]
    return found if certificate.wrong is None else [*found, ("wrong, clean or attacked", certificate.wrong)]

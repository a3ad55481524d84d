"""What regulation and standards ask for, as data: each clause in one line, and which numbers of a run speak to it.

The lines are our own words and replace no reading of the texts. `topics` name groups of numbers, as `topics`
lists them: with none of them a run gives nothing to a clause, whatever it holds.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

Degree = Literal["answers", "contributes", "left to others"]
ANSWERS: Degree = "answers"
CONTRIBUTES: Degree = "contributes"
OTHERS: Degree = "left to others"
Owner = Literal["study", "management", "operator", "data", "developer", "assessor", "none"]
STUDY: Owner = "study"
MANAGEMENT: Owner = "management"
OPERATOR: Owner = "operator"
DATA: Owner = "data"
DEVELOPER: Owner = "developer"
ASSESSOR: Owner = "assessor"
NONE: Owner = "none"
OWNERS: Mapping[Owner, str] = {
    STUDY: "a study that asks for more",
    DEVELOPER: "the developers of the model",
    OPERATOR: "the operator",
    MANAGEMENT: "the provider's risk management",
    DATA: "the owners and labellers of the data",
    ASSESSOR: "an independent assessor",
    NONE: "no one (the clause asks for no figure)",
}


@dataclass(frozen=True)
class Clause:
    """One clause. `degree` is what a run can give it at best; `lacks` is what else is needed, whatever a run holds, and
    `owner` is who can best give that.

    `gives` has a place for what the topics tell that a run holds, or speaks of its only topic. `wholly` are topics
    without any of which a run contributes at most.
    """

    id: str
    owner: Owner
    asks: str
    lacks: str
    gives: str = ""
    topics: tuple[str, ...] = ()
    degree: Degree = OTHERS
    wholly: tuple[str, ...] = ()


# What numbers of a topic tell, whatever else a run holds; `causes` is what its corruptions stand for.
TELLS: Mapping[str, str] = {
    "accuracy": "the share of clean inputs that is answered rightly",
    "success": "how often attacks break the models within a size",
    "damage": "how probable damage by an attacked input is",
    "comparison": "which of the compared models suffers less, and whether that is decided",
    "corruptions": "what is lost where inputs are corrupted ({causes})",
    "scenarios": "the risk in the deployments that the study describes",
    "groups": "the risk by groups (strata) of the samples",
    "detection": "whether detectors notice attacks",
    "survival": "how much work it takes to break a sample",
    "certificates": "whether frozen attacks are certified to succeed rarely (alpha, zeta)",
    "gate": "the requirements of the study (a gate)",
    "people": "how often people notice",
    "study": "the study with all settings and its seed, which runs again as it is",
    "provenance": "samples by split, models and versions, with digests where they are known",
}


def given(clause: "Clause", held: Collection[str], causes: str) -> str:
    """What a run gives a clause by the topics that it holds, and never more."""
    told = [TELLS[name].format(causes=causes) for name in clause.topics if name in held and name in TELLS]
    return clause.gives.replace("{}", "; ".join(told)) if held else ""


@dataclass(frozen=True)
class LegalText:
    """A law, framework or standard."""

    id: str
    title: str
    edition: str
    clauses: tuple[Clause, ...]


_AI_ACT_9 = (
    Clause(
        "Art. 9(1)",
        MANAGEMENT,
        "A risk management system is set up, put into practice, written down and kept up to date.",
        "This is work of an organisation. The pack is a document that such a system can file.",
    ),
    Clause(
        "Art. 9(2)(a)",
        MANAGEMENT,
        "Known and foreseeable risks to health, safety and fundamental rights are found and analysed.",
        "Which harm to whom a wrong answer leads to; all hazards other than perturbed inputs.",
        "By which changes of an input the models are made wrong: {}.",
        ("success", "corruptions", "scenarios"),
        CONTRIBUTES,
    ),
    Clause(
        "Art. 9(2)(b)",
        OPERATOR,
        "Risks in intended use and in foreseeable misuse are estimated and evaluated.",
        "That scenarios, sizes and costs of the study describe intended use and misuse; other kinds of misuse.",
        "Estimates of one kind of failure and misuse, perturbed inputs: {}.",
        ("success", "damage", "scenarios", "survival", "certificates"),
        CONTRIBUTES,
    ),
    Clause(
        "Art. 9(2)(c)",
        OPERATOR,
        "Further risks are evaluated from what is learnt once the system is on the market.",
        "Data from operation. A run knows nothing of it.",
    ),
    Clause(
        "Art. 9(2)(d)",
        MANAGEMENT,
        "Suitable measures against the risks that were found are adopted.",
        "The decision, and that it was carried out.",
        "Which of the compared models suffers less, and whether the evidence decides.",
        ("comparison",),
        CONTRIBUTES,
    ),
    Clause(
        "Art. 9(3)",
        NONE,
        "The article is about risks that design, development or technical information can reduce.",
        "It draws a boundary, and asks for no figure.",
    ),
    Clause(
        "Art. 9(4)",
        MANAGEMENT,
        "Measures take account of how all requirements work together, to reduce risk in a balanced way.",
        "The balance is the provider's to strike and to explain.",
    ),
    Clause(
        "Art. 9(5)",
        MANAGEMENT,
        "What risk remains, of each hazard and in all, is judged acceptable; risks are removed or reduced by design, "
        "controlled where they remain, and deployers are informed and trained.",
        "Whether it is acceptable, the measures themselves, information and training of deployers.",
        "What remains of one hazard, perturbed inputs, in the models as they were tested: {}.",
        ("success", "damage", "scenarios", "certificates"),
        CONTRIBUTES,
    ),
    Clause(
        "Art. 9(6)",
        DEVELOPER,
        "Tests find the best measures, and ensure that the system works consistently and meets the requirements.",
        "Tests of the whole system, and of all other requirements.",
        "Tests of the models on the same samples: {}.",
        ("accuracy", "success", "corruptions", "comparison"),
        CONTRIBUTES,
    ),
    Clause(
        "Art. 9(7)",
        OPERATOR,
        "Testing may include tests in real-world conditions, under the rules for these (Art. 60).",
        "Tests in the field. Everything here was computed on stored samples.",
    ),
    Clause(
        "Art. 9(8)",
        MANAGEMENT,
        "Tests take place in the course of development, in any case before the system is placed on the market, against "
        "metrics and probabilistic thresholds that were set beforehand and fit the purpose.",
        "That the thresholds fit the purpose, and that the tests came at the right time. That those of a gate were set "
        "beforehand, which a pack does not show; alpha and zeta of a certificate are written down before its test.",
        "Thresholds, and whether they are met: {}.",
        ("gate", "certificates"),
        CONTRIBUTES,
    ),
    Clause(
        "Art. 9(9)",
        MANAGEMENT,
        "It is considered whether people under 18 or other vulnerable groups are likely to be affected.",
        "A run does not know who is affected.",
    ),
    Clause(
        "Art. 9(10)",
        MANAGEMENT,
        "Providers who must manage risks under other Union law may make this a part of those procedures.",
        "A choice of the organisation.",
    ),
)

_AI_ACT_15 = (
    Clause(
        "Art. 15(1)",
        OPERATOR,
        "Accuracy, robustness and cybersecurity are at a suitable level, and stay so over the lifecycle.",
        "Which level is suitable; consistency over time; security of everything around the model.",
        "Of the models at the time of the test: {}.",
        ("accuracy", "success", "damage", "corruptions", "scenarios", "certificates"),
        CONTRIBUTES,
    ),
    Clause(
        "Art. 15(2)",
        NONE,
        "The Commission encourages benchmarks and ways to measure accuracy and robustness.",
        "It is addressed to the Commission, and asks nothing of a provider.",
    ),
    Clause(
        "Art. 15(3)",
        MANAGEMENT,
        "The instructions for use declare the level of accuracy and the metrics it was measured in.",
        "The declaration itself; metrics that the purpose calls for beside the share of right answers.",
        "The share of clean inputs that is answered rightly, with its interval.",
        ("accuracy",),
        CONTRIBUTES,
    ),
    Clause(
        "Art. 15(4)",
        DEVELOPER,
        "The system withstands errors, faults and inconsistencies within it or around it, by technical and "
        "organisational measures such as redundancy; systems that go on learning keep bias from feeding back.",
        "Faults of the system itself, people and other systems that it interacts with, redundancy, feedback loops.",
        "How models fare when something other than an attack changes their inputs: {}.",
        ("corruptions", "scenarios"),
        CONTRIBUTES,
    ),
    Clause(
        "Art. 15(5)",
        DEVELOPER,
        "The system withstands attempts by third parties to change its use, outputs or performance; measures prevent, "
        "detect, answer and control attacks: poisoned data, poisoned models, adversarial examples and evasion, "
        "attacks on confidentiality, flaws of the model.",
        "Poisoning of data and models, attacks on confidentiality, flaws of the model; how attacks are prevented and "
        "answered in operation; attacks that were not tried.",
        "Of adversarial examples and model evasion: {}.",
        ("success", "damage", "detection", "survival", "certificates"),
        CONTRIBUTES,
    ),
)

_NIST = (
    Clause(
        "MEASURE 2.1",
        DATA,
        "Test sets, metrics and the tools of testing are documented.",
        "How the test set came about, and whether it stands for the deployment.",
        "Documented in this pack: {}.",
        ("study", "provenance"),
        CONTRIBUTES,
    ),
    Clause(
        "MEASURE 2.2",
        DATA,
        "Evaluations with human subjects meet the rules that protect them; the subjects stand for the population.",
        "The rules that applied, consent, and whom the people stand for.",
    ),
    Clause(
        "MEASURE 2.3",
        OPERATOR,
        "Performance or assurance criteria are measured and shown for conditions like those of the deployment.",
        "That samples, corruptions and scenarios are like the deployment.",
        "Measured in the conditions that were tried: {}.",
        ("accuracy", "corruptions", "scenarios", "damage"),
        CONTRIBUTES,
    ),
    Clause(
        "MEASURE 2.4",
        OPERATOR,
        "The system and its components are monitored in production.",
        "Monitoring. A run is a test before it.",
    ),
    Clause(
        "MEASURE 2.5",
        OPERATOR,
        "The system is shown to be valid and reliable; how far this generalises is documented.",
        "Validity for the purpose; conditions that were not tried.",
        "With intervals: {}.",
        ("accuracy", "corruptions", "groups"),
        CONTRIBUTES,
    ),
    Clause(
        "MEASURE 2.6",
        MANAGEMENT,
        "Safety is evaluated regularly: what risk remains is within the tolerance, and the system fails safely.",
        "The tolerance, the consequences of a wrong answer, safe failure, monitoring and response times, repetition.",
        "Of one hazard, perturbed inputs: {}.",
        ("success", "damage", "scenarios", "certificates"),
        CONTRIBUTES,
    ),
    Clause(
        "MEASURE 2.7",
        DEVELOPER,
        "Security and resilience are evaluated and documented.",
        "Security of data, software and access; attacks other than perturbed inputs.",
        "Resilience of the models against perturbed inputs: {}.",
        ("success", "damage", "detection", "people", "survival", "certificates"),
        CONTRIBUTES,
    ),
    Clause(
        "MEASURE 2.8",
        MANAGEMENT,
        "Risks to transparency and accountability are examined and documented.",
        "An examination of who answers for what, and what users are told.",
    ),
    Clause(
        "MEASURE 2.9",
        DEVELOPER,
        "The model is explained and validated, and its output is interpreted in context.",
        "Explanations of answers. A run tells that they are wrong, not why they were given.",
    ),
    Clause(
        "MEASURE 2.10",
        DEVELOPER,
        "Risks to privacy are examined and documented.",
        "Attacks on privacy, such as membership inference. None is carried out.",
    ),
    Clause(
        "MEASURE 2.11",
        DATA,
        "Fairness and bias are evaluated, and the results documented.",
        "Which groups matter, and other kinds of bias than unlike risks of a wrong answer.",
        "The risk by the groups (strata) that the samples carry.",
        ("groups",),
        CONTRIBUTES,
    ),
    Clause(
        "MEASURE 2.12",
        OPERATOR,
        "Environmental impact and sustainability of training and operation are assessed and documented.",
        "Energy, water and emissions, in operation above all. None is measured.",
        "Computation, as far as it was recorded: seconds and passes.",
        ("compute",),
        CONTRIBUTES,
    ),
    Clause(
        "MEASURE 2.13",
        ASSESSOR,
        "It is evaluated how well the metrics and procedures of testing work.",
        "A judgement by people who did not make the tests.",
        "Reasons not to trust attacks (flags), rows without a verdict and, of several attacks, how near each comes to "
        "the best.",
        ("trust",),
        CONTRIBUTES,
    ),
)

_ISO_1 = (
    Clause(
        "Clause 4",
        MANAGEMENT,
        "Overview: what robustness of a neural network means, and the steps of its assessment.",
        "Goals that follow from the application.",
        "The steps as they were taken: {}.",
        ("study", "provenance"),
        CONTRIBUTES,
    ),
    Clause(
        "Clause 5",
        DATA,
        "Statistical methods: robustness measured by metrics on test data.",
        "Data that stand for the application.",
        "Metrics on test data, each with an interval: {}.",
        ("accuracy", "success", "damage", "corruptions", "scenarios", "certificates"),
        ANSWERS,
        ("accuracy", "success"),
    ),
    Clause(
        "Clause 6",
        DEVELOPER,
        "Formal methods: properties that are proven for all inputs of a domain.",
        "A proof. A certificate of advrisk is a statistical statement about frozen attacks, and proves nothing about "
        "inputs or attacks that were not tried.",
    ),
    Clause(
        "Clause 7",
        OPERATOR,
        "Empirical methods: trials in the field, judgement after the fact, and benchmarks.",
        "Trials in the field, and judgement by experts.",
        "The compared models on the same samples, under the same attacks.",
        ("comparison",),
        CONTRIBUTES,
    ),
    Clause(
        "Annex A",
        DEVELOPER,
        "Ways to perturb data.",
        "Perturbations that were not tried.",
        "Perturbations of this run: {}.",
        ("corruptions", "success"),
        CONTRIBUTES,
    ),
)

_ISO_2 = (
    Clause(
        "5.2",
        OPERATOR,
        "The domain: the set of inputs for which a property is to hold is stated.",
        "A domain of the application as a whole, not around single samples.",
        "Domains around each sample, of a norm and a size (eps): {}.",
        ("success", "certificates"),
        CONTRIBUTES,
    ),
    Clause(
        "5.3",
        DEVELOPER,
        "Stability: the answer stays the same over a domain.",
        "A proof for samples that resisted: attacks find counterexamples, and cannot rule them out.",
        "Counterexamples, which attacks found: {}.",
        ("success", "certificates"),
        CONTRIBUTES,
    ),
    Clause(
        "5.4",
        DEVELOPER,
        "Sensitivity: how much the output changes as the input does.",
        "A bound that is proven.",
        "Numbers about models at clean samples; their names stand beside them.",
        ("measures",),
        CONTRIBUTES,
    ),
    Clause(
        "5.5",
        DEVELOPER,
        "Relevance: which parts of an input decide the output.",
        "Attribution of answers to parts of inputs. None is computed.",
    ),
    Clause(
        "5.6",
        DEVELOPER,
        "Reachability: which states a network can lead to when it acts step by step.",
        "A model of an environment. Single inputs are assessed here.",
    ),
    Clause(
        "Clause 6",
        DEVELOPER,
        "Which formal methods suit which networks and data.",
        "A formal method. None is used.",
    ),
    Clause(
        "Clause 7",
        DEVELOPER,
        "Formal methods in the phases of the life cycle.",
        "A formal method. None is used.",
    ),
)

TEXTS: tuple[LegalText, ...] = (
    LegalText(
        "eu-ai-act-9",
        "EU AI Act, Article 9: risk management system",
        "Regulation (EU) 2024/1689, as published in the Official Journal on 12 July 2024",
        _AI_ACT_9,
    ),
    LegalText(
        "eu-ai-act-15",
        "EU AI Act, Article 15: accuracy, robustness and cybersecurity",
        "Regulation (EU) 2024/1689, as published in the Official Journal on 12 July 2024",
        _AI_ACT_15,
    ),
    LegalText(
        "nist-ai-rmf-measure-2",
        "NIST AI Risk Management Framework, MEASURE 2",
        "AI RMF 1.0, NIST AI 100-1, January 2023",
        _NIST,
    ),
    LegalText(
        "iso-iec-tr-24029-1",
        "ISO/IEC TR 24029-1: robustness of neural networks, overview",
        "First edition, 2021",
        _ISO_1,
    ),
    LegalText(
        "iso-iec-24029-2",
        "ISO/IEC 24029-2: robustness of neural networks, formal methods",
        "First edition, 2023",
        _ISO_2,
    ),
)


def every_clause() -> Iterator[tuple[LegalText, Clause]]:
    """All clauses, in order."""
    for text in TEXTS:
        for clause in text.clauses:
            yield text, clause

"""Verdicts for pipelines: as JUnit XML, which build servers show as tests, and as Markdown for a pull request."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from advrisk.assess.compare.records import Compared, RunComparison
from advrisk.assess.gate.records import GateResult, Held, Verdict
from advrisk.core.estimate import Estimate
from advrisk.core.names import counted, listed
from advrisk.core.numbers import level_text
from advrisk.render.marks import code, escaped

# What XML 1.0 cannot hold, however it is written.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKS: dict[Verdict, str] = {"pass": "✅", "fail": "❌", "undecided": "❔"}


@dataclass(frozen=True)
class Case:
    """One verdict, in words."""

    name: str
    verdict: Verdict
    word: str  # the verdict as it is called
    value: str
    reason: str
    beside: tuple[str, ...] = ()  # what would settle it, and what to know


@dataclass(frozen=True)
class Verdicts:
    """All of them, with a heading."""

    suite: str  # `advrisk.gate`, `advrisk.compare`
    heading: str
    verdict: Verdict
    cases: tuple[Case, ...]
    notes: tuple[str, ...] = ()


def gate_verdicts(found: GateResult) -> Verdicts:
    """The requirements of a gate."""
    return Verdicts(
        "advrisk.gate",
        f"Gate of {found.name}: {found.verdict} ({gate_counts(found)})",
        found.verdict,
        tuple(_of_requirement(one) for one in found.results),
        (_on_origin(found), *found.notes),
    )


def _on_origin(found: GateResult) -> str:
    own = sum(one.origin == "study" for one in found.results)
    return f"Requirements: {own} of the study, {len(found.results) - own} given beside it."


def gate_counts(found: GateResult) -> str:
    """`3 pass, 1 undecided`."""
    return ", ".join(f"{n} {verdict}" for verdict, n in found.counts.items() if n)


def gate_content(found: GateResult | None, reason: str) -> dict[str, Any]:
    """What the template shows of a gate."""
    return {"gate": None if found is None else gate_verdicts(found), "ungated": reason}


def comparison_verdicts(found: RunComparison) -> Verdicts:
    """The numbers of a new run beside those of an old one."""
    return Verdicts(
        "advrisk.compare",
        f"{found.new} against {found.old}: {comparison_headline(found)}",
        found.verdict,
        tuple(_of_comparison(one) for one in found.results),
        (
            f"Paired on {counted(found.n_samples, 'sample')}; margin {found.margin_text}, level "
            f"{level_text(found.level)}. p is one-sided: the probability of so good a result if the new one were worse "
            "by the margin.",
            *found.notes,
        ),
    )


def comparison_headline(found: RunComparison) -> str:
    """In one sentence, without whom it is of."""
    margin = f" by more than {found.margin_text}" if found.margin else ""
    deciding = _named([one for one in found.results if one.verdict == found.verdict], found)
    return {
        "identical": "identical: the same model",
        "better": f"better in {_named(found.improved, found)}, and in nothing worse{margin}",
        "worse": f"worse{margin} in {deciding}",
        "undecided": f"undecided whether it is worse{margin} in {deciding}",
    }.get(found.word, f"{found.word}{margin}")


def _named(results: Sequence[Compared], found: RunComparison) -> str:
    """The numbers, with their models where several pairs were compared; what could not be compared comes last."""
    several = len({(one.old, one.new) for one in found.results}) > 1
    names = [
        f"{one.label if several else one.quantity}{' (not compared)' if one.worse_by is None else ''}"
        for one in sorted(results, key=lambda one: one.worse_by is None)
    ]
    return listed(names)


def _of_requirement(one: Held) -> Case:
    settle = (one.settle,) if one.settle else ()
    return Case(
        one.requirement,
        one.verdict,
        one.verdict,
        estimate_text(one.estimate),
        one.reason,
        (*settle, *one.cautions),
    )


def _of_comparison(one: Compared) -> Case:
    p = "" if one.p is None else f", p {one.p:.2g}" if one.p >= 0.0001 else ", p < 0.0001"
    value = (
        f"{estimate_text(one.old_value)} -> {estimate_text(one.new_value)}; worse by {estimate_text(one.worse_by)}{p}"
        if one.worse_by is not None
        else estimate_text(None)
    )
    settle = (one.settle,) if one.settle else ()
    return Case(one.label, one.verdict, one.word, value, one.reason, (*settle, *one.cautions))


def estimate_text(found: Estimate | None) -> str:
    """`0.046 [0.029, 0.068]`, a count, or yes and no."""
    if found is None:
        return "–"
    if found.method == "certificate":
        return "yes" if found.value else "no"
    if found.method == "count":
        return f"{found.value:,.0f}"
    return f"{found.value:.4g} [{found.low:.4g}, {found.high:.4g}]"


def junit_xml(found: Verdicts) -> str:
    """One test case for each verdict: a fail is a failure, and what is undecided an error.

    Build servers count skipped tests as good, and undecided is not good.
    """
    counts = {
        "tests": len(found.cases),
        "failures": sum(case.verdict == "fail" for case in found.cases),
        "errors": sum(case.verdict == "undecided" for case in found.cases),
    }
    totals = {name: str(n) for name, n in counts.items()} | {"time": "0"}
    root = ElementTree.Element("testsuites", {"name": "advrisk"} | totals)
    suite = ElementTree.SubElement(root, "testsuite", {"name": found.suite} | totals | {"skipped": "0"})
    for case in found.cases:
        _add_case(suite, found.suite, case)
    if found.notes:
        ElementTree.SubElement(suite, "system-out").text = _xml(f"{found.heading}\n" + "\n".join(found.notes))
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _add_case(suite: ElementTree.Element, class_name: str, case: Case) -> None:
    test = ElementTree.SubElement(suite, "testcase", {"classname": class_name, "name": _xml(case.name), "time": "0"})
    told = "\n".join([f"{case.name}: {case.word}", case.value, case.reason, *case.beside])
    if case.verdict == "pass":
        ElementTree.SubElement(test, "system-out").text = _xml(told)
        return
    kind = "failure" if case.verdict == "fail" else "error"
    message = f"{case.word}: {case.value}: {case.reason}"
    ElementTree.SubElement(test, kind, {"message": _xml(message), "type": case.word}).text = _xml(told)


def _xml(text: str) -> str:
    return _NOT_XML.sub("", text)


def verdicts_markdown(found: Verdicts) -> str:
    """A short summary for a pull request; names from outside are shown as they are, and mean nothing."""
    lines = [f"### {_MARKS[found.verdict]} {escaped(found.heading)}", ""]
    lines += ["| verdict | what | value |", "|---|---|---|"]
    lines += [
        f"| {_MARKS[case.verdict]} {case.word} | {code(case.name, cell=True)} | {escaped(case.value)} |"
        for case in found.cases
    ]
    open_ = [case for case in found.cases if case.verdict == "undecided"]
    lines += [""] if open_ else []
    for case in open_:
        lines.append(
            f"- {code(case.name)}: {escaped(case.reason)}" + (f"; {escaped(case.beside[0])}" if case.beside else "")
        )
    cautions = dict.fromkeys(text for case in found.cases if case.verdict == "pass" for text in case.beside)
    told = [*found.notes, *(f"Beside what passes: {text}." for text in cautions)]
    lines += ["", *(f"- {escaped(note)}" for note in told)] if told else []
    return "\n".join(lines) + "\n"

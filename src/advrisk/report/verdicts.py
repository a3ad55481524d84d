"""Verdicts for pipelines: as JUnit XML, which build servers show as tests, and as Markdown for a pull request."""

import re
from xml.etree import ElementTree

from advrisk.assess.gate.cases import Case, Verdicts
from advrisk.assess.gate.records import Verdict
from advrisk.render.markdown import code, escaped

# What XML 1.0 cannot hold, however it is written.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKS: dict[Verdict, str] = {"pass": "✅", "fail": "❌", "undecided": "❔"}


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

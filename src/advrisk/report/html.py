"""One self-contained HTML file: it opens offline, years from now, on any machine."""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advrisk.assess.attacks.black_box import Lead
from advrisk.assess.built_in import QUESTIONS
from advrisk.assess.damage.examples import nearest_examples
from advrisk.assess.protocol import Finding
from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate, limit_text
from advrisk.core.files import write_whole
from advrisk.core.flags import BLACK_BOX, FLAGS, SHARES, flagged_text
from advrisk.core.names import cut_words, matches, no_match
from advrisk.core.numbers import level_text, percent_text
from advrisk.core.palette import Plot, model_places
from advrisk.core.sections import Unanswered, slug
from advrisk.core.version import VERSION
from advrisk.ledger import EVALUATED_CELL, Ledger
from advrisk.ledger.layout import STUDY_FILE
from advrisk.render.page import page_figures, page_finding
from advrisk.report.certificates import certificate_content
from advrisk.report.detection import detection_content
from advrisk.report.executive import executive_summary
from advrisk.report.failures import failure_content, losses_text
from advrisk.report.figures import arm_heat_map
from advrisk.report.findings import Findings, or_why
from advrisk.report.indicator_figures import Bounds, loss_text
from advrisk.report.indicators import indicator_content
from advrisk.report.provenance import provenance
from advrisk.report.search import search_content
from advrisk.report.survival import number_text, survival_content
from advrisk.report.verdicts import gate_content
from advrisk.study import StudySpec
from advrisk.study.questions import title_of

if TYPE_CHECKING:
    from markupsafe import Markup

# Of a model that answers at random, the share of draws; what was not attacked is at its clean input. The means are
# taken in one order, or the last digit depends on how the work was shared.
_ARMS = """
    SELECT o.arm, o.model, avg(hit ORDER BY hit) FILTER (told) AS share,
           any_value(o.kind) AS kind, any_value(a.origin) AS origin, count(*) FILTER (told) AS n,
           count(*) FILTER (NOT told) AS errors, avg(o.n_forward + o.n_backward) FILTER (told) AS passes
    FROM (SELECT o.*, o.outcome NOT IN ('error', 'timeout') AS told,
                 CASE WHEN o.outcome = 'already_wrong' THEN coalesce(c.success_rate::DOUBLE, 1)
                      WHEN o.draws IS NOT NULL THEN o.success_rate::DOUBLE
                      ELSE (o.outcome = 'success')::DOUBLE END AS hit
          FROM outcomes o
          LEFT JOIN (SELECT model, sample, success_rate FROM outcomes WHERE kind = 'clean' AND draws IS NOT NULL) c
          ON o.model = c.model AND o.sample = c.sample) o
    JOIN samples s USING (sample) JOIN arms a USING (model, arm)
    WHERE s.split = 'evaluate' AND a.origin <> 'dropped'
    GROUP BY o.arm, o.model
    ORDER BY any_value(CASE o.kind WHEN 'clean' THEN 0 WHEN 'corruption' THEN 1 ELSE 2 END),
             any_value(o.family), any_value(o.norm), any_value(o.eps), o.arm, o.model
"""

_FLAGS = f"""
    SELECT flag, c.model, c.arm, count(*) AS n_flagged, any_value(n.n) AS n_cells,
           avg(seen ORDER BY seen) AS share -- in one order, or the last digit depends on how the work was shared
    FROM (SELECT *, CASE flag WHEN 'zero-gradients' THEN zero_gradients WHEN 'not-increasing' THEN not_increasing
                              WHEN 'still-gaining' THEN still_gaining WHEN 'no-start' THEN no_start END AS seen
          FROM (SELECT *, unnest(flags) AS flag FROM cells WHERE {EVALUATED_CELL})) c
    JOIN (SELECT model, arm, count(*) AS n FROM cells WHERE {EVALUATED_CELL} GROUP BY ALL) n
      ON c.model = n.model AND c.arm = n.arm
    GROUP BY ALL ORDER BY ALL
"""
MAX_FLAGS = 50
_LONG = 120  # characters of a name that is clipped
_FIGURES = (
    *("detection_figures", "indicator_figures", "lasts_figures", "search_figures"),
    *("certificate_figures", "arm_figures", "finding_figures"),
)


def write_report(folder: Path, ledger: Ledger, study: StudySpec | None, target: Path, found: Findings) -> Path:
    """Render everything the run holds into `target`."""
    return write_whole(target, report_page(folder, ledger, study, found), "the report")


def report_page(folder: Path, ledger: Ledger, study: StudySpec | None, found: Findings) -> str:
    """The whole page as text."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([PackageLoader("advrisk.report", "."), PackageLoader("advrisk.render", ".")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.filters |= {"clip": _clipped, "words": _with_short_words, "unbroken": _unbroken, "id": slug}
    environment.globals |= {"shares": _shares, "numbers": _numbers}
    environment.globals |= {
        "of_loss": _of_loss,
        "loss_text": loss_text,
        "losses_text": losses_text,
        "breaking": _breaking,
        "to_three": _to_three,
    }
    shown = page_content(folder, ledger, study, found)
    return environment.get_template("template.html").render(shown)


def page_content(folder: Path, ledger: Ledger, study: StudySpec | None, found: Findings) -> dict[str, Any]:
    """Everything that the template shows."""
    found = _illustrated(folder, ledger, found)
    places = model_places(ledger.query("SELECT model FROM models")["model"].to_pylist())
    shown = (
        content(folder, ledger, study, list(found.flags), found.arms)
        | detection_content(*or_why(found.detection))
        | indicator_content(*or_why(found.indicators), places=places, samples_left=found.samples_left)
        | failure_content(ledger.storage, found.failures)
        | survival_content(found.survival, places=places)
        | search_content(found.searches)
        | certificate_content(*or_why(found.certificates), places=places)
        | gate_content(*or_why(found.gate))
        | _findings_content(found)
    )
    return (
        shown
        | {
            "level_text": level_text,
            "view": found.view,
            "asked": found.asked,
            "executive": executive_summary(ledger, study, found),
            "provenance": provenance(folder, ledger, study, found),
            "sections": [(id_, title) for id_, title, there in _sections(shown) if there],
            "figures": {name: figure for key in _FIGURES for name, figure in shown[key].items()},
        }
        | _scripts()
    )


def _illustrated(folder: Path, ledger: Ledger, found: Findings) -> Findings:
    """With adversarial examples from the inputs that the run kept: only a page shows pictures."""
    if isinstance(found.damage, str):
        return found
    examples = tuple(nearest_examples(folder, ledger, found.damage.distances))
    return replace(found, damage=replace(found.damage, examples=examples))


def _findings_content(found: Findings) -> dict[str, Any]:
    """What the template shows of findings that have sections, or why there are none."""
    figures: dict[str, Plot] = {}
    for one in (*found.built_in.values(), *found.further.values()):
        figures |= {} if isinstance(one, Unanswered) else page_figures(one.name, one.sections)
    return {
        "built_in": {name: _page(name, QUESTIONS[name].title, one) for name, one in found.built_in.items()},
        "further": [_page(name, title_of(name), one) for name, one in found.further.items()],
        "finding_figures": figures,
    }


def _page(name: str, title: str, found: Finding | Unanswered) -> dict[str, Any]:
    return page_finding(name, title, found if isinstance(found, Unanswered) else found.sections)


def _sections(shown: dict[str, Any]) -> list[tuple[str, str, bool]]:
    """Anchor, title and whether it is there, in the order of the page."""
    built_in = [(one["anchor"], one["title"], True) for one in shown["built_in"].values()]
    return [
        ("gate", "Gate", bool(shown["gate"] or shown["ungated"])),
        *(one for one in built_in if one[0] != "attacks"),
        ("detectors", "Detectors", bool(shown["detection"] or shown["undetected"])),
        ("indicators", "Risk in your deployment", bool(shown["indicators"] or shown["unassessed"])),
        ("failures", "Failure modes", bool(shown["failures"])),
        ("survival", "How long it survives", bool(shown["lasts"] or shown["lasts_not"])),
        ("search", "Searches", bool(shown["searches"])),
        ("certificates", "Certificates", bool(shown["certificates"] or shown["uncertified"])),
        *((one["anchor"], one["title"], True) for one in shown["further"]),
        ("arms", "Arm by arm", True),
        *(one for one in built_in if one[0] == "attacks"),
        ("health", "Can it be trusted", True),
        ("provenance", "Make it again", True),
    ]


def _scripts() -> dict[str, Any]:
    """The page's style and scripts; it runs none but these, whose digests it names."""
    from markupsafe import Markup

    own = {"plotly_script": _plotly_script(), "page_script": _own_file("page.js")}
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in own.values()]
    return {name: Markup(text) for name, text in own.items()} | {
        "page_style": Markup(_own_file("page.css")),
        "script_hashes": " ".join(f"'sha256-{found}'" for found in hashes),
    }


def content(
    folder: Path,
    ledger: Ledger,
    study: StudySpec | None,
    flags: list[dict[str, Any]],
    arms: Sequence[str] | None = None,
) -> dict[str, Any]:
    """What the template shows of any run."""
    models = ledger.query("SELECT model FROM models ORDER BY model")["model"].to_pylist()
    return {
        "name": study.name if study else folder.name,
        "version": VERSION,
        "arm_figures": {"arms": arm_heat_map(arm_shares(ledger, arms), models)},
        "outcomes": ledger.query(
            "SELECT outcome, count(*) AS n FROM outcomes JOIN samples USING (sample) WHERE split = 'evaluate' "
            "GROUP BY ALL ORDER BY n DESC, outcome"
        ).to_pylist(),
        "messages": ledger.query(
            "SELECT model, arm, outcome, message, count(*) AS n FROM outcomes WHERE outcome IN ('error', 'timeout') "
            "GROUP BY ALL ORDER BY n DESC, model, arm, outcome, message LIMIT 20"
        ).to_pylist(),
        "n_models": len(models),
        "flags": flags[:MAX_FLAGS],
        "flag_shares": SHARES,
        "flag_counts": {name: flagged_text([row for row in flags if row["flag"] == name]) for name in FLAGS},
        "n_more_flags": max(0, len(flags) - MAX_FLAGS),
        "meanings": {name: meaning for name, meaning in FLAGS.items() if any(row["flag"] == name for row in flags)},
        "study_text": _study_text(folder),
    }


def flagged_arms(ledger: Ledger, leads: Sequence[Lead] = ()) -> list[dict[str, Any]]:
    """For each flag, model and arm: how many cells are flagged, and the mean share seen in them, if there is one.

    A black-box arm that did better than arms with gradients (`leads`) did so in all its cells together.
    """
    rows: list[dict[str, Any]] = ledger.query(_FLAGS).to_pylist()
    cells = ledger.query(f"SELECT model, arm, count(*) AS n FROM cells WHERE {EVALUATED_CELL} GROUP BY ALL").to_pylist()
    n_cells = {(row["model"], row["arm"]): row["n"] for row in cells}
    for lead in leads:
        n = n_cells[lead.model, lead.arm]
        named = {"flag": BLACK_BOX, "model": lead.model, "arm": lead.arm}
        rows.append(named | {"n_flagged": n, "n_cells": n, "share": lead.share})
    return rows


def arm_shares(ledger: Ledger, arms: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """For each arm and model: the share of samples left wrong, rows with a verdict, and passes per sample.

    Of a model that answers at random it is the share of queries. Of all arms, or those of these names or patterns.
    """
    rows: list[dict[str, Any]] = ledger.query(_ARMS).to_pylist()
    for pattern in arms or ():
        if complaint := no_match(pattern, {row["arm"] for row in rows}):
            raise RiskError(complaint)
    return [row for row in rows if arms is None or matches(row["arm"], arms)]


def _study_text(folder: Path) -> str:
    path = folder / STUDY_FILE
    if not path.is_file():
        return ""
    lines = path.read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not line.startswith("#"))


def _own_file(name: str) -> str:
    return (files("advrisk.report") / name).read_text(encoding="utf-8")


def _plotly_script() -> str:
    return (files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")


def _shares(estimate: Estimate | None) -> "Markup | str":
    if estimate is None:
        return "–"
    return _stacked(percent_text(estimate.value, 1), f"[{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]")


def _numbers(estimate: Estimate | None) -> "Markup | str":
    if estimate is None:
        return "–"
    return _stacked(f"{estimate.value:.3f}", f"[{limit_text(estimate.low)}, {limit_text(estimate.high)}]")


def _of_loss(estimate: Estimate | None, bounds: Bounds) -> "Markup | str":
    """A risk in the unit of its loss."""
    if estimate is None:
        return "–"
    value, low, high = (loss_text(number, bounds) for number in (estimate.value, estimate.low, estimate.high))
    return _stacked(value, f"[{low.removesuffix(' %')}, {high.removesuffix(' %')}]")


def _to_three(estimate: Estimate | None) -> "Markup | str":
    """A number of any size, to three digits."""
    if estimate is None:
        return "–"
    return _stacked(number_text(estimate.value), f"[{number_text(estimate.low)}, {number_text(estimate.high)}]")


def _clipped(name: object) -> "Markup | str":
    """A name of which a long one takes little room, and can be scrolled."""
    from markupsafe import Markup

    text = str(name)
    return text if len(text) <= _LONG else Markup('<span class="clip" tabindex="0">{}</span>').format(text)


def _with_short_words(sentence: object) -> str:
    """A sentence in which no name is longer than what is clipped elsewhere."""
    return cut_words(str(sentence), _LONG)


def _unbroken(sentence: object) -> str:
    """A sentence whose numbers stay beside their units and signs."""
    return str(sentence).replace(" %", "\u00a0%").replace(" points", "\u00a0points").replace(">= ", ">=\u00a0")


def _breaking(name: str) -> "Markup":
    """A name that may be broken after its commas, and is copied as it is."""
    from markupsafe import Markup, escape

    return escape(name).replace(",", Markup(",<wbr>"))


def _stacked(value: str, interval: str) -> "Markup":
    from markupsafe import Markup

    return Markup('{}<span class="interval">{}</span>').format(value, interval)

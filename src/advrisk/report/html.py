"""One self-contained HTML file: it opens offline, years from now, on any machine."""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advrisk.assess.findings import Findings
from advrisk.assess.protocol import Finding, illustrated
from advrisk.core.errors import RiskError
from advrisk.core.files import write_whole
from advrisk.core.flags import FLAGS, SHARES, flagged_text
from advrisk.core.names import counted, cut_words, matches, no_match, one_line
from advrisk.core.sections import Unanswered, slug
from advrisk.core.version import VERSION
from advrisk.ledger import Ledger
from advrisk.ledger.layout import STUDY_FILE
from advrisk.render.page import page_figures, page_finding, page_parts
from advrisk.report.executive import executive_summary
from advrisk.report.figures import arm_heat_map
from advrisk.report.front import first_screen
from advrisk.report.glossary import size_pictures, terms_in
from advrisk.report.provenance import provenance
from advrisk.study import StudySpec
from advrisk.study.registered import question_of, title_of

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

MAX_FLAGS = 50
_TILES = 4  # side by side
_LONG = 120  # characters of a name that is clipped


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
    environment.filters |= {
        "clip": _clipped,
        "words": _with_short_words,
        "unbroken": _unbroken,
        "id": slug,
        "across": _across,
    }
    shown = page_content(folder, ledger, study, found)
    return environment.get_template("template.html").render(shown)


def page_content(folder: Path, ledger: Ledger, study: StudySpec | None, found: Findings) -> dict[str, Any]:
    """Everything that the template shows."""
    found = with_pictures(folder, ledger, found)
    shown = content(folder, ledger, study, list(found.flags), found.arms)
    executive = executive_summary(ledger, study, found)
    for name, one in found.answers.items():
        sections = one if isinstance(one, Unanswered) else one.sections
        shown["findings"].append(page_finding(name, title_of(name), sections, question=question_of(name)))
        shown["figures"] |= {} if isinstance(sections, Unanswered) else page_figures(name, sections)
    first = first_screen(found, executive)
    shown["sections"] = [
        ("summary", "The answer"),
        ("reasons", "Executive summary"),
        *((one["anchor"], one["title"]) for one in shown["findings"]),
        ("arms", "Arm by arm"),
        ("health", "Can it be trusted"),
        ("provenance", "Make it again"),
        ("glossary", "Glossary"),
    ]
    shown |= {"view": found.view, "asked": found.asked, "executive": executive, "first": first}
    shown |= {"provenance": provenance(folder, ledger, study, found)} | _scripts()
    return shown | _glossary(folder, ledger, shown, first.size)


def _glossary(folder: Path, ledger: Ledger, shown: dict[str, Any], size: tuple[str, float] | None) -> dict[str, Any]:
    """The terms that the page uses, and what a stated size looks like."""
    used = repr([shown["findings"], shown["first"], shown["executive"].parts()])
    pictures = size_pictures(folder, ledger, *size) if size else None
    return {
        "terms": terms_in(used),
        "size_norm": size[0] if size else "",
        "size_pictures": page_parts("glossary", [pictures]) if pictures else [],
    }


def with_pictures(folder: Path, ledger: Ledger, found: Findings) -> Findings:
    """With pictures from the inputs that the run kept: only a page shows them."""
    answers = {
        name: illustrated(one, folder, ledger, found.models) if isinstance(one, Finding) else one
        for name, one in found.answers.items()
    }
    return replace(found, answers=answers)


def _scripts() -> dict[str, Any]:
    """The page's style and scripts; it runs none but these, whose digests it names."""
    from markupsafe import Markup

    own = {"charts_script": _own_file("charts.js"), "page_script": _own_file("page.js")}
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
        "findings": [],
        "figures": {"arms": arm_heat_map(arm_shares(ledger, arms), models)},
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
        "health": health_sentence(ledger, flags),
        "study_text": _study_text(folder),
    }


def health_sentence(ledger: Ledger, flags: Sequence[dict[str, Any]]) -> str:
    """Flags and failed rows in one sentence."""
    (failed,) = ledger.query("SELECT count(*) AS n FROM outcomes WHERE outcome IN ('error', 'timeout')")[
        "n"
    ].to_pylist()
    flagged = f"{flagged_text(flags)} flagged" if flags else "No cell was flagged"
    rows = counted(failed, "row") if failed else "no row"
    return f"{flagged}; {rows} ended in an error or a timeout."


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


def _clipped(name: object) -> "Markup | str":
    """A name of which a long one takes little room, and can be scrolled."""
    from markupsafe import Markup

    text = str(name)
    return text if len(text) <= _LONG else Markup('<span class="clip" tabindex="0">{}</span>').format(text)


def _across(tiles: Sequence[object]) -> int:
    """How many tiles stand side by side on a wide page: all of a few, else half."""
    return len(tiles) if len(tiles) <= _TILES else (len(tiles) + 1) // 2


def _with_short_words(sentence: object) -> str:
    """A sentence in which no name is longer than what is clipped elsewhere, or turns the direction of what follows."""
    return cut_words(one_line(str(sentence)), _LONG)


def _unbroken(sentence: object) -> str:
    """A sentence whose numbers stay beside their units and signs."""
    return str(sentence).replace(" %", "\u00a0%").replace(" points", "\u00a0points").replace(">= ", ">=\u00a0")

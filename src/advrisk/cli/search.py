"""Searches as text for a terminal, as CSV and as JSON."""

from typing import TYPE_CHECKING

from rich.console import Console

from advrisk.cli.lines import show_rows
from advrisk.core.errors import RiskError
from advrisk.core.names import did_you_mean
from advrisk.ledger.searches import SearchRecord
from advrisk.render.terminal import indented, new_table, plain_cells
from advrisk.report.search import ON_SEARCHES, search_words
from advrisk.report.search_figures import setting_text

if TYPE_CHECKING:
    from advrisk.api import Run

_SHOWN = 10  # settings of each search, the worst first


def show_searches(run: "Run", models: list[str] | None, *, out_csv: str | None, as_json: bool) -> None:
    """`advrisk show search RUN`: what every search tried and found."""
    found = run.searches()
    study = run.study
    if not found and study is not None and study.search:
        raise RiskError(
            "nothing is written down of this study's searches: they have not begun, or the folder `search` of the run "
            "is gone; run the same study again"
        )
    if not found:
        raise RiskError("this run holds no search; add a section `search` to the study and run it again")
    for model in models or ():
        if model not in {one.model for one in found}:
            known = {one.model for one in found}
            raise RiskError(f"no search was made against a model called {model!r}; {did_you_mean(model, known)}")
    found = [one for one in found if models is None or one.model in models]
    show_rows(
        lambda: [row for one in found for row in one.rows()],
        SearchRecord.columns,
        lambda: [one.as_dict() for one in found],
        lambda: print_searches(found),
        out_csv=out_csv,
        as_json=as_json,
    )


def print_searches(found: "list[SearchRecord]") -> None:
    """Each search with its worst settings."""
    console = Console()
    for one in found:
        console.print(one.label, style="bold", markup=False, highlight=False)
        indented(console, search_words(one), by=2)
        errors = ["errors"] if any(trial.n_errors for trial in one.trials) else []
        table = new_table("setting", "broken", "of", *errors, "round", "by", "frozen")
        for trial in sorted(one.trials, key=lambda trial: trial.order)[:_SHOWN]:
            seen = bool(trial.n or trial.n_errors)
            counts: list[object] = [trial.failures, trial.n] if seen else ["–", "not run yet"]
            counts += [trial.n_errors or ""] if errors else []
            cells = [setting_text(trial), *counts, trial.round, trial.by, "yes" if trial.frozen else ""]
            table.add_row(*plain_cells([str(cell) for cell in cells]))
        console.print(table)
        if len(one.trials) > _SHOWN:
            indented(
                console, f"The worst {_SHOWN} of {len(one.trials)} settings; --csv FILE and --json hold all.", by=2
            )
    indented(console, ON_SEARCHES, by=0)

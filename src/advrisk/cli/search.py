"""Searches as text for a terminal, as CSV and as JSON."""

from typing import TYPE_CHECKING

from advrisk.assess.search.sections import sections
from advrisk.cli.lines import show_rows
from advrisk.core.errors import RiskError
from advrisk.core.names import did_you_mean
from advrisk.ledger.searches import SearchRecord
from advrisk.render.terminal import print_sections

if TYPE_CHECKING:
    from advrisk.api import Run


def show_searches(
    run: "Run", models: list[str] | None, *, details: bool = False, out_csv: str | None = None, as_json: bool = False
) -> None:
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
        lambda: print_sections(sections(found), details=details),
        out_csv=out_csv,
        as_json=as_json,
    )

"""What searches tried on the tuning split, and how many samples each setting broke."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from advrisk.assess.context import Context
from advrisk.assess.protocol import Assessment
from advrisk.assess.search.sections import sections
from advrisk.core.errors import RiskError
from advrisk.core.names import did_you_mean
from advrisk.core.sections import Section, Unanswered
from advrisk.ledger.searches import SearchRecord, read_searches
from advrisk.study import assessments
from advrisk.study.assess import SearchesSpec


@assessments.register("search")
class Searches(Assessment):
    """The settings that each search tried, the worst first."""

    kind = SearchRecord
    several = True

    def assess(self, context: Context, spec: SearchesSpec) -> tuple[SearchRecord, ...] | Unanswered:
        """Those against the models that are asked about."""
        found = read_searches(context.ledger)
        if not found and context.study is not None and context.study.search:
            return Unanswered(
                "nothing is written down of this study's searches: they have not begun, or the folder `search` of the "
                "run is gone",
                "run the same study again",
            )
        if not found:
            return Unanswered("this run holds no search", "add a section `search` to the study and run it again")
        return tuple(searches_of(found, spec.models))

    def asked(self, context: Context) -> Mapping[str, Any] | None:
        """Where a search was written down."""
        return {} if read_searches(context.ledger) else None

    def sections(self, result: Sequence[SearchRecord], models: Sequence[str]) -> Iterable[Section]:
        """What the searches came to; of several, each one by itself is folded away."""
        return sections(result, models)


def searches_of(found: Sequence[SearchRecord], models: Sequence[str] | None) -> list[SearchRecord]:
    """Those against these models, or all."""
    known = {one.model for one in found}
    for model in models or ():
        if model not in known:
            raise RiskError(f"no search was made against a model called {model!r}; {did_you_mean(model, known)}")
    return [one for one in found if models is None or one.model in models]

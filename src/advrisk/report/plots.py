"""The figures of a report as plotly objects, to look at and to change in a notebook."""

from collections.abc import Mapping
from typing import Any

from advrisk.assess.findings import Findings
from advrisk.core.errors import RiskError
from advrisk.core.names import did_you_mean
from advrisk.core.palette import Plot
from advrisk.ledger import Ledger
from advrisk.render.page import page_figures
from advrisk.report.figures import arm_heat_map
from advrisk.report.html import arm_shares

_TEMPLATE = "plotly_white"  # readable in a light and in a dark notebook
_COLOURS = {"ink": "#2a3f5f", "paper": "#ffffff"}  # of text and page; the report puts its own there


def figure_specs(ledger: Ledger, found: Findings) -> dict[str, Plot]:
    """Every figure of the report by its name there, as plain dicts."""
    figures: dict[str, Plot] = {}
    models = [str(row["model"]) for row in ledger.query("SELECT model FROM models ORDER BY model").to_pylist()]
    for one in found.answered:
        figures |= page_figures(one.name, one.sections)
    figures["arms"] = arm_heat_map(arm_shares(ledger, found.arms), models)
    return figures


def plotly_figures(specs: Mapping[str, Plot]) -> dict[str, Any]:
    """The same as `plotly.graph_objects.Figure`s."""
    from plotly.graph_objects import Figure as Drawn

    return {name: Drawn(_coloured(spec)).update_layout(template=_TEMPLATE) for name, spec in specs.items()}


def named_spec(specs: Mapping[str, Plot], name: str) -> Plot:
    """One of them; an unknown name is answered with the nearest there is."""
    if name not in specs:
        raise RiskError(f"this run has no figure called {name!r}; {did_you_mean(name, specs)}")
    return specs[name]


def _coloured(value: Any, *, colour: bool = False) -> Any:
    """With colours in place of the words that stand for them."""
    if isinstance(value, Mapping):
        return {key: _coloured(held, colour=key == "color") for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_coloured(held, colour=colour) for held in value]
    return _COLOURS.get(value, value) if colour and isinstance(value, str) else value

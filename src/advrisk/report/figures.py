"""The heat map of arms and models as a plotly specification: plain dicts, drawn by the script of the report."""

from typing import Any

from advrisk.core.numbers import percent_text
from advrisk.core.palette import Plot, category_axis, heat_map_room, plain_label, upper_ticks


def arm_heat_map(rows: list[dict[str, Any]], models: list[str]) -> Plot:
    """The share of samples that each arm leaves wrong, for each model."""
    arms = list(dict.fromkeys(row["arm"] for row in rows))
    share = {(row["arm"], row["model"]): row["share"] for row in rows}
    grid = [[share.get((arm, model)) for model in models] for arm in arms]
    hover = [[f"{plain_label(arm)}<br>{plain_label(model)}" for model in models] for arm in arms]
    return {
        "data": [
            {
                "type": "heatmap",
                "x": models,
                "y": arms,
                "z": grid,
                "zmin": 0,
                "zmax": 1,
                "colorscale": "Cividis",
                "text": [["" if value is None else percent_text(value) for value in row] for row in grid],
                "texttemplate": "%{text}",
                "colorbar": {"title": {"text": "wrong"}, "tickformat": ".0%"},
                **heat_map_room(arms),
                "hovertext": hover,
                "hovertemplate": "%{hovertext}: %{text} wrong<extra></extra>",
            }
        ],
        "layout": {
            "xaxis": upper_ticks(models),
            "yaxis": {"autorange": "reversed", "automargin": True, **category_axis(arms)},
            "height": 120 + 26 * len(arms),
        },
    }

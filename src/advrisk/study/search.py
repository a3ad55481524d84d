"""A search for the settings with which an attack does most harm: one line of `search`."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from advrisk.core.numbers import parse_number
from advrisk.study.fields import NUMBER_SCHEMA, Keeps, Names, Norms, Number, Open, PositiveInt, Sizes, Strict

THEORY = "theory"  # the schedule of beta under which GP-UCB is proved to find the maximum
Method = Literal["gp-ucb", "grid", "random"]


class RangeSpec(Strict):
    """Between which values a parameter is searched, and whether by ratios."""

    low: Number
    high: Number
    log: bool | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.low < self.high:
            raise ValueError(f"the first must be less than the second, found {self.low:g} and {self.high:g}")
        if self.log and self.low <= 0:
            raise ValueError(f"ratios need a positive range, found one from {self.low:g}; remove `log`")
        return self


def _as_range(value: object) -> object:
    if isinstance(value, list):
        if len(value) != 2:
            raise ValueError(f"two numbers are needed, the least and the greatest value; found {value!r}")
        return {"low": value[0], "high": value[1]}
    if not isinstance(value, Mapping | RangeSpec):
        raise ValueError(f"two numbers are needed, the least and the greatest value; found {value!r}")
    return value


def _named_or_ranges(value: object) -> object:
    """A list of names stands for the ranges that the attack itself declares."""
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return dict.fromkeys(value)
    if not isinstance(value, Mapping):
        raise ValueError(f"a mapping of parameters to ranges is needed, as in {{sigma: [0.001, 0.1]}}; found {value!r}")
    return value


_RANGE_SCHEMA = {
    "anyOf": [
        {"type": "array", "items": NUMBER_SCHEMA, "minItems": 2, "maxItems": 2},
        {
            "type": "object",
            "properties": {"low": NUMBER_SCHEMA, "high": NUMBER_SCHEMA, "log": {"type": "boolean"}},
            "required": ["low", "high"],
        },
        {"type": "null"},
    ]
}
_OVER_SCHEMA = {
    "anyOf": [
        {"type": "object", "additionalProperties": _RANGE_SCHEMA, "minProperties": 1},
        {"type": "array", "items": {"type": "string"}, "minItems": 1},
    ]
}
Range = Annotated[RangeSpec, BeforeValidator(_as_range)]
Over = Annotated[
    dict[str, Range | None], BeforeValidator(_named_or_ranges), Field(min_length=1), WithJsonSchema(_OVER_SCHEMA)
]


def _beta(value: object) -> object:
    if value == THEORY:
        return value
    try:
        beta = parse_number(value)
    except ValueError:
        raise ValueError(f"a number or `{THEORY}` is needed, found {value!r}") from None
    if beta < 0:
        raise ValueError(f"a number of at least 0 or `{THEORY}` is needed, found {value!r}")
    return beta


Beta = Annotated[
    float | Literal["theory"],
    BeforeValidator(_beta),
    WithJsonSchema({"anyOf": [*NUMBER_SCHEMA["anyOf"], {"const": THEORY}]}),
]


class SearchEntry(Open):
    """One line of `search`: an attack as in `arms`, where lists make one search each, and what is varied in it.

    `over` gives the parameters and their ranges; those that the attack declares, if nothing is said. `freeze` of the
    worst settings are kept for the certificate. `race`: settings that cannot become one of these any more are dropped.
    """

    attack: Names
    norm: Norms | None = None
    eps: Sizes | None = None
    objective: Names | None = None
    keep: Keeps | None = None
    max_queries: PositiveInt | None = None
    repeats: Annotated[PositiveInt, Field(le=10_000)] = 1
    over: Over | None = None
    method: Method = "gp-ucb"
    rounds: Annotated[PositiveInt, Field(le=10_000)] = 50
    batch: Annotated[PositiveInt, Field(le=1000)] = 1
    beta: Beta = 0.1
    freeze: Annotated[PositiveInt, Field(le=1000)] = 1
    race: bool | None = None

    @model_validator(mode="after")
    def _beta_of_a_surrogate(self) -> Self:
        if self.method != "gp-ucb" and "beta" in self.model_fields_set:
            raise ValueError(f"found `beta`, which belongs to gp-ucb, beside `method: {self.method}`; remove it")
        return self

    def arm_keys(self) -> dict[str, Any]:
        """What of this is the attack's, as a line of `arms` has it."""
        of_search = {"over", "method", "rounds", "batch", "beta", "freeze", "race"}
        fields = {name: getattr(self, name) for name in self.model_fields_set & SearchEntry.model_fields.keys()}
        return {name: value for name, value in fields.items() if name not in of_search} | self.params

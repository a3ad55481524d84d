"""One entry of `search`: a search for the most harmful settings of an attack."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from advrisk.core.numbers import parse_number
from advrisk.study.fields import NUMBER_SCHEMA, Keeps, Names, Norms, Number, Open, PositiveInt, Sizes, Strict

THEORY = "theory"  # the schedule of beta with a proof that GP-UCB finds the maximum
Method = Literal["gp-ucb", "grid", "random"]


class RangeSpec(Strict):
    """The range of a searched parameter, and whether it is searched by ratios."""

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
            raise ValueError(f"must be two numbers, the least and the greatest value; found {value!r}")
        return {"low": value[0], "high": value[1]}
    if not isinstance(value, Mapping | RangeSpec):
        raise ValueError(f"must be two numbers, the least and the greatest value; found {value!r}")
    return value


def _named_or_ranges(value: object) -> object:
    """A mapping of parameters to ranges; a list of names means the ranges that the attack declares."""
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return dict.fromkeys(value)
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a mapping of parameters to ranges, as in {{sigma: [0.001, 0.1]}}; found {value!r}")
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
        raise ValueError(f"must be a number or `{THEORY}`, found {value!r}") from None
    if beta < 0:
        raise ValueError(f"must be a number of at least 0 or `{THEORY}`, found {value!r}")
    return beta


Beta = Annotated[
    float | Literal["theory"],
    BeforeValidator(_beta),
    WithJsonSchema({"anyOf": [*NUMBER_SCHEMA["anyOf"], {"const": THEORY}]}),
]


class SearchEntry(Open):
    """One entry of `search`: an attack as in `arms`, where lists make one search each, and its varied parameters.

    `over` has the parameters and their ranges; by default those that the attack declares. The certificate tests the
    `freeze` worst settings. `race` drops settings that can no longer become one of these.
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
            raise ValueError(f"found `beta`, which belongs to gp-ucb, with `method: {self.method}`; remove it")
        return self

    def arm_keys(self) -> dict[str, Any]:
        """The keys of the attack, as an entry of `arms`."""
        of_search = {"over", "method", "rounds", "batch", "beta", "freeze", "race"}
        fields = {name: getattr(self, name) for name in self.model_fields_set & SearchEntry.model_fields.keys()}
        return {name: value for name, value in fields.items() if name not in of_search} | self.params

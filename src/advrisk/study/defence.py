"""A defence as a study names it: which models it is put around, and how."""

from typing import Any

from pydantic import Field, model_validator

from advrisk.study.fields import Names, Open

# What the literature calls a defence, and is an option of training here.
TRAINED = {
    "gauss-in": "gauss-in is a training option: `advrisk train` with `{method: gaussian-noise, sigma: 0.1, share: 0.5}`"
    " trains the model, which then stands under `models`",
}


class DefenceSpec(Open):
    """A defence around models of the study: `of` names them, other keys are the defence's own parameters.

    With `surrogate` the defended models are not assessed: arms transfer from them. `tags` are added to those that the
    model inside, the defence and its parameters bring.
    """

    of: Names
    name: str
    surrogate: bool = False
    tags: dict[str, str | int | float | bool] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _whole(cls, value: Any) -> Any:
        """A complaint that says what to write, where the two keys are not there."""
        if isinstance(value, dict) and (missing := [key for key in ("of", "name") if key not in value]):
            raise ValueError(
                f"found no `{missing[0]}`; `of`, a model of this study, and `name`, a defence, are needed, as in "
                "{of: plain, name: feature-squeezing, bits: 4}"
            )
        return value

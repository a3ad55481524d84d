"""A defence as a study names it: which models it is put around, and how."""

from typing import Any

from pydantic import Field, model_validator

from advrisk.study.fields import Names, Open

# Defences of the literature that are options of training here.
TRAINED = {
    "gauss-in": "gauss-in is a training option: train a model by `advrisk train` with `{method: gaussian-noise, "
    "sigma: 0.1, share: 0.5}` and list it under `models`",
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
        """Refuse a missing key with a message that shows both."""
        if isinstance(value, dict) and (missing := [key for key in ("of", "name") if key not in value]):
            raise ValueError(
                f"found no `{missing[0]}`; set `of`, a model of this study, and `name`, a defence, as in "
                "{of: plain, name: feature-squeezing, bits: 4}"
            )
        return value

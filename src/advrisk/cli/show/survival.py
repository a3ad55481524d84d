"""`advrisk show survival`: its options are those of its spec, but for the machine."""

from typing import Annotated, Any

import typer

from advrisk.cli.show.generated import question_command
from advrisk.core.errors import StudyError

OfHardware = Annotated[
    str | None, typer.Option("--hardware", metavar="NAME=PRICE", help="A machine and its price per hour: one-gpu=2.5.")
]


def hardware_of(text: str | None) -> dict[str, Any] | None:
    """A machine and its price, as a study has it."""
    if text is None:
        return None
    name, _, price = text.rpartition("=")
    try:
        if not name.strip():
            raise ValueError
        return {"name": name.strip(), "per_hour": float(price)}
    except ValueError:
        raise StudyError(f"--hardware is NAME=PRICE, as in one-gpu=2.5; found {text!r}") from None


survival = question_command(
    "survival",
    """Show how long models survive, and what breaking them costs.

    Example: advrisk show survival runs/signs --covariate eps --measure gradient
    """,
    where=True,
    by_hand={"hardware": (OfHardware, hardware_of)},  # a mapping of two keys in one word
)

"""What to say where a detector's answers do not have the shape that an evasion curve assumes."""

from advrisk.risk.evasion import ShapeTest

MONOTONE_OPTION = "fit a curve that only falls (`--fit monotone`), whose intervals are wider and hold"
MONOTONE_LABELS = "write one that only falls (`--fit FILE --curve monotone`), whose intervals are wider and hold"
MONOTONE_OF_RUN = (
    "what is counted sample by sample assumes no shape, nor does `advrisk evasion RUN --detector NAME --fit monotone`"
)
NO_MONOTONE = "of forced choices there is no other fit; ask one picture at a time (`--design yes-no`)"


def shape_warning(found: ShapeTest | None, remedy: str = MONOTONE_OPTION, *, alpha: float = 0.05) -> str | None:
    """The doubt and its remedy; None where there is no doubt, or no shape is assumed."""
    if found is None or found.p_value > alpha:
        return None
    return (
        f"The answers do not have the shape that this curve assumes (p = {found.p_value:.2g}), so its intervals "
        f"and those of damage may be wrong; {remedy}."
    )


def shape_sentence(found: ShapeTest) -> str:
    """What the test says where it does not doubt the shape."""
    return f"Nothing in the answers speaks against the shape of the curve (p = {found.p_value:.2g})."

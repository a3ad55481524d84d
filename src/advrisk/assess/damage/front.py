"""Damage at first sight: a tile for each model, robust accuracy over the size, and adversarial examples."""

from collections.abc import Iterator

from advrisk.assess.damage.assessment import LEAST, DamageAssessment, ModelDamage
from advrisk.assess.damage.examples import Example, NearestSuccess
from advrisk.assess.damage.figures import robust_curves
from advrisk.assess.damage.words import share_name, shares_at, size_columns
from advrisk.core.names import cut
from advrisk.core.numbers import percent_text
from advrisk.core.palette import Places
from advrisk.core.sections import (
    Badge,
    Column,
    Figure,
    Front,
    Picture,
    Pictures,
    Section,
    Table,
    Text,
    Tile,
    Value,
    distinct_columns,
)
from advrisk.core.values import number_text
from advrisk.risk.decision import ahead_of

_SIZES = 3  # on a tile
_MODELS = 5  # beside the original
_NAME = 60  # characters of a name below a picture


def front(found: DamageAssessment, places: Places) -> Front:
    """What damage adds to the first screen."""
    tiles = tuple(Tile(row.model, tuple(_badges(row, found)), tuple(_facts(row, found))) for row in found.models)
    curves = robust_curves(found, places=places)
    name = share_name(found)
    shown: list[Section] = []
    if curves is not None:
        about = f"{name[0].upper()}{name[1:]} of each model against the size of the perturbation, with intervals."
        shown.append(Figure(f"{name[0].upper()}{name[1:]} by size", curves, about))
    if found.examples:
        shown.append(_first_example(found.examples[len(found.examples) // 2], found))
    return Front(tiles, tuple(shown), (found.distances.norm, found.thresholds[0]) if found.thresholds else None)


def _badges(row: ModelDamage, found: DamageAssessment) -> Iterator[Badge]:
    """The verdict, in short."""
    if row.verdict == LEAST:
        yield Badge(LEAST, "best")
    elif lower := ahead_of(row.model, found.pairs):
        yield Badge(f"more damage than {cut(lower[0], _NAME)}", "worst")
    elif found.pairs:
        yield Badge("undecided", "open")


def _facts(row: ModelDamage, found: DamageAssessment) -> Iterator[tuple[Column, Value]]:
    if row.damage is not None:
        yield Column("damage probability", "share"), row.damage
    for name, eps in list(size_columns(found).items())[:_SIZES]:
        yield Column(name, "share"), shares_at(row, found)[eps]
    yield Column("clean accuracy", "share"), row.clean_accuracy


# Adversarial examples


def example_sections(found: DamageAssessment) -> Iterator[Section]:
    """Samples that break easily first: pictures with the change beside them, or the columns that changed."""
    images = bool(found.examples[0].png)
    beside = "Beside it stands the change, amplified: gray means unchanged." if images else ""
    yield Text(
        (
            "The nearest adversarial example of each model, from samples that break easily (top) to hard ones. "
            + beside,
        ),
        how=True,
    )
    for one in found.examples:
        if not one.png:
            yield _changed_columns(one, found)
            continue
        original = Picture(one.png, f"original of {one.sample}", _below_original(one, found))
        attacked = (
            Picture(
                hit.with_change,
                f"adversarial example against {hit.model}, and the amplified change",
                f"{_read(hit, found)}; size {number_text(hit.distance, 'number')}, {cut(hit.arm, _NAME)}",
            )
            for hit in one.attacked
        )
        yield Pictures(f"{one.sample}: class {found.labels.class_name(one.label)}", (original, *attacked))


def _first_example(one: Example, found: DamageAssessment) -> Pictures | Table:
    """The original, and what was made of it against each model."""
    if not one.png:
        return _changed_columns(one, found, title="An adversarial example for each model")
    label = found.labels.class_name(one.label)
    original = Picture(one.png, f"original, class {label}", f"original\nclass {label}")
    norm, order = found.distances.norm, {row.model: place for place, row in enumerate(found.models)}
    attacked = (
        Picture(
            hit.png,
            f"adversarial example against {hit.model}",
            f"{cut(hit.model, _NAME)}\nreads {found.labels.class_name(hit.prediction)}, "
            f"{norm} {number_text(hit.distance, 'magnitude')}",
        )
        for hit in sorted(one.attacked, key=lambda hit: order[hit.model])[:_MODELS]
    )
    return Pictures("The smallest change that fools each model", (original, *attacked))


def _changed_columns(one: Example, found: DamageAssessment, title: str = "") -> Table:
    """The features that changed most: what they were, and what they became against each model."""
    before = {change.feature: change.before for hit in one.attacked for change in hit.changes}
    after = [{change.feature: change.after for change in hit.changes} for hit in one.attacked]
    reads = [f"{cut(hit.model, _NAME)}: reads {found.labels.class_name(hit.prediction)}" for hit in one.attacked]
    columns = distinct_columns(
        (
            Column("feature"),
            Column(f"original: class {found.labels.class_name(one.label)}", "precise"),
            *(Column(name, "precise") for name in reads),
        )
    )
    rows = tuple(
        (found.labels.feature_name(feature), value, *(held.get(feature) for held in after))
        for feature, value in before.items()
    )
    left = [
        f"{hit.model} {hit.n_changed - len(hit.changes)}" for hit in one.attacked if hit.n_changed > len(hit.changes)
    ]
    notes = (
        ["A dash: unchanged, or not among the features that changed most."] if any(None in row for row in rows) else []
    )
    notes += [f"Further features that changed: {', '.join(left)}."] if left else []
    return Table(f"{title or 'Changed features'}: {one.sample}", columns, rows, tuple(notes))


def _below_original(example: Example, found: DamageAssessment) -> str:
    others = (f"{cut(model, _NAME)}: {word}" for model, word in example.others.items())
    return "; ".join([f"original, class {found.labels.class_name(example.label)}", *others])


def _read(hit: NearestSuccess, found: DamageAssessment) -> str:
    sure = "" if hit.confidence is None else f", {percent_text(hit.confidence)} sure"
    return f"{cut(hit.model, _NAME)}: read as {found.labels.class_name(hit.prediction)}{sure}"

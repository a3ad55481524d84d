"""Which arms stand together, and which objectives are columns."""

from advrisk.risk.detection.groups import MULTI_ARMED, ScoredArm, arms_of, columns, grouped, named_group


def arm(family: str, norm: str | None = "linf", eps: float | None = 0.1, objective: str | None = None) -> ScoredArm:
    return ScoredArm(f"{family}-{norm}-{eps}-{objective}", family=family, norm=norm, eps=eps, objective=objective)


def test_a_size_is_a_group_and_so_is_a_family_that_has_none() -> None:
    """As in the paper: Carlini & Wagner in linf and Square are where their size is, DeepFool has a group of its own."""
    arms = [
        arm("spatial", None, None),
        arm("pgd", "linf", 0.3125, "ace"),
        arm("square", "linf", 0.3125, "margin"),
        arm("carlini-wagner", "linf", 0.3125),
        arm("deepfool", "l2", None),
        arm("hopskipjump", "l2", None),
        arm("pgd", "l2", 10, "ace"),
        arm("pgd", "l2", 2, "ace"),
        arm("adaptive", "l2", 2, "ace"),
    ]
    found = grouped(arms)
    assert [group.label for group in found] == [
        "l2 2",
        "l2 10",
        "l2 deepfool",
        "l2 hopskipjump",
        "linf 0.3125",
        "no norm",
    ]
    assert [group.arms for group in found] == [(7,), (6,), (4,), (5,), (1, 2, 3), (0,)]


def test_sizes_that_are_written_alike_are_one_group() -> None:
    (group,) = grouped([arm("pgd", eps=8 / 255), arm("square", eps=0.0313725)])
    assert (group.label, group.arms) == ("linf 8/255", (0, 1))
    for asked in ("linf 8/255", "linf-8/255", "LINF-0.0313725", "linf 0.0313725", "linf-0.03137250"):
        assert named_group([group], asked) is group
    for asked in ("linf 7/255", "l2-8/255", "linf", "average"):
        assert named_group([group], asked) is None


def test_groups_without_a_size_are_asked_for_by_their_label() -> None:
    groups = grouped([arm("spatial", None, None), arm("deepfool", "l2", None), arm("carlini-wagner", "l2", None)])
    for asked, label in (("no-norm", "no norm"), ("l2-deepfool", "l2 deepfool")):
        found = named_group(groups, asked)
        assert found is not None
        assert found.label == label
    found = named_group(groups, "l2 carlini-wagner")
    assert found is not None
    assert found.label == "l2 carlini-wagner"


def test_objectives_that_somebody_chose_are_columns() -> None:
    arms = [arm("pgd", objective="ace"), arm("pgd", objective="kl"), arm("square", objective="margin"), arm("boundary")]
    names = columns(arms)
    assert names == ("ace", "kl", MULTI_ARMED)
    (group,) = grouped(arms)
    assert arms_of("ace", group, arms, names) == (0, 2, 3), "Square's margin was nobody's choice"
    assert arms_of("kl", group, arms, names) == (1, 2, 3)
    assert arms_of(MULTI_ARMED, group, arms, names) == (0, 1, 2, 3)


def test_where_no_attack_has_several_objectives_each_is_a_column() -> None:
    arms = [arm("pgd", objective="ace"), arm("square", objective="margin"), arm("boundary")]
    names = columns(arms)
    assert names == ("ace", "margin", MULTI_ARMED)
    (group,) = grouped(arms)
    assert arms_of("margin", group, arms, names) == (1, 2)
    assert columns([arm("boundary")]) == (MULTI_ARMED,)


def test_repeats_are_told_apart_only_where_there_are_several() -> None:
    assert ScoredArm("pgd").label == "pgd"
    assert ScoredArm("pgd", repeat=1, repeated=True).label == "pgd #2"

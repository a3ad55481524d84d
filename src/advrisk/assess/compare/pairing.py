"""Which samples and arms two runs share, and what the arms found there.

Samples are the same where their content is: input and label, by its hash. Arms are the same where their names and
everything that configures them are, and of a transfer the model that its points were crafted on, too.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from advrisk.assess.damage.distances import DISTANCE
from advrisk.assess.gate.estimates import Flags
from advrisk.assess.gate.reading import assessed_models
from advrisk.core.errors import RiskError
from advrisk.core.names import counted, did_you_mean, matches, no_match
from advrisk.core.traits import TRANSFER
from advrisk.ledger import Ledger
from advrisk.risk.evasion import Floats
from advrisk.study import Norm

_SAMPLES = "SELECT sample, hash, weight FROM samples WHERE split = 'evaluate' ORDER BY sample"
_ARMS = """
    SELECT model, arm, kind, family, norm, eps, objective, keep, max_queries, version, repeats, params FROM arms
    WHERE origin IN ('study', 'import') AND kind IS DISTINCT FROM 'clean' AND model = $model ORDER BY arm
"""
_CRITERIA = "SELECT DISTINCT criterion::VARCHAR AS name FROM outcomes WHERE kind = 'attack' AND criterion IS NOT NULL"
_FOUND = f"""
    SELECT sample::VARCHAR AS sample,
           min({DISTANCE}) AS distance,
           count(*) AS n_rows,
           count(*) FILTER (outcome IN ('error', 'timeout')) AS n_failed,
           count(*) FILTER (outcome = 'success' AND ({DISTANCE}) IS NULL) AS n_unmeasured
    FROM outcomes WHERE model = $model AND arm IN (SELECT unnest($arms)) GROUP BY sample
"""
_KEPT = _FOUND.replace("coalesce(near_{norm}, d_{norm})", "d_{norm}")
_NOT_WALKED = "SELECT 1 FROM outcomes WHERE outcome = 'success' AND kind = 'attack' AND near_linf IS NULL LIMIT 1"
_SHOWN = 5  # arms that a note names


@dataclass(frozen=True)
class Pairing:
    """What two runs share."""

    samples: tuple[tuple[str, str], ...]  # the name in the old run and in the new one
    models: tuple[tuple[str, str], ...]
    arms: Mapping[tuple[str, str], tuple[dict[str, Any], ...]]  # (old model, new model) -> arms of both
    old_arms: Mapping[tuple[str, str], tuple[dict[str, Any], ...]]  # all of the old model
    new_arms: Mapping[tuple[str, str], tuple[dict[str, Any], ...]]
    notes: tuple[str, ...]
    kept_points: bool = False  # one run did not walk successes back, so distances are those of kept points in both


@dataclass(frozen=True, eq=False)
class PairedDistances:
    """The smallest distance at which the shared arms broke each sample that both runs hold."""

    old: Floats
    new: Floats
    told: Flags  # all arms gave a verdict in both runs

    @property
    def n_unknown(self) -> int:
        return int((~self.told).sum())


def paired_runs(old: Ledger, new: Ledger, models: Mapping[str, str] | None = None) -> Pairing:
    """What two runs share; those that share nothing, or count success differently, are refused."""
    _refuse_criteria(old, new)
    samples, notes = _shared_samples(old, new)
    pairs, left_out = _model_pairs(assessed_models(old), assessed_models(new), models)
    notes += left_out
    arms, of_old, of_new = {}, {}, {}
    for pair in pairs:
        of_old[pair], of_new[pair] = _arms(old, pair[0]), _arms(new, pair[1])
        arms[pair], told = _shared_arms(of_old[pair], of_new[pair])
        notes += [note for note in told if note not in notes]
    not_walked = [len(ledger.query(_NOT_WALKED)) > 0 for ledger in (old, new)]
    if not_walked[0] != not_walked[1]:
        which = "old" if not_walked[0] else "new"
        notes.append(f"The {which} run did not measure distances by walking back: those of kept points count in both.")
    return Pairing(tuple(samples), tuple(pairs), arms, of_old, of_new, tuple(notes), kept_points=any(not_walked))


def paired_distances(
    old: Ledger, new: Ledger, pairing: Pairing, pair: tuple[str, str], *, norm: Norm, arms: Sequence[dict[str, Any]]
) -> PairedDistances:
    """What these arms found on the shared samples, measured in the same way in both runs."""
    walked = not pairing.kept_points
    of_old = _found(old, pair[0], [one for one, _ in pairing.samples], norm, arms, walked=walked)
    of_new = _found(new, pair[1], [one for _, one in pairing.samples], norm, arms, walked=walked)
    return PairedDistances(of_old[0], of_new[0], of_old[1] & of_new[1])


def _found(
    ledger: Ledger, model: str, samples: Sequence[str], norm: Norm, arms: Sequence[dict[str, Any]], *, walked: bool
) -> tuple[Floats, Flags]:
    sql = (_FOUND if walked else _KEPT).format(norm=norm)
    rows = ledger.query(sql, {"model": model, "arms": [row["arm"] for row in arms]}).to_pylist()
    if unmeasured := [row for row in rows if row["n_unmeasured"]]:
        raise RiskError(
            f"{model}, sample {unmeasured[0]['sample']}: a success has no {norm} distance; compare in a norm in which "
            "distances were measured"
        )
    by_sample = {row["sample"]: row for row in rows}
    expected = sum(row["repeats"] or 1 for row in arms)
    distance, told = np.full(len(samples), np.inf), np.zeros(len(samples), np.bool_)
    for place, name in enumerate(samples):
        row = by_sample.get(name)
        if row is not None:
            distance[place] = np.inf if row["distance"] is None else row["distance"]
            told[place] = row["n_rows"] >= expected and not row["n_failed"]
    return distance, told


def _shared_samples(old: Ledger, new: Ledger) -> tuple[list[tuple[str, str]], list[str]]:
    """By content; by name where neither run knows any content, as of imported rows."""
    rows = [ledger.query(_SAMPLES).to_pylist() for ledger in (old, new)]
    for own in rows:
        if len({row["weight"] for row in own}) > 1:
            raise RiskError(
                "samples of different weight: these numbers count every sample alike, so it is refused here"
            )
    by_name = all(row["hash"] is None for own in rows for row in own)
    held = [_keys(own, by_name=by_name) for own in rows]
    shared = [(name, held[1][key]) for key, name in held[0].items() if key in held[1]]
    if not shared:
        raise RiskError(
            f"the two runs share no sample: {len(held[0])} in the old one, {len(held[1])} in the new one, and none of "
            "the same content; run both on the same data"
        )
    notes = (
        ["Neither run knows what its samples hold; those of the same name are taken for the same."] if by_name else []
    )
    rest = [len(own) - len(shared) for own in held]
    if any(rest):
        notes.append(f"Samples in one run only, and left out: {rest[0]} of the old one, {rest[1]} of the new one.")
    return shared, notes


def _keys(rows: Sequence[Mapping[str, Any]], *, by_name: bool) -> dict[tuple[str, int], str]:
    """Content (or name) and its number among samples of equal content -> sample."""
    seen: Counter[str] = Counter()
    found = {}
    for row in rows:
        key = row["sample"] if by_name else row["hash"]
        if key is not None:
            found[key, seen[key]] = str(row["sample"])
            seen[key] += 1
    return found


def _model_pairs(
    old: Sequence[str], new: Sequence[str], given: Mapping[str, str] | None
) -> tuple[list[tuple[str, str]], list[str]]:
    """Those that were named; else those of the same name; else the only one of each run."""
    if given:
        for name, known, which in [(name, old, "old") for name in given] + [
            (name, new, "new") for name in given.values()
        ]:
            if name not in known:
                raise RiskError(f"no model of the {which} run is called {name!r}; {did_you_mean(name, known)}")
        return list(given.items()), []
    same = [(name, name) for name in old if name in new]
    if same:
        others = sorted({*old, *new} - {name for name, _ in same})
        return same, [f"Models in one run only, and left out: {', '.join(others)}."] if others else []
    if len(old) == len(new) == 1:
        return [(old[0], new[0])], []
    raise RiskError(
        f"no model has the same name in both runs: {', '.join(old) or 'none'} in the old one, "
        f"{', '.join(new) or 'none'} in the new one; say which belong together (`--model OLD=NEW`)"
    )


def _shared_arms(
    old: Sequence[dict[str, Any]], new: Sequence[dict[str, Any]]
) -> tuple[tuple[dict[str, Any], ...], list[str]]:
    of_old, of_new = ({row["arm"]: row for row in rows} for rows in (old, new))
    shared = [row for name, row in of_new.items() if name in of_old and _same(row, of_old[name])]
    names = {row["arm"] for row in shared}
    notes = []
    for which, own in (("old", of_old), ("new", of_new)):
        other = of_new if which == "old" else of_old
        if alone := [name for name in own if name not in other]:
            notes.append(f"Arms in the {which} run only, and left out: {some_arms(alone)}.")
    if unlike := [name for name in of_new if name in of_old and name not in names]:
        notes.append(f"Arms that are configured otherwise in the new run, and left out: {some_arms(unlike)}.")
    return tuple(shared), notes


def _arms(ledger: Ledger, model: str) -> tuple[dict[str, Any], ...]:
    rows: list[dict[str, Any]] = ledger.query(_ARMS, {"model": model}).to_pylist()
    digests = {row["model"]: row["digest"] for row in ledger.query("SELECT model, digest FROM models").to_pylist()}
    for row in rows:
        params = json.loads(row["params"] or "{}")
        row["crafted_on"] = digests.get(str(params.get("from"))) if row["family"] == TRANSFER else None
    return tuple(rows)


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return {**one, "model": ""} == {**other, "model": ""}


def some_arms(names: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {counted(more, 'more arm')}" if more > 0 else "")


def _refuse_criteria(old: Ledger, new: Ledger) -> None:
    found = [sorted(ledger.query(_CRITERIA)["name"].to_pylist()) for ledger in (old, new)]
    if all(found) and found[0] != found[1]:
        raise RiskError(
            f"success means something else in the two runs: {' and '.join(found[0])} in the old one, "
            f"{' and '.join(found[1])} in the new one; run both with the same `success`"
        )


def chosen_attacks(arms: Sequence[dict[str, Any]], patterns: Sequence[str] | None) -> tuple[dict[str, Any], ...]:
    """Those of the shared arms that distances are taken from: attacks with a norm, or those that are named."""
    if patterns is None:
        return tuple(row for row in arms if row["kind"] == "attack" and row["norm"] is not None)
    return tuple(row for row in arms if matches(row["arm"], patterns))


def lost_attacks(
    arms: Sequence[dict[str, Any]],
    shared: Sequence[dict[str, Any]],
    chosen: Sequence[dict[str, Any]],
    patterns: Sequence[str] | None,
) -> list[str]:
    """Attacks of the old run that count there (`patterns`; all, if None) and that nothing is compared by."""
    both, used = ({row["arm"] for row in rows} for rows in (shared, chosen))
    if patterns is not None:
        return [row["arm"] for row in arms if matches(row["arm"], patterns) and row["arm"] not in used]
    attacks = [row for row in arms if row["kind"] == "attack"]
    return [row["arm"] for row in attacks if row["arm"] not in (both if row["norm"] is None else used)]


def refuse_unknown(pairing: Pairing, patterns: Sequence[str]) -> None:
    """Arms that neither run holds."""
    known = {row["arm"] for arms in (pairing.old_arms, pairing.new_arms) for rows in arms.values() for row in rows}
    for pattern in patterns:
        if complaint := no_match(pattern, known):
            raise RiskError(complaint)

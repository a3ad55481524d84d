"""`advrisk show damage`, `convergence` and `attacks`: what attacks do, and whether the numbers are settled."""

from advrisk.cli.options import (
    AsJson,
    Details,
    OfAnswers,
    OfArms,
    OfCost,
    OfCsv,
    OfDetector,
    OfEps,
    OfEvasion,
    OfFalseAlarms,
    OfModels,
    OfNorm,
    OfThreshold,
    OfWhere,
    RunFolder,
    damage_options,
)


def damage(
    folder: RunFolder,
    norm: OfNorm = None,
    arm: OfArms = None,
    eps: OfEps = None,
    evasion: OfEvasion = None,
    detector: OfDetector = None,
    threshold: OfThreshold = None,
    false_alarms: OfFalseAlarms = None,
    cost: OfCost = None,
    answers: OfAnswers = None,
    model: OfModels = None,
    where: OfWhere = None,
    details: Details = False,
    out_csv: OfCsv = None,
    as_json: AsJson = False,
) -> None:
    """Compare models by damage: successful, undetected attacks.

    Example: advrisk show damage runs/signs --evasion evasion.json --cost 25000
    """
    from advrisk.api import Run
    from advrisk.cli.findings import show_damage

    asked = damage_options(norm, arm, eps, evasion, detector, threshold, false_alarms)
    run = Run.open(folder).part(where=where).part(models=model)
    show_damage(run, asked, cost=cost, answers=answers, details=details, out_csv=out_csv, as_json=as_json)


def convergence(
    folder: RunFolder,
    norm: OfNorm = None,
    arm: OfArms = None,
    eps: OfEps = None,
    evasion: OfEvasion = None,
    detector: OfDetector = None,
    threshold: OfThreshold = None,
    false_alarms: OfFalseAlarms = None,
    model: OfModels = None,
    where: OfWhere = None,
    details: Details = False,
    out_csv: OfCsv = None,
    as_json: AsJson = False,
) -> None:
    """Show how damage settles as samples are added.

    Example: advrisk show convergence runs/signs --evasion evasion.json
    """
    from advrisk.api import Run
    from advrisk.cli.lines import show_finding

    asked = damage_options(norm, arm, eps, evasion, detector, threshold, false_alarms)
    run = Run.open(folder).part(where=where).part(models=model)
    found = run.convergence(**asked)
    show_finding(run, "convergence", found, details=details, out_csv=out_csv, as_json=as_json)


def attacks(
    folder: RunFolder,
    norm: OfNorm = None,
    arm: OfArms = None,
    model: OfModels = None,
    where: OfWhere = None,
    details: Details = False,
    out_csv: OfCsv = None,
    as_json: AsJson = False,
) -> None:
    """Rank attacks by how close they come, and name those to drop.

    Example: advrisk show attacks runs/signs --norm linf
    """
    from advrisk.api import Run
    from advrisk.cli.lines import show_finding

    run = Run.open(folder).part(where=where).part(models=model)
    found = run.attacks(norm=norm, arms=arm)
    show_finding(run, "attacks", found, details=details, out_csv=out_csv, as_json=as_json)

"""`advrisk show certificate` and `search`: what is certified, and the worst settings that a search tried."""

from advrisk.cli.certify import OfAlpha, OfZeta
from advrisk.cli.options import AsJson, Details, OfArms, OfCsv, OfModels, RunFolder


def search(
    folder: RunFolder,
    model: OfModels = None,
    details: Details = False,
    out_csv: OfCsv = None,
    as_json: AsJson = False,
) -> None:
    """List the settings that each search tried, the worst first.

    Example: advrisk show search runs/signs --model plain
    """
    from advrisk.api import Run
    from advrisk.cli.search import show_searches

    show_searches(Run.open(folder), model, details=details, out_csv=out_csv, as_json=as_json)


def certificate(
    folder: RunFolder,
    alpha: OfAlpha = None,
    zeta: OfZeta = None,
    arm: OfArms = None,
    model: OfModels = None,
    details: Details = False,
    out_csv: OfCsv = None,
    as_json: AsJson = False,
) -> None:
    """Say what is certified: attacks break at most alpha of inputs.

    `advrisk certify RUN` writes the same as documents.

    Example: advrisk show certificate runs/signs --alpha 0.1 --zeta 0.05
    """
    from advrisk.api import Run
    from advrisk.cli.lines import show_finding

    run = Run.open(folder)
    found = run.certificate(alpha=alpha, zeta=zeta, models=model, arms=arm)
    show_finding(run, "certificate", found, details=details, out_csv=out_csv, as_json=as_json)

"""`advrisk show arms` and `models`: what the ledger holds, a line for each."""

from advrisk.cli.options import AsJson, OfArms, OfModels, OfWhere, RunFolder


def arms(
    folder: RunFolder, arm: OfArms = None, model: OfModels = None, where: OfWhere = None, as_json: AsJson = False
) -> None:
    """List the arms: how many samples each broke, and at what cost.

    Example: advrisk show arms runs/signs --model plain
    """
    from advrisk.api import Run
    from advrisk.cli.findings import show_table
    from advrisk.cli.tables import arm_table

    run = Run.open(folder).part(where=where).part(models=model)
    show_table(run, run.arms(arms=arm), arm_table, as_json=as_json)


def models(folder: RunFolder, model: OfModels = None, as_json: AsJson = False) -> None:
    """List the models: digest, capability and training.

    Example: advrisk show models runs/signs
    """
    from advrisk.api import Run
    from advrisk.cli.findings import show_table
    from advrisk.cli.tables import model_table

    run = Run.open(folder).part(models=model)
    show_table(run, run.models(), model_table, as_json=as_json)

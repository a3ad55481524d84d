"""`advrisk show RUN`."""

from advrisk.cli.options import AsJson, OfModels, OfWhere, RunFolder


def summary(folder: RunFolder, model: OfModels = None, where: OfWhere = None, as_json: AsJson = False) -> None:
    """Print the headlines, the decision table and where to read on.

    This is what `advrisk show RUN` does; --json prints every number, as `advrisk report RUN --json` writes it.

    Example: advrisk show summary runs/signs --where class=3
    """
    from advrisk.api import Run
    from advrisk.cli.summary import show_summary

    run = Run.open(folder).part(models=model, where=where)
    show_summary(run, folder, {"--model": model or (), "--where": where or ()}, as_json=as_json)

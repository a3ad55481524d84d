"""`advrisk show damage`, `convergence` and `attacks`: what attacks do, and whether the numbers are settled.

Their options are those of a part of a run, which findings and reports of it follow, too (`of_part`).
"""

from typing import TYPE_CHECKING

from advrisk.cli.options import AsJson, Details, OfCsv, of_part

if TYPE_CHECKING:
    from advrisk.api import Run


@of_part()
def damage(run: "Run", details: Details = False, out_csv: OfCsv = None, as_json: AsJson = False) -> None:
    """Compare models by damage: successful, undetected attacks.

    Example: advrisk show damage runs/signs --evasion evasion.json --cost 25000
    """
    from advrisk.cli.findings import show_damage

    show_damage(run, details=details, out_csv=out_csv, as_json=as_json)


@of_part("cost", "answers")
def convergence(run: "Run", details: Details = False, out_csv: OfCsv = None, as_json: AsJson = False) -> None:
    """Show how damage settles as samples are added.

    Example: advrisk show convergence runs/signs --evasion evasion.json
    """
    from advrisk.cli.lines import show_finding

    show_finding(run, "convergence", run.convergence(), details=details, out_csv=out_csv, as_json=as_json)


@of_part("eps", "evasion", "detector", "threshold", "false_alarms", "cost", "answers")
def attacks(run: "Run", details: Details = False, out_csv: OfCsv = None, as_json: AsJson = False) -> None:
    """Rank attacks by how close they come, and name those to drop.

    Example: advrisk show attacks runs/signs --norm linf
    """
    from advrisk.cli.lines import show_finding

    show_finding(run, "attacks", run.attacks(), details=details, out_csv=out_csv, as_json=as_json)

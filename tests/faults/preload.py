"""All that a command imports, imported once: processes of the harness are copies of one that has done so.

Nothing is carried out here: torch's and DuckDB's threads would not survive the copying.
"""

import importlib
import pkgutil

import advrisk.api
import advrisk.cli
import advrisk.ledger
import advrisk.report
import advrisk.risk
import advrisk.run

for package in (advrisk.api, advrisk.cli, advrisk.ledger, advrisk.report, advrisk.risk, advrisk.run):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
for name in (
    "duckdb",
    "jinja2",
    "plotly.graph_objects",
    "scipy.stats",
    "scipy.optimize",
    "scipy.special",
    "xarray",
    "rich.console",
):
    importlib.import_module(name)

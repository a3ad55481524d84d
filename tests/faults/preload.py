"""What a run imports, imported once: processes of the harness are copies of one that has done so.

Nothing is carried out here: torch's and DuckDB's threads would not survive the copying.
"""

import importlib
import pkgutil

import advrisk.api
import advrisk.cli.app
import advrisk.cli.progress
import advrisk.ledger
import advrisk.run.campaign
import advrisk.run.executors.worker

for module in pkgutil.walk_packages(advrisk.ledger.__path__, "advrisk.ledger."):
    importlib.import_module(module.name)
for name in ("duckdb", "rich.console", "torch.nn.functional"):
    importlib.import_module(name)

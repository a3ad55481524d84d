"""Run: python -m tests.fuzz [LOADER ...] [-n FILES] [--seed SEED]"""

import argparse
import sys

from tests.fuzz.campaign import fuzz
from tests.fuzz.loaders import LOADERS, n_files


def main() -> int:
    """Print a line for each loader, and its faults; 1 if there is any."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("loader", nargs="*", choices=[*LOADERS, []], help="all, if none is named")
    parser.add_argument("-n", type=int, help="files for each loader (10,000; 1,000 where each takes long)")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    n_faults = 0
    for name in asked.loader or LOADERS:
        tally = fuzz(name, asked.n or n_files(name), seed=asked.seed)
        print(tally, flush=True)
        for place, what in tally.faults:
            print(f"    {name} {place}: {what}", flush=True)
        n_faults += len(tally.faults)
    return 1 if n_faults else 0


if __name__ == "__main__":
    sys.exit(main())

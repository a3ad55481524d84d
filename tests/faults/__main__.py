"""Run: python -m tests.faults [KIND ...] [-n FAULTS] [--seed SEED]"""

import argparse
import sys

from tests.faults.campaign import inject, prepared
from tests.faults.kinds import KINDS
from tests.faults.numbers import LEAST, TRIALS


def main() -> int:
    """Print a row for each kind of fault, and what was not as it should be; 1 if there was anything."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("kind", nargs="*", choices=[*KINDS, []], help="all, if none is named")
    parser.add_argument("-n", type=int, help="faults of each kind; by default as many as `make slow` makes")
    parser.add_argument("--first", type=int, default=0, help="the number of the first trial")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    n_faults = n_bugs = 0
    left_out = []
    print("| fault | injected | what came of it | complete and equal after it |\n|---|---|---|---|", flush=True)
    with prepared() as ground:
        for name in asked.kind or KINDS:
            tally = inject(name, asked.n or TRIALS[name], ground, seed=asked.seed, first=asked.first)
            print(tally, flush=True)
            for number, what in tally.bugs:
                print(f"    {name} {number}: {what}", file=sys.stderr, flush=True)
            left_out += [f"{name}: {tally.skipped}"] if tally.skipped else []
            took = f"{tally.wall_s:.0f} s, {tally.cpu_s:.0f} s of CPU, {tally.n_missed} missed"
            print(f"    {name}: {took}", file=sys.stderr, flush=True)
            n_faults, n_bugs = n_faults + tally.n, n_bugs + len(tally.bugs)
    print(f"| all | {n_faults} | | {n_faults - n_bugs} |")
    for what in left_out:
        print(f"NOT INJECTED: {what}", file=sys.stderr)
    too_few = n_faults < LEAST and not asked.kind and not asked.n
    if too_few:
        print(f"only {n_faults} faults were injected, and {LEAST} are the least", file=sys.stderr)
    return 1 if n_bugs or too_few else 0


if __name__ == "__main__":
    sys.exit(main())

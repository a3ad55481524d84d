"""How long the program takes to start, beside a bare Python."""

import subprocess
import sys
from functools import partial

from bench.timing import best_of


def main(*, tiny: bool = False) -> None:
    """Print seconds of a bare interpreter, of `import advrisk` and of `advrisk --help`."""
    times = 1 if tiny else 5
    bare = best_of(times, partial(_python, "-c", "pass"))
    for limit, words in ((0.3, ("-c", "import advrisk")), (0.5, ("-m", "advrisk", "--help"))):
        seconds = best_of(times, partial(_python, *words))
        print(f"{' '.join(words):28} {seconds:.3f} s ({seconds / bare:.1f} x bare python); limit {limit} s")


def _python(*words: str) -> None:
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()

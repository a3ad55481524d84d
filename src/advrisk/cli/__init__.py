"""The command line: parse arguments, print; nothing else.

Exit codes: 0 done, 1 gate failed, 2 the user's mistake, 3 done with error rows, 4 undecided,
130 interrupted.
"""

import sys

from advrisk.core.errors import AdvriskError

DONE, MISTAKE, ERROR_ROWS, UNDECIDED, INTERRUPTED = 0, 2, 3, 4, 130


def main() -> None:
    """Entry point: errors that the user can put right are printed without a traceback."""
    from advrisk.cli.app import app

    try:
        app()
    except AdvriskError as error:
        print(f"advrisk: {error}", file=sys.stderr)
        sys.exit(MISTAKE)
    except KeyboardInterrupt:
        print("advrisk: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:  # `advrisk list attacks | head`
        sys.stderr.close()
        sys.exit(DONE)

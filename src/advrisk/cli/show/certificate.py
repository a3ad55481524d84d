"""`advrisk show certificate` and `search`: what is certified, and the worst settings that a search tried."""

from advrisk.cli.show.generated import question_command

search = question_command(
    "search",
    """List the settings that each search tried, the worst first.

    Example: advrisk show search runs/signs --model plain
    """,
)
certificate = question_command(
    "certificate",
    """Say what is certified: attacks break at most alpha of inputs.

    `advrisk certify RUN` writes the same as documents.

    Example: advrisk show certificate runs/signs --alpha 0.1 --zeta 0.05
    """,
    without=("population", "search_guarantee"),  # settled before the samples to calibrate are looked at
)

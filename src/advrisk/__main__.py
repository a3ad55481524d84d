"""`python -m advrisk`."""

from advrisk.cli import main

main()

"""The version of the package, noted in every cell and report."""

VERSION = "0.1.0.dev0"

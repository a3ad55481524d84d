"""Sections to terminal, page, Markdown, notebook, CSV and JSON. Nothing here knows an assessment by name."""

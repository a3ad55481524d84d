"""Detectors: made ready and fitted before the cells, and scoring what the cells kept."""

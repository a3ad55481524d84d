"""Certificates of a run: counted, decided, put into words, signed and verified."""

"""Certificates of a run: counts, decisions, sentences, signatures and verification."""

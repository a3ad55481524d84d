"""Executes cells: probe, judge, append. Executors, training, and the judge live here.

Read `campaign.py` first: the main path is one screen.
"""

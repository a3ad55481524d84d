"""Runs cells: perturb, judge, append. Executors, searches, detectors and training live here.

Read `campaign.py` first, then `cell.py`: the main path.
"""

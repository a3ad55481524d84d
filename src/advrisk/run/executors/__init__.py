"""Where cells run: in this process, in worker processes of this machine (`local`), or on a Ray cluster (`ray`).

`choice` selects one; `run.dispatch` states what every executor offers.
"""

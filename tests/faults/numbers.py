"""How many faults of each kind `python -m tests.faults` injects."""

TRIALS = {
    "worker killed": 25,
    "driver killed": 25,
    "all killed": 10,
    "asked to end": 15,
    "frozen": 8,
    "disk full": 15,
    "files too large": 10,
    "model hangs": 6,
    "model misbehaves": 25,
    "files damaged": 25,
    "segment lost": 4,
    "repair killed": 10,
    "compacting killed": 10,
    "clock jumps": 4,
    "Ray worker killed": 3,
    "raylet killed": 3,
    "Ray driver killed": 3,
    "storage: driver killed": 10,
    "storage: nothing is taken": 8,
    "storage: server away": 6,
    "storage: clocks apart": 6,
    "storage: files damaged": 6,
}
LEAST = 200  # in all, also where some kinds cannot be injected

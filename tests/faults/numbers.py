"""How many faults of each kind `make slow` injects."""

TRIALS = {
    "worker killed": 30,
    "driver killed": 30,
    "all killed": 15,
    "asked to end": 20,
    "frozen": 10,
    "disk full": 20,
    "files too large": 15,
    "model hangs": 8,
    "model misbehaves": 30,
    "files damaged": 30,
    "segment lost": 5,
    "repair killed": 10,
    "compacting killed": 10,
    "clock jumps": 10,
    "Ray worker killed": 5,
    "raylet killed": 5,
    "Ray driver killed": 4,
}

"""How long a labeller waits for the next question, after few answers and after many.

Run: python -m bench questions. It takes some minutes.

`advrisk label` serves a small run in a process of its own. Its database is filled with the answers of twenty labellers;
then one more answers twenty questions over HTTP, as the page does. A wait lasts from the answer to the next question;
meanwhile processes of the server fit the curve to all answers. The work is the processor time of a question and its
answer alone. "For a core" is the part of the median wait in which server or client were ready but no core was free
(Linux; of threads that are ready at once, the sum).
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import numpy as np
import sqlalchemy as sa

from advrisk import Study
from advrisk.answers import tables
from advrisk.web.labelling import Labelling, Wishes, open_labelling
from advrisk.web.trials import Asking

LABELLERS = 20
STUDY = {
    "name": "questions",
    "data": {"source": "mnist-5k", "evaluate": 32},
    "models": {"plain": {"source": "demo", "name": "plain"}},
    "arms": [{"attack": "minimum-norm", "norm": "linf", "steps": 20}],
}


def main(*, tiny: bool = False) -> None:
    """Print the median and the longest wait after some numbers of answers."""
    numbers, n_asked = ((40,), 3) if tiny else ((200, 2_000, 20_000), 20)
    print(f"{'answers':>8} {'work':>8} {'median wait':>12} {'for a core':>11} {'longest wait':>13}")
    with TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        Study.from_dict(STUDY).run(run, workers=1)
        for n in numbers:
            with open_labelling(run, Wishes(), create=True) as labelling:
                _fill(labelling, n)
                work = list(_work(labelling, n_asked))
            with _served(run) as (server, operator):
                measured = list(_waits(server, operator, f"labeller of {n}", n_asked))
            (median, for_a_core), longest = np.median(measured, axis=0), np.max(measured, axis=0)[0]
            times = f"{np.median(work):5.1f} ms {median:9.0f} ms {for_a_core:8.0f} ms {longest:10.0f} ms"
            print(f"{n:8,} {times}", flush=True)


def _fill(labelling: Labelling, n: int) -> None:
    """Add answers until there are so many, about kept pictures of sizes near the threshold."""
    store, pool, rng = labelling.store, labelling.pool, np.random.default_rng(0)
    people = [store.invite(f"person {k}", f"{k:064d}").id for k in range(LABELLERS)]
    there = store.revision()[0]
    shown = [pool.as_it_is(example) for example in pool.examples]
    fixed = {"withdrawn": False, "again": False, "seen": 1.0}
    rows = []
    for k in range(there, n):
        picture = vars(shown[int(rng.integers(len(shown)))])
        place = {"labeller": people[k % LABELLERS], "place": k // LABELLERS, "nonce": f"filled {k}"}
        rows.append(picture | fixed | place)
    with store._writing() as connection:
        made = connection.scalars(tables.trials.insert().returning(tables.trials.c.id), rows).all() if rows else []
        unseen = rng.random(len(made)) < 0.5
        answers = [
            {"trial": one, "said": "unchanged" if missed else "changed", "undetected": bool(missed), "time": 3.0}
            for one, missed in zip(made, unseen, strict=True)
        ]
        if answers:
            connection.execute(sa.insert(tables.answers), answers)


@contextmanager
def _served(run: Path) -> Iterator[tuple[int, str]]:
    """The process of a server, and its operator's link."""
    command = [sys.executable, "-m", "advrisk", "label", str(run), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        found = re.fullmatch(r"Operator's page: (.*)\n", server.stdout.readline())
        assert found
        try:
            yield server.pid, found[1]
        finally:
            server.terminate()


def _work(labelling: Labelling, n: int) -> Iterator[float]:
    """Processor milliseconds of a question and the answer to it, once everything that was shown is read."""
    who = labelling.labeller(labelling.invite(f"person {labelling.store.revision()[0]}"))
    assert who is not None
    for k in range(n + 1):
        began = time.thread_time()
        trial = labelling.question(who, Asking(labelling.settings.design))
        assert trial is not None
        labelling.store.put_seen(trial.id)
        labelling.store.put_answer(who.id, trial.nonce, "unchanged" if k % 2 else "changed")
        if k:
            yield 1000 * (time.thread_time() - began)


def _waits(server: int, operator: str, name: str, n: int) -> Iterator[tuple[float, float]]:
    """Milliseconds from an answer to the next question, and how many of them were spent waiting for a core."""
    with httpx.Client(timeout=120, trust_env=False) as client:
        link = client.post(f"{operator}/invite", json={"name": name}).json()["link"]
        question = client.get(f"{link}/question").json()
        for k in range(n):
            for picture in question["pictures"]:
                client.get(f"{link}/picture/{question['nonce']}/{picture}.png").raise_for_status()
            time.sleep(0.2)  # to think
            began, delayed = time.perf_counter(), _for_a_core(server)
            said = "unchanged" if k % 2 else "changed"
            question = client.post(f"{link}/answer", json={"nonce": question["nonce"], "said": said}).json()
            wait_ms = 1000 * (time.perf_counter() - began)
            yield wait_ms, _for_a_core(server) - delayed


def _for_a_core(server: int) -> float:
    """Milliseconds in which threads of the server and of this process were ready to run but did not."""
    delays = [file.read_text().split()[1] for pid in (server, os.getpid()) for file in _schedules(pid)]
    return sum(map(int, delays)) / 1e6 if delays else np.nan


def _schedules(pid: int) -> Iterator[Path]:
    return Path(f"/proc/{pid}/task").glob("*/schedstat")


if __name__ == "__main__":
    main()

"""What is loaded from outside: for each kind of file, some good ones, how they are spoiled, and who reads them."""

import io
import shutil
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np

from tests.fuzz import ledger_files
from tests.fuzz.loader import Loader, written
from tests.fuzz.mutations import BYTES, TEXT, Mutation, in_archive, in_header

GOLDEN = Path(__file__).parents[1] / "golden"


def study(folder: Path) -> Loader:
    from advrisk.api import Study

    path, demo = folder / "study.yaml", files("advrisk.demo")
    seeds = [(demo / name).read_bytes() for name in ("study.yaml", "starter.yaml")]
    return Loader(seeds, TEXT, lambda content, _: Study.load(written(path, content)).doubts())


def recipe(folder: Path) -> Loader:
    from advrisk.study import load_recipe

    path = folder / "recipe.yaml"
    seeds = [(files("advrisk.demo") / "recipe.yaml").read_bytes()]
    return Loader(seeds, TEXT, lambda content, _: load_recipe(written(path, content)))


def npz(folder: Path) -> Loader:
    from advrisk.parts.data.npz import npz as read

    rng = np.random.default_rng(0)
    pictures = {"x": rng.integers(0, 255, (6, 4, 4, 3), dtype=np.uint8), "y": np.arange(6) % 3}
    rows = {"x": rng.random((5, 3), dtype=np.float32), "y": np.arange(5) % 2, "id": np.array(list("abcde"))}
    rows |= {"low": np.zeros(3), "high": np.ones(3), "immutable": np.array([1, 0, 0], dtype=bool)}
    rows |= {"weight": np.ones(5), "split": np.array(["evaluate"] * 4 + ["tune"]), "site": np.array(list("uvuvu"))}
    path = folder / "data.npz"

    def load(content: bytes, which: int) -> object:
        return read(path=written(path, content), strata=("site",) if which == 1 else ())

    return Loader([_archive(pictures), _archive(rows)], (in_archive, in_archive, *BYTES), load)


def kept_inputs(folder: Path) -> Loader:
    from advrisk.ledger.inputs import read_inputs, write_inputs

    path = folder / "inputs.npz"
    write_inputs(path, ["a", "b"], np.random.default_rng(0).random((2, 1, 4, 4), dtype=np.float32))
    seeds = [path.read_bytes()]
    return Loader(seeds, (in_archive, in_archive, *BYTES), lambda content, _: read_inputs(written(path, content)))


_OUTCOMES = b"""model,sample,arm,norm,eps,d_linf,outcome,label,weight,repeat
plain,s1,pgd,linf,0.1,0.05,success,3,1.0,0
plain,s2,pgd,linf,0.1,,resisted,4,1.0,0
plain,s3,pgd,linf,0.1,0,already_wrong,5,2.0,0
hard,s1,pgd,linf,0.1,inf,resisted,3,1.0,0
"""
_DISTANCES = b"model,sample,distance\nplain,007,0.25\nplain,008,inf\nhard,007,0.5\nhard,008,0.75\n"
_SCORES = b"detector,model,arm,sample,score\nmine,plain,pgd,s1,0.7\nmine,plain,pgd,s2,0.1\nmine,hard,pgd,s1,1e-3\n"


def csv_outcomes(folder: Path) -> Loader:
    return Loader([_OUTCOMES, _DISTANCES], TEXT, _importing(folder, "outcomes.csv"))


def parquet_outcomes(folder: Path) -> Loader:
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

    seeds = []
    for text in (_OUTCOMES, _DISTANCES):
        target = io.BytesIO()
        pq.write_table(pacsv.read_csv(io.BytesIO(text)), target, compression=None if seeds else "snappy")
        seeds.append(target.getvalue())
    return Loader(seeds, BYTES, _importing(folder, "outcomes.parquet"))


def _importing(folder: Path, name: str) -> Callable[[bytes, int], object]:
    from advrisk.ledger.exchange.importing import import_outcomes

    path, run = folder / name, folder / "run"

    def load(content: bytes, which: int) -> object:
        shutil.rmtree(run, ignore_errors=True)
        n = import_outcomes(written(path, content), run, norm="linf" if which == 1 else None)
        assert n > 0
        return n

    return load


def csv_scores(folder: Path) -> Loader:
    from advrisk.ledger.exchange.importing import import_outcomes
    from advrisk.ledger.exchange.score_file import holds_scores, import_scores

    path, kept, run = folder / "scores.csv", folder / "kept", folder / "run"
    import_outcomes(written(folder / "outcomes.csv", _OUTCOMES), kept)

    def load(content: bytes, _: int) -> object:
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(kept, run)
        holds_scores(written(path, content))
        return import_scores(path, run)

    return Loader([_SCORES], TEXT, load)


def safetensors(folder: Path) -> Loader:
    return _weights(folder, "weights.safetensors", (in_header, in_header, in_header, *BYTES))


def state_dict(folder: Path) -> Loader:
    return _weights(folder, "weights.pt", (in_archive, *BYTES))


def _weights(folder: Path, name: str, ways: Sequence[Mutation]) -> Loader:
    import torch
    from safetensors.torch import save

    from advrisk.parts.models.torch_module import load_weights

    module = torch.nn.Linear(3, 2)
    target = io.BytesIO()
    torch.save(module.state_dict(), target)
    whole = save(module.state_dict(), {"train_s": "1.5", "train_samples": "10"})
    path = folder / name
    seeds = [whole if name.endswith(".safetensors") else target.getvalue()]
    return Loader(seeds, ways, lambda content, _: load_weights(module, written(path, content), "a layer"))


def torchscript(folder: Path) -> Loader:
    import torch

    from advrisk.parts.models.torch_module import torchscript as read

    target, path = io.BytesIO(), folder / "model.ts"
    torch.jit.save(torch.jit.trace(torch.nn.Linear(3, 2), torch.zeros(1, 3)), target)
    return Loader([target.getvalue()], (in_archive, *BYTES), lambda content, _: read(path=written(path, content)))


def segment(folder: Path) -> Loader:
    """A file of a segment, read as every assessment does."""
    from advrisk.api import Run
    from advrisk.ledger.exchange.importing import import_outcomes

    home = folder / "run"
    import_outcomes(written(folder / "outcomes.csv", _DISTANCES), home, norm="linf")
    paths = sorted(home.rglob("*.parquet"))
    seeds = [path.read_bytes() for path in paths]

    def load(content: bytes, which: int) -> object:
        paths[which].write_bytes(content)
        try:
            run = Run.open(home)
            run.outcomes()
            run.status()
            return run.damage()
        finally:
            paths[which].write_bytes(seeds[which])

    return Loader(seeds, BYTES, load)


def evasion(folder: Path) -> Loader:
    from advrisk.risk.evasion import (
        evasion_notes,
        fit_logistic,
        fit_monotone,
        read_evasion,
        threshold,
        write_evasion,
    )

    sizes = np.linspace(0.01, 1, 30)
    undetected = np.random.default_rng(0).random(30) > sizes
    path, seeds = folder / "evasion.json", []
    for curve in (fit_logistic(sizes, undetected), fit_monotone(sizes, undetected), threshold(0.3)):
        write_evasion(path, curve, norm="linf")
        seeds.append(path.read_bytes())

    def load(content: bytes, _: int) -> object:
        curve = read_evasion(written(path, content), norm="linf")
        evasion_notes(path)
        return curve(np.array([0.0, 0.5, np.inf]))

    return Loader(seeds, TEXT, load)


def answers(folder: Path) -> Loader:
    from advrisk.answers.file import read_answer_file

    path = folder / "answers.csv"
    seeds = [b"size,undetected,model,arm\n0.1,true,plain,pgd\n0.2,false,plain,pgd\n0.3,0,hard,pgd\n"]
    return Loader(seeds, TEXT, lambda content, _: read_answer_file(written(path, content)))


def certificate(folder: Path) -> Loader:
    from advrisk.api.certificates import verify_certificate
    from advrisk.assess.certificate.document import read_document

    path = folder / "certificate.json"
    seeds = [(GOLDEN / "certificate-v4.json").read_bytes()]
    return Loader(seeds, TEXT, lambda content, _: verify_certificate(read_document(written(path, content))))


def keys(folder: Path) -> Loader:
    from advrisk.assess.certificate.signature import new_key, read_private_key, read_public_key

    private, public = new_key(folder / "key.pem")
    seeds, path = [private.read_bytes(), public.read_bytes()], folder / "given.pem"
    readers = (read_private_key, read_public_key)

    def load(content: bytes, which: int) -> object:
        path.unlink(missing_ok=True)
        path.touch(0o600)
        return readers[which](written(path, content))

    return Loader(seeds, (*TEXT, *BYTES), load)


def costs(folder: Path) -> Loader:
    from advrisk.risk.losses import bound_loss

    path = folder / "costs.csv"
    seeds = [b",0,1,2\n0,0,1,2\n1,1,0,5\n2,2.5,1,0\n"]
    entry = {"name": "cost-matrix", "path": str(path)}

    def load(content: bytes, _: int) -> object:
        written(path, content)
        return bound_loss(entry, folder=folder)

    return Loader(seeds, TEXT, load)


def frozen(folder: Path) -> Loader:
    from advrisk.core.digest import digest
    from advrisk.ledger.frozen import Link, frozen_list, frozen_question, linked

    samples = [("s1", "c1"), ("s2", "c2")]
    lists = [
        frozen_list(("plain", "linf", eps), {"pgd": "r1", "square": "r2"}, ["square"], samples) for eps in (0.1, 0.2)
    ]
    seed = Link(frozen_question(lists, samples, {"alpha": 0.1, "zeta": 0.05}), previous_tested=False).content

    def load(content: bytes, _: object) -> object:
        """As of somebody who writes digests that fit."""
        text = content.decode("utf-8", "surrogateescape").encode("utf-8", "replace").decode("utf-8")
        return linked([{"question": digest(["", text]), "previous": "", "content": text}], folder)

    return Loader([seed.encode()], TEXT, load)


FAULTS = (None, None, "KeyError", "ended with 7", "MemoryError", "no answer")  # of `faulty`, by the place of its seed


def requirement(folder: Path) -> Loader:
    from advrisk.core.errors import StudyError
    from advrisk.study import parse_requirement

    seeds = [b"damage.hardened <= 0.2", b"broken.'a b' at 8/255 <= 20 %", b"damage.new <= damage.old + 0.02"]
    seeds += [b"auroc.lid[plain] >= 0.9", b"certificate.*", b"risk.m[town, misclassified] < 1/10"]

    def load(content: bytes, _: int) -> object:
        try:
            return parse_requirement(content.decode("utf-8", "replace"))
        except ValueError as error:  # what a study's section turns into a StudyError with file and line
            raise StudyError(str(error)) from None

    return Loader(seeds, TEXT, load)


def evidence_pack(folder: Path) -> Loader:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from advrisk.api import Run
    from advrisk.api.evidence.verification import pack_summary, verify_pack
    from advrisk.core.errors import RiskError
    from advrisk.ledger.exchange.importing import import_outcomes

    rows = [{"model": model, "sample": str(n), "d_linf": n / 10} for model in ("a", "b") for n in range(1, 5)]
    pq.write_table(pa.Table.from_pylist(rows), folder / "theirs.parquet")
    import_outcomes(folder / "theirs.parquet", folder / "run", norm="linf")
    whole, path = Run.open(folder / "run").evidence(folder / "whole.zip"), folder / "given.zip"

    def load(content: bytes, _: int) -> object:
        found = verify_pack(written(path, content))
        if not found.holds:
            raise RiskError("; ".join(found.problems))
        return pack_summary(path)

    return Loader([whole.read_bytes()], (in_archive, in_archive, *BYTES), load)


# A whole run is checked, repaired, compacted or fetched for each file: they get a tenth of the files.
LARGE = ("csv-outcomes", "csv-scores", "segment", "evidence-pack", "looks", "searches")  # ten milliseconds a file
THOROUGH = ("care", "manifest", "replaces", "history", "deleted", "packed-segment")


def n_files(loader: str) -> int:
    """How many files a loader gets in a whole campaign."""
    return 1_000 if loader in THOROUGH else 10_000


def n_files_of_tests(loader: str) -> int:
    """How many it gets in `make slow-fuzz`, which is to take some minutes."""
    if loader in THOROUGH:
        return 100
    return 1_000 if loader in LARGE else 3_000


LOADERS: dict[str, Callable[[Path], Loader]] = {
    "study": study,
    "recipe": recipe,
    "npz": npz,
    "kept-inputs": kept_inputs,
    "csv-outcomes": csv_outcomes,
    "parquet-outcomes": parquet_outcomes,
    "csv-scores": csv_scores,
    "safetensors": safetensors,
    "state-dict": state_dict,
    "torchscript": torchscript,
    "segment": segment,
    "evasion": evasion,
    "answers": answers,
    "certificate": certificate,
    "keys": keys,
    "costs": costs,
    "frozen": frozen,
    "requirement": requirement,
    "evidence-pack": evidence_pack,
    **ledger_files.LOADERS,
}


def faulty(folder: Path) -> Loader:
    """A loader with every kind of fault, by the place of the seed: what the campaign itself is held against."""
    import os
    import time

    from advrisk.core.errors import DataError

    def load(content: bytes, which: int) -> object:
        if content == b"good":
            return None
        if which == 1:
            raise DataError("refused")
        return (len, None, {}.__getitem__, lambda _: os._exit(7), lambda _: bytearray(2**40), lambda _: time.sleep(60))[
            which
        ](content)

    return Loader([b"good"] * 6, (lambda content, _: content + b"!",), load)


def _archive(arrays: dict[str, np.ndarray]) -> bytes:
    target = io.BytesIO()
    np.savez(target, **arrays)
    return target.getvalue()

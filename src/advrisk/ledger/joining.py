"""The study that two parts of a run ask together: the same question, of the models of both."""

from pathlib import Path
from typing import Any

import yaml

from advrisk.core.errors import AdvriskError, LedgerError
from advrisk.core.files import whole_file
from advrisk.ledger.layout import STUDY_FILE
from advrisk.study import as_written, plain_sizes, study_from, written_sizes

_MODELS = "models"


def join_studies(source: Path, target: Path) -> None:
    """Let the study of the target name the models of both, if the studies differ in nothing else."""
    text = _joined(target, source)
    if text is None:
        return
    try:
        with whole_file(target / STUDY_FILE) as file:
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise LedgerError(f"{target / STUDY_FILE}: cannot be written: {error.strerror}") from None


def unjoined(one: Path, other: Path) -> list[str]:
    """The models of both, where their studies cannot be joined; nothing where they can, or one of them has none."""
    studies = [folder / STUDY_FILE for folder in (one, other)]
    if not all(path.is_file() for path in studies) or _joined(one, other) is not None:
        return []
    ours, theirs = map(_compared, studies)
    if ours == theirs | {_MODELS: ours[_MODELS] | theirs[_MODELS]}:
        return []  # the first one asks all that the other does
    return sorted(ours[_MODELS].keys() | theirs[_MODELS].keys())


def _joined(one: Path, other: Path) -> str | None:
    """The text of the first study with the models of both; None where that says nothing new, or is no study."""
    studies = [folder / STUDY_FILE for folder in (one, other)]
    if not all(path.is_file() for path in studies):
        return None
    ours, theirs = map(_compared, studies)
    models, added = ours[_MODELS], {name: one for name, one in theirs[_MODELS].items() if name not in ours[_MODELS]}
    if not added or theirs | {_MODELS: models | added} != ours | {_MODELS: models | theirs[_MODELS]}:
        return None
    content = as_written(ours | {_MODELS: models | added}, written_sizes(_read(studies[0])))
    try:
        study_from(content)
    except AdvriskError:
        return None
    head = _comments(studies[0])
    if (others := _comments(studies[1])) != head:
        head += [f"# Of {', '.join(added)}: {line.removeprefix('# ')}" for line in others]
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110)
    return "".join(f"{line}\n" for line in head) + text


def _read(path: Path) -> dict[str, Any]:
    """What stands in the file of a study that was read before."""
    content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return content


def _compared(path: Path) -> dict[str, Any]:
    """The same with sizes as numbers: 8/255 is not another question than 0.03137254901960784."""
    content: dict[str, Any] = plain_sizes(_read(path))
    return content


def _comments(path: Path) -> list[str]:
    """What is said of where relative paths are meant."""
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")]

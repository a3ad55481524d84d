"""In which order files are made durable and get their names."""

import os
from pathlib import Path
from typing import Any

import pytest


def recorded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps from now on, as `fsync .file.4711`, `rename .file.4711 file`, `fsync folder`; what was written last is
    noted by its size, so that nothing is written after it was made durable."""
    steps: list[str] = []
    sizes: dict[str, int] = {}
    real = {name: getattr(os, name) for name in ("fsync", "replace", "rename")}

    def fsync(handle: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        sizes[str(path)] = path.stat().st_size
        steps.append(f"fsync {path.name}")
        real["fsync"](handle)

    def renamed(name: str) -> Any:
        def call(source: Any, target: Any) -> None:
            if str(source) in sizes and Path(source).is_file():
                assert Path(source).stat().st_size == sizes[str(source)], f"{source} was written after its fsync"
            steps.append(f"rename {Path(source).name} {Path(target).name}")
            real[name](source, target)

        return call

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", renamed("replace"))
    monkeypatch.setattr(os, "rename", renamed("rename"))
    return steps

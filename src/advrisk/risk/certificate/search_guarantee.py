"""What a search by GP-UCB promises about the settings it did not try (PROSAC, Theorem 4), if anything."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SearchGuarantee:
    """A level for the settings that were tried, such that the others of the searched set are covered, too."""

    zeta: float  # asked for
    gap: float  # by how much p of an untried setting may exceed the largest that was found
    delta: float  # probability that the gap is larger
    reason: str | None  # why there is none, whatever the gap

    @property
    def level(self) -> float | None:
        """The paper's zeta': hold the largest p that was found against it. None: there is no guarantee."""
        raise NotImplementedError

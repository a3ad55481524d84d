"""The runner's own verification of what an attack kept. Attacks are not believed."""

from dataclasses import dataclass

import torch
from torch import Tensor

from advrisk.engine import predicted, within_rounding
from advrisk.engine.norms import NORMS
from advrisk.ledger import Outcome
from advrisk.run.perturb import Attempt, Settled, Target, finite
from advrisk.study import Arm, Norm

JUDGE_DRAWS = 11  # odd, so that half is never reached


@dataclass(frozen=True)
class Verdict:
    """What is true of each sample's kept point, by the judge's own passes."""

    outcome: list[Outcome]
    message: list[str]
    answer: Tensor  # at the kept point; at the clean input where that stands
    distances: dict[Norm, Tensor]  # norm -> float64
    survives_8bit: Tensor
    success_rate: Tensor  # share of the judge's draws in which the point succeeds
    n_judge: Tensor
    n_unconfirmed: int  # claims that the judge did not see, and successes that nobody claimed


def judge(target: Target, attempt: Attempt, arm: Arm) -> Verdict:
    """Check space and eps, ask the model again, measure every norm, and try the point in 8 bits.

    A model that answers at random is asked `JUDGE_DRAWS` times: a point succeeds if it does so in more than half
    of the draws, so that one lucky draw is never a success.
    """
    answer, rate, n_judge = _answers(target, attempt)
    kept, x0 = attempt.kept.cpu().double(), target.x0.cpu().double()
    space = target.space.to("cpu")
    distances = {norm: space.distance(kept, x0, norm) for norm in NORMS}
    settled = _wrong_points(target, attempt, arm, answer, distances) | attempt.settled
    success = rate > 0.5
    success[list(settled)] = False
    survives_8bit = _survives_8bit(target, attempt.kept, success, n_judge)
    outcome: list[Outcome] = ["success" if hit else "resisted" for hit in success.tolist()]
    for row, (name, _) in settled.items():
        outcome[row] = name
    return Verdict(
        outcome=outcome,
        message=[settled[row][1] if row in settled else "" for row in range(len(outcome))],
        answer=answer,
        distances=distances,
        survives_8bit=survives_8bit,
        success_rate=torch.where(success | (rate <= 0.5), rate, 0.0),
        n_judge=n_judge,
        n_unconfirmed=_unconfirmed(attempt.claimed, success, list(settled)),
    )


def _unconfirmed(claimed: Tensor | None, success: Tensor, settled: list[int]) -> int:
    if claimed is None:
        return 0
    unlike = claimed != success
    unlike[settled] = False
    return int(unlike.sum())


def _answers(target: Target, attempt: Attempt) -> tuple[Tensor, Tensor, Tensor]:
    """The model's answers at the kept points that are not settled, how often they succeed, and the passes spent."""
    rows = torch.tensor([row for row in range(len(target.x0)) if row not in attempt.settled], dtype=torch.int64)
    answer = target.clean_answer.clone()
    rate = torch.zeros(len(target.x0), device=target.x0.device)
    n_judge = torch.zeros(len(target.x0), dtype=torch.int64)
    if len(rows):
        draws = JUDGE_DRAWS if target.model.random else 1
        for _ in range(draws):
            answer[rows] = target.model.ask_owner(attempt.kept[rows])
            rate[rows] += target.goal.of(rows).met(predicted(target.model, answer[rows])).float() / draws
        n_judge[rows] += draws
    return answer, rate, n_judge


def _wrong_points(
    target: Target, attempt: Attempt, arm: Arm, answer: Tensor, distances: dict[Norm, Tensor]
) -> dict[int, Settled]:
    """Points that must not have been kept; a distance beyond eps by rounding only becomes eps."""
    wrong: dict[int, Settled] = {}
    for row in (~finite(answer)).nonzero().flatten().tolist():
        wrong[row] = "error", "the model answered with a number that is not finite"
    for row in (~target.space.valid(attempt.kept, target.x0)).nonzero().flatten().tolist():
        violation = target.space.violation(attempt.kept[row], target.x0[row])
        wrong[row] = "error", f"the kept point is outside the space: {violation}"
    if arm.eps is not None and arm.norm is not None:
        distance = distances[arm.norm]
        reach = within_rounding(arm.eps, target.space, arm.norm, tuple(target.x0.shape[1:]))
        for row in (distance > reach).nonzero().flatten().tolist():
            wrong[row] = "error", f"the kept point is beyond eps: {distance[row]:.7g} > {arm.eps:.7g}"
        distance.clamp_(max=arm.eps)
    return wrong


def _survives_8bit(target: Target, kept: Tensor, success: Tensor, n_judge: Tensor) -> Tensor:
    """Whether a success is still one after the image was stored in 8 bits; adds the passes spent."""
    survives = torch.zeros_like(success)
    rows = success.nonzero().squeeze(1)
    if len(rows) and target.is_image:
        answer = target.model.ask_owner(target.space.rounded_8bit(kept[rows]))
        survives[rows] = target.goal.of(rows).met(predicted(target.model, answer)) & finite(answer)
        n_judge[rows.cpu()] += 1
    return survives

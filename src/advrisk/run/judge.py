"""The runner's own verification of the points that an attack kept: its claims do not count."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from advrisk.engine import Noise, within_rounding
from advrisk.engine.norms import NORMS
from advrisk.ledger import Outcome
from advrisk.run.perturb import AttackedShard, Attempt, Settled
from advrisk.run.redrawing import JUDGE_DRAWS, Redrawn, finite, redrawn
from advrisk.run.walk_back import walk_back, walks_back
from advrisk.study import Arm, Norm

__all__ = ["JUDGE_DRAWS", "Judgement", "judge"]


@dataclass(frozen=True)
class JudgeDraws:
    """The answers of a random model to each kept point, draw by draw; points without a query have none."""

    queried: Tensor  # (rows,)
    classes: Tensor  # (rows, draws): -1 where the model refused the point
    scores: Tensor | None  # (rows, draws, classes): log-probabilities; None for a label-only model


@dataclass(frozen=True)
class Judgement:
    """The verified result of each sample's kept point, by the judge's own passes."""

    outcome: list[Outcome]
    message: list[str]
    answer: Tensor  # at the kept point; at the clean input where the outcome is settled
    prediction: Tensor  # the class there, also where the model refuses it
    distances: dict[Norm, Tensor]  # norm -> float64
    near: dict[Norm, Tensor]  # of the nearest success between the kept point and the clean input; else as `distances`
    survives_8bit: Tensor
    success_rate: Tensor  # share of the judge's draws in which the point succeeds
    n_judge: Tensor
    n_unconfirmed: int  # claims that the judge did not confirm, and successes that were not claimed
    draws: JudgeDraws | None = None  # of a model that answers at random


def judge(target: AttackedShard, attempt: Attempt, arm: Arm, chance: Noise | None = None) -> Judgement:
    """Check space and eps, query the model again, measure every norm, try the point in 8 bits, and walk it back.

    A model that answers at random is queried `JUDGE_DRAWS` times, with the random streams `chance`: a point succeeds if
    it does so in more than half of the draws, so that one lucky draw is never a success. A point that the model refuses
    in more than half of the draws is neither a success nor resisted.
    """
    answers = _ask(target, attempt, chance)
    kept, x0 = attempt.kept.cpu().double(), target.x0.cpu().double()
    space = target.space.to("cpu")
    distances = {norm: space.distance(kept, x0, norm) for norm in NORMS}
    settled = _wrong_points(target, attempt, arm, answers.answer, distances) | attempt.settled
    success, n_judge = answers.rate > 0.5, answers.n_judge
    if arm.kind == "clean" and target.is_reference:  # the most frequent class is correct by definition
        success[:] = False
        answers.prediction.copy_(target.clean_prediction)
    success[list(settled)] = False
    survives_8bit = _survives_8bit(target, attempt.kept, success, n_judge, chance)
    near = _nearest(target, attempt, answers.answer, success, n_judge, arm, chance, distances)
    outcome: list[Outcome] = ["success" if hit else "resisted" for hit in success.tolist()]
    for row in (answers.rejection_rate > 0.5).nonzero().flatten().tolist():
        outcome[row] = "rejected"
    for row, (name, _) in settled.items():
        outcome[row] = name
    return Judgement(
        outcome=outcome,
        message=[settled[row][1] if row in settled else "" for row in range(len(outcome))],
        answer=answers.answer,
        prediction=answers.prediction,
        distances=distances,
        near=near,
        survives_8bit=survives_8bit,
        success_rate=torch.where(success | (answers.rate <= 0.5), answers.rate, 0.0),
        n_judge=n_judge,
        n_unconfirmed=_unconfirmed(attempt.claimed, success, list(settled)),
        draws=answers.draws,
    )


def _unconfirmed(claimed: Tensor | None, success: Tensor, settled: list[int]) -> int:
    if claimed is None:
        return 0
    unlike = claimed != success
    unlike[settled] = False
    return int(unlike.sum())


@dataclass(frozen=True)
class _Answers:
    """The model's answers to the kept points; for settled samples, its answer to the clean input."""

    answer: Tensor
    prediction: Tensor
    rate: Tensor  # share of draws in which the point succeeds
    rejection_rate: Tensor
    n_judge: Tensor
    draws: JudgeDraws | None = None


def _ask(target: AttackedShard, attempt: Attempt, chance: Noise | None) -> _Answers:
    """Query the kept points that are not settled."""
    rows = torch.tensor([row for row in range(len(target.x0)) if row not in attempt.settled], dtype=torch.int64)
    answers = _Answers(
        answer=target.clean_answer.clone(),
        prediction=target.clean_prediction.clone(),
        rate=torch.zeros(len(target.x0), device=target.x0.device),
        rejection_rate=torch.zeros(len(target.x0), device=target.x0.device),
        n_judge=torch.zeros(len(target.x0), dtype=torch.int64),
    )
    if len(rows):
        replies, goal = redrawn(target.model, attempt.kept[rows], rows, chance), target.goal.of(rows)
        answers.answer[rows], answers.prediction[rows] = replies.answer, replies.prediction(goal)
        answers.rate[rows], answers.rejection_rate[rows] = replies.success_rate(goal), replies.rejection_rate
        answers.n_judge[rows] += replies.n
        if target.model.random:
            return replace(answers, draws=_draws(replies, rows, len(target.x0)))
    return answers


def _draws(replies: Redrawn, rows: Tensor, n: int) -> JudgeDraws:
    """The draws of some rows, spread over all of them."""
    index = rows.cpu()
    queried = torch.zeros(n, dtype=torch.bool)
    queried[index] = True
    classes = torch.full((n, replies.n), -1, dtype=torch.int64)
    classes[index] = replies.classes.cpu()
    if replies.scores is None:
        return JudgeDraws(queried, classes, None)
    scores = torch.full((n, replies.n, replies.scores.shape[2]), torch.nan)
    scores[index] = replies.scores.transpose(0, 1).float().cpu()
    return JudgeDraws(queried, classes, scores)


def _wrong_points(
    target: AttackedShard, attempt: Attempt, arm: Arm, answer: Tensor, distances: dict[Norm, Tensor]
) -> dict[int, Settled]:
    """Errors of points that the arm must not keep; distances that exceed eps only by rounding become eps."""
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


def _nearest(
    target: AttackedShard,
    attempt: Attempt,
    answer: Tensor,
    success: Tensor,
    n_judge: Tensor,
    arm: Arm,
    chance: Noise | None,
    distances: dict[Norm, Tensor],
) -> dict[Norm, Tensor]:
    """Distances of the nearest success on the way back to the clean input; adds the passes spent."""
    near = {norm: distance.clone() for norm, distance in distances.items()}
    rows = success.nonzero().squeeze(1)
    if len(rows) and arm.norm is not None and walks_back(arm):
        measured = walk_back(target, attempt.kept, answer, rows, arm.norm, attempt.needs, chance)
        for norm, distance in measured.distances.items():
            near[norm][rows.cpu()] = torch.minimum(distance, distances[norm][rows.cpu()])
        n_judge[rows.cpu()] += measured.n_passes
    return near


def _survives_8bit(
    target: AttackedShard, kept: Tensor, success: Tensor, n_judge: Tensor, chance: Noise | None
) -> Tensor:
    """Whether a success is still one after the image was stored in 8 bits; adds the passes spent."""
    survives = torch.zeros_like(success)
    rows = success.nonzero().squeeze(1)
    if len(rows) and target.is_image:
        replies = redrawn(target.model, target.space.rounded_8bit(kept[rows]), rows, chance)
        survives[rows] = (replies.success_rate(target.goal.of(rows)) > 0.5) & finite(replies.answer)
        n_judge[rows.cpu()] += replies.n
    return survives

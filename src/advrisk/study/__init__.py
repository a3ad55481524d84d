"""Studies, from one YAML file, validated. Nothing here knows how they are answered."""

from advrisk.core.traits import Keep, Norm
from advrisk.study.arm import CLEAN, Arm, ArmKind
from advrisk.study.assess import (
    AVERAGE,
    AlarmSpec,
    CertificateSpec,
    DamageSpec,
    DetectionSpec,
    IndicatorSpec,
    SurvivalSpec,
)
from advrisk.study.defence import TRAINED, DefenceSpec
from advrisk.study.fields import as_written, plain_sizes, validated, written_sizes
from advrisk.study.gate import Requirement, Term, parse_requirement
from advrisk.study.ground import Ground, detector_names, expanded, study_ground
from advrisk.study.questions import AssessmentTraits, Quantity
from advrisk.study.recipe import RecipeSpec, TrainedModel, TrainingSource, load_recipe
from advrisk.study.registered import CERTIFIED, assessment_of, assessments
from advrisk.study.resources import ResourcesSpec
from advrisk.study.search import THEORY, RangeSpec, SearchEntry
from advrisk.study.source import OPTIONS, Loc, Source, read_yaml
from advrisk.study.spec import (
    ArmEntry,
    DataSpec,
    DetectorSpec,
    MeasureSpec,
    ModelSpec,
    StudySpec,
    Success,
    TargetSpec,
    called_so,
    load_study,
    study_from,
)
from advrisk.study.target import StoppingTarget, parse_target, parse_targets, target_digests, target_kind, target_level

__all__ = [
    "AVERAGE",
    "CERTIFIED",
    "CLEAN",
    "OPTIONS",
    "THEORY",
    "TRAINED",
    "AlarmSpec",
    "Arm",
    "ArmEntry",
    "ArmKind",
    "AssessmentTraits",
    "CertificateSpec",
    "DamageSpec",
    "DataSpec",
    "DefenceSpec",
    "DetectionSpec",
    "DetectorSpec",
    "Ground",
    "IndicatorSpec",
    "Keep",
    "Loc",
    "MeasureSpec",
    "ModelSpec",
    "Norm",
    "Quantity",
    "RangeSpec",
    "RecipeSpec",
    "Requirement",
    "ResourcesSpec",
    "SearchEntry",
    "Source",
    "StoppingTarget",
    "StudySpec",
    "Success",
    "SurvivalSpec",
    "TargetSpec",
    "Term",
    "TrainedModel",
    "TrainingSource",
    "as_written",
    "assessment_of",
    "assessments",
    "called_so",
    "detector_names",
    "expanded",
    "load_recipe",
    "load_study",
    "parse_requirement",
    "parse_target",
    "parse_targets",
    "plain_sizes",
    "read_yaml",
    "study_from",
    "study_ground",
    "target_digests",
    "target_kind",
    "target_level",
    "validated",
    "written_sizes",
]

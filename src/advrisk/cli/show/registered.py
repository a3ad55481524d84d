"""`advrisk show NAME` for every registered assessment: its options are the fields of its spec."""

import inspect
import json
import types
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
import yaml
from pydantic.fields import FieldInfo

from advrisk.cli.options import AsJson, Details, OfCsv, OfModels, OfWhere, RunFolder
from advrisk.core.errors import StudyError
from advrisk.core.numbers import parse_number
from advrisk.core.registry import Part
from advrisk.study import AssessmentTraits, assessments

OfLevel = Annotated[float | None, typer.Option("--level", help="How sure intervals are (default: 0.95).")]
_PLAIN = (bool, int, float, str)
_FLAGS = (AsJson, Details)
_SHARED: Mapping[str, Any] = {
    "model": OfModels,
    "where": OfWhere,
    "level": OfLevel,
    "details": Details,
    "out_csv": OfCsv,
    "as_json": AsJson,
}


def registered_commands() -> dict[str, Any]:
    """A command for each registered assessment, by its name."""
    return {part.name: _command(part) for part in assessments.brought()}


def _command(part: Part[AssessmentTraits]) -> Any:
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command(part.name, help=_help(part))(_function(part))
    return typer.main.get_command(app)


def _help(part: Part[AssessmentTraits]) -> str:
    return f"{part.summary}\n\nExample: advrisk show {part.name} runs/signs"


def _function(part: Part[AssessmentTraits]) -> Callable[..., None]:
    """What the command calls, with the signature that typer reads its options from."""

    def show(folder: str, **given: Any) -> None:
        shared = {name: given.pop(name) for name in _SHARED}
        fields = part.traits.spec.model_fields
        options = {
            name: _read(name, value, _plain_type(fields[name].annotation))
            for name, value in given.items()
            if value is not None
        }
        show_registered(part.name, folder, options, **shared)

    required = inspect.Parameter("folder", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=RunFolder)
    own = [_option(name, field) for name, field in part.traits.spec.model_fields.items()]
    shared = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=option,
            default=False if option in _FLAGS else None,
        )
        for name, option in _SHARED.items()
    ]
    show.__signature__ = inspect.Signature([required, *own, *shared])  # type: ignore[attr-defined]
    show.__annotations__ = {"folder": RunFolder} | {one.name: one.annotation for one in (*own, *shared)}
    return show


def show_registered(
    name: str,
    folder: str,
    options: Mapping[str, Any],
    *,
    model: list[str] | None,
    where: list[str] | None,
    level: float | None,
    details: bool,
    out_csv: str | None,
    as_json: bool,
) -> None:
    """`advrisk show NAME RUN`."""
    from advrisk.api import Run
    from advrisk.cli.lines import show_result, shown_part
    from advrisk.render.terminal import print_sections
    from advrisk.report.records import finding_record

    part = Run.open(folder).part(models=model, where=where)
    found = part.assess(name, level=level, **options)
    shown = shown_part(part, lambda: finding_record(found), lambda: print_sections(found.sections, details=details))
    show_result(found, *shown, out_csv=out_csv, as_json=as_json)


def _option(name: str, field: FieldInfo) -> inspect.Parameter:
    """An option of the field's own type, where that is plain; else text that is read as YAML."""
    kind = _plain_type(field.annotation)
    flag = f"--{name.replace('_', '-')}"
    words = f"{flag}/--no-{flag.removeprefix('--')}" if kind is bool else flag
    given = "required" if field.is_required() else f"default: the study's, or {_default(field)}"
    metavar = {None: "YAML", float: "NUMBER"}.get(kind)
    shown = typer.Option(words, metavar=metavar, help=f"{field.description or ''} ({given})")
    taken = str if metavar else kind
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[taken | None, shown], default=None
    )


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    return "none" if value is None else json.dumps(value, default=str)


def _read(name: str, given: Any, kind: Any) -> Any:
    """The value of an option: numbers may be fractions, and what is not plain is YAML."""
    try:
        return parse_number(given) if kind is float else given if kind is not None else yaml.safe_load(given)
    except ValueError as error:
        raise StudyError(f"--{name.replace('_', '-')}: {error}") from None
    except yaml.YAMLError:
        raise StudyError(f"--{name.replace('_', '-')}: found {given!r}, which is no YAML, as in '[a, b]'") from None


def _plain_type(annotation: Any) -> Any:
    """The type of an option that a field's annotation allows; None where it must be read as YAML."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _plain_type(arguments[0])
    if origin in (Union, types.UnionType):
        members = [one for one in arguments if one is not type(None)]
        return _plain_type(members[0]) if len(members) == 1 else None
    return annotation if annotation in _PLAIN or origin is Literal else None

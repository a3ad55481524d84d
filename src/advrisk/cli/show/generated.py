"""`advrisk show NAME` of an assessment, built in or brought by a package: its options are the fields of its spec."""

import inspect
import json
import types
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
import yaml
from pydantic.fields import FieldInfo

from advrisk.cli.options import AsJson, Details, OfCsv, OfModels, OfWhere, RunFolder
from advrisk.core.errors import StudyError
from advrisk.core.numbers import parse_number
from advrisk.core.registry import Part
from advrisk.study import AssessmentTraits, assessments
from advrisk.study.fields import Shown, Strict

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
    return {part.name: made_command(part.name, _function(part), _help(part)) for part in assessments.brought()}


def made_command(name: str, function: Callable[..., None], words: str | None = None) -> Any:
    """A function as a command; its help is its docstring, unless other words are given."""
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command(name, help=words)(function)
    return typer.main.get_command(app)


def _help(part: Part[AssessmentTraits]) -> str:
    return f"{part.summary}\n\nExample: advrisk show {part.name} runs/signs"


def _function(part: Part[AssessmentTraits]) -> Callable[..., None]:
    """What the command calls, with the signature that typer reads its options from."""

    def show(folder: str, **given: Any) -> None:
        shared = {name: given.pop(name) for name in _SHARED}
        show_registered(part.name, folder, read_options(part.traits.accepts, given), **shared)

    return with_options(show, part.traits, shared=_SHARED)


def with_options(
    command: Callable[..., None], traits: AssessmentTraits, *, shared: Mapping[str, Any], without: tuple[str, ...] = ()
) -> Callable[..., None]:
    """The command with the signature that typer reads: a run, what can be asked, and options that are shared."""
    run = inspect.Parameter("folder", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=RunFolder)
    fields = {name: field for name, field in traits.accepts.model_fields.items() if name not in without}
    stated = traits.spec.model_fields
    own = [_keyword(name, _option(name, field, in_study=name in stated)) for name, field in fields.items()]
    listed = [run, *own, *(_keyword(name, option) for name, option in shared.items())]
    command.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in listed}
    return command


def _keyword(name: str, option: Any) -> inspect.Parameter:
    default = False if option in _FLAGS else None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=option, default=default)


def question_command(
    name: str,
    words: str,
    *,
    where: bool = False,
    by_hand: Mapping[str, tuple[Any, Callable[[Any], Any]]] | None = None,
    without: tuple[str, ...] = (),
) -> Callable[..., None]:
    """`advrisk show NAME` of a built-in question: its options are the fields of its spec.

    `by_hand` has fields that are written in another way than their type says: the option, and what reads it.
    """
    traits, by_hand = assessments.built_in[name], by_hand or {}
    shared = {field: option for field, (option, _) in by_hand.items()} | ({"where": OfWhere} if where else {})

    def show(folder: str, *, details: bool, out_csv: str | None, as_json: bool, **given: Any) -> None:
        from advrisk.api import Run
        from advrisk.cli.lines import show_finding

        run = Run.open(folder).part(where=given.pop("where", None))
        options = {field: read(given.pop(field)) for field, (_, read) in by_hand.items()}
        found = run.context.result(name, **read_options(traits.accepts, given), **options)
        show_finding(run, name, found, details=details, out_csv=out_csv, as_json=as_json)

    show.__doc__ = words
    last = {"details": Details, "out_csv": OfCsv, "as_json": AsJson}
    return with_options(show, traits, shared=shared | last, without=(*without, *by_hand))


def read_options(spec: type[Strict], given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of options as the fields of a spec take them; those that were not given are left out."""
    fields = spec.model_fields
    return {name: _read(name, value, fields[name]) for name, value in given.items() if value is not None}


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


def _option(name: str, field: FieldInfo, *, in_study: bool) -> Any:
    """An option of the field's own type, where that is plain or a list; else text that is read as YAML."""
    kind, written = _plain_type(field.annotation), _written(name, field)
    flag = written.option
    words = f"{flag}/--no-{flag.removeprefix('--')}" if kind is bool else flag
    metavar = written.metavar or {None: "YAML", float: "NUMBER", list: "NAME", dict: "NAME=VALUE"}.get(kind)
    taken = list[str] if kind in (list, dict) else str if kind in (None, float) else kind
    sentences = [field.description or "", "Repeat for more." if taken == list[str] else ""]
    sentences += [_default(field)] if in_study else []
    return Annotated[taken | None, typer.Option(words, metavar=metavar, help=" ".join(filter(None, sentences)))]


def _written(name: str, field: FieldInfo) -> Shown:
    """How the option is called, and its value."""
    stated = next((one for one in field.metadata if isinstance(one, Shown)), Shown())
    return replace(stated, option=stated.option or f"--{name.replace('_', '-')}")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "Required."
    value = field.get_default(call_default_factory=True)
    return "Default: the study's." if value in (None, [], {}) else f"Default: the study's, or {_plain_text(value)}."


def _plain_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _read(name: str, given: Any, field: FieldInfo) -> Any:
    """The value of an option: numbers may be fractions, and what is not plain is YAML."""
    kind, option = _plain_type(field.annotation), _written(name, field).option
    try:
        if kind is dict:
            return pairs_of(option, given, (field.description or "NAME=VALUE").rstrip(".").rpartition(" ")[2])
        return parse_number(given) if kind is float else given if kind is not None else yaml.safe_load(given)
    except ValueError as error:
        raise StudyError(f"{option}: {error}") from None
    except yaml.YAMLError:
        raise StudyError(f"{option}: found {given!r}, which is no YAML, as in '[a, b]'") from None


def pairs_of(option: str, given: list[str], example: str) -> dict[str, str]:
    """`NAME=VALUE`, each once, as a mapping."""
    pairs = [text.partition("=") for text in given]
    for (name, sign, value), text in zip(pairs, given, strict=True):
        if not (name.strip() and sign and value.strip()):
            raise StudyError(f"{option} is NAME=VALUE, as in {example}; found {text!r}")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _plain_type(annotation: Any) -> Any:
    """The type of an option that a field's annotation allows; None where it must be read as YAML."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _plain_type(arguments[0])
    if origin in (Union, types.UnionType):
        members = [one for one in arguments if one is not type(None)]
        return _plain_type(members[0]) if len(members) == 1 else None
    if origin in (list, dict) and _is_plain(arguments[-1]):
        return origin
    return annotation if annotation in _PLAIN or origin is Literal else None


def _is_plain(annotation: Any) -> bool:
    """Whether text is a value of this type: of a plain one, or of several."""
    members = get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)
    if get_origin(annotation) is Annotated:
        return _is_plain(get_args(annotation)[0])
    return all(_plain_type(one) in _PLAIN for one in members)

"""`advrisk show NAME` of an assessment: its options are the fields of its spec."""

import inspect
import json
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
import yaml
from pydantic import BeforeValidator
from pydantic.fields import FieldInfo

from advrisk.cli.options import OF_OUTPUT, OfModels, OfWhere, Output, keyword, with_options
from advrisk.cli.verbosity import App
from advrisk.core.errors import StudyError
from advrisk.core.numbers import parse_number, parse_rate, parse_share
from advrisk.core.registry import Part
from advrisk.study import AssessmentTraits, assessments
from advrisk.study.fields import OptionText

OfLevel = Annotated[float | None, typer.Option("--level", help="How sure intervals are (default: 0.95).")]
_PLAIN = (bool, int, float, str)
_SHARED: Mapping[str, Any] = {"model": OfModels, "where": OfWhere, "level": OfLevel}  # by those that packages bring


def brought_commands() -> dict[str, Any]:
    """A command for each assessment that a package brings, by its name."""
    return {
        part.name: made_command(part.name, _brought(part), part.traits.help or part.summary)
        for part in assessments.from_packages()
    }


def made_command(name: str, function: Callable[..., None], summary: str, more: str = "", example: str = "") -> Any:
    """A function as a command, with a help of its summary, more paragraphs, and an example's further words."""
    app = App(rich_markup_mode=None, add_completion=False)
    shown = f"Example: {' '.join(filter(None, ['advrisk show', name, 'runs/signs', example]))}"
    app.command(name, help="\n\n".join(filter(None, [summary, more, shown])))(function)
    return typer.main.get_command(app)


def _brought(part: Part[AssessmentTraits]) -> Callable[..., None]:
    """What the command of a package's assessment calls."""

    def show(
        folder: str,
        *,
        model: list[str] | None,
        where: list[str] | None,
        level: float | None,
        details: bool,
        out_csv: str | None,
        as_json: bool,
        **given: Any,
    ) -> None:
        from advrisk.api import Run
        from advrisk.cli.lines import show_result, shown_part
        from advrisk.render.terminal import print_sections
        from advrisk.report.records import finding_record

        run = Run.open(folder).part(models=model, where=where)
        found = run.assess(part.name, level=level, **read_options(part.traits, given))
        shown = shown_part(run, lambda: finding_record(found), lambda: print_sections(found.sections, details=details))
        show_result(found, *shown, Output(details, out_csv, as_json))

    shared = (keyword(*one) for one in {**_SHARED, **OF_OUTPUT}.items())
    return with_options(show, [*field_options(part.traits), *shared])


def field_options(traits: AssessmentTraits) -> Iterator[inspect.Parameter]:
    """An option for each field of what can be asked."""
    stated = traits.spec.model_fields
    for name, field in traits.accepts.model_fields.items():
        yield keyword(name, _option(name, field, in_study=name in stated))


def read_options(traits: AssessmentTraits, given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of options as the fields of a spec take them; those that were not given are left out."""
    fields = traits.accepts.model_fields
    return {name: _read(name, value, fields[name]) for name, value in given.items() if value is not None}


def _option(name: str, field: FieldInfo, *, in_study: bool) -> Any:
    """An option of the field's own type, where that is plain or a list; else text that is read as YAML."""
    kind, written = _plain_type(field.annotation), _written(name, field)
    flag = written.option
    declared = f"{flag}/--no-{flag.removeprefix('--')}" if kind is bool else flag
    metavar = written.metavar or {None: "YAML", float: "NUMBER", list: "NAME", dict: "NAME=VALUE"}.get(kind)
    taken = list[str] if kind in (list, dict) else str if kind in (None, float) else kind
    words = field.description or ""
    if taken == list[str]:
        words = f"{words.removesuffix('.')}; repeat for more." if words else "Repeat for more."
    words = " ".join(filter(None, [words, _default(field) if in_study else ""]))
    return Annotated[taken | None, typer.Option(declared, metavar=metavar, help=words)]


def _written(name: str, field: FieldInfo) -> OptionText:
    """How the option is called, and its value."""
    stated = next((one for one in field.metadata if isinstance(one, OptionText)), OptionText())
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
        return _parser(field)(given) if kind is float else given if kind is not None else yaml.safe_load(given)
    except ValueError as error:
        raise StudyError(f"{option}: {error}") from None
    except yaml.YAMLError:
        raise StudyError(f"{option}: found {given!r}, which is no YAML, as in '[a, b]'") from None


def _parser(field: FieldInfo) -> Callable[[object], float]:
    """How the field reads a number, so that an option takes what a study does: also per cent, where that is a share."""
    stated = [one.func for one in field.metadata if isinstance(one, BeforeValidator)]
    return next((one for one in (parse_rate, parse_share) if one in stated), parse_number)


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

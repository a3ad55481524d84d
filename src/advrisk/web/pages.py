"""Pages from templates. Whatever comes from outside, names above all, is escaped."""

from functools import cache
from typing import TYPE_CHECKING, Any

from fastapi.responses import HTMLResponse

if TYPE_CHECKING:
    from jinja2 import Environment


def rendered(template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """A page."""
    return HTMLResponse(_environment().get_template(template).render(values), status)


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("advrisk.web", "templates")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)

"""The pages: one for a labeller, one for the operator, and the few requests that they make.

Whoever holds a labeller's link may label this run and do nothing else; whoever holds the operator's link may invite
and look. An address with any other token does not exist, except that a link that was revoked says so.
"""

import math
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path as Folder
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException as AnyHTTPException

from advrisk.answers.records import AnswerRefusedError, Labeller, LabellingTrial, NameRefusedError, words
from advrisk.core.errors import AdvriskError, RiskError
from advrisk.web.guard import Guard
from advrisk.web.labelling import GRACE_S, Labelling, hash_of, new_token
from advrisk.web.pictures import png
from advrisk.web.trials import Asking, n_to_walk

if TYPE_CHECKING:
    from jinja2 import Environment


GOAL = 60  # answers that make a good curve
_REVOKED = "This link was revoked. Your answers are kept. Ask whoever sent it to you if you need a new one."
_STATIC = {"label.js": "text/javascript", "operator.js": "text/javascript", "curve.js": "text/javascript"}
_STATIC |= {"style.css": "text/css", "icon.svg": "image/svg+xml"}
PER_S = 30.0  # a question takes three or four requests
AT_ONCE = 150.0


def rendered(template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """A page."""
    return HTMLResponse(_environment().get_template(template).render(values), status)


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("advrisk.web", "templates")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


class Allowance:
    """A bucket of requests for each link, which fills again while time passes."""

    def __init__(
        self, *, per_s: float = PER_S, at_once: float = AT_ONCE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_s, self._at_once, self._clock = per_s, at_once, clock
        self._lock = threading.Lock()
        self._left: dict[str, tuple[float, float]] = {}  # link -> requests that are left, and as of when

    def wait_s(self, link: str) -> float:
        """Take one request of a link: 0 if it is allowed, else the seconds until one is."""
        with self._lock:
            now = self._clock()
            left, then = self._left.get(link, (self._at_once, now))
            left = min(self._at_once, left + (now - then) * self._per_s)
            allowed = left >= 1
            self._left[link] = (left - 1 if allowed else left, now)
            return 0.0 if allowed else (1 - left) / self._per_s


@dataclass(frozen=True)
class Service:
    """Everything that the pages need."""

    labelling: Labelling
    asking: Asking
    operator_hash: str  # of the operator's token
    base: str  # the address of the server, for links
    show_curve: bool = False
    allowance: Allowance = field(default_factory=Allowance)

    def admit(self, link: str) -> None:
        """Take a request of a link, or refuse it: there were too many."""
        if wait_s := self.allowance.wait_s(link):
            headers = {"Retry-After": str(math.ceil(wait_s))}
            raise HTTPException(429, "there were too many requests; wait a moment", headers)


class Said(BaseModel):
    """An answer, as the page sends it."""

    nonce: str = Field(min_length=1, max_length=64)
    said: str = Field(min_length=1, max_length=20)


class Invited(BaseModel):
    """The name of somebody to invite."""

    name: str = Field(min_length=1, max_length=200)


def make_app(service: Service, *, loopback: bool = True, public: str | None = None) -> Guard:
    """The application, behind its guard."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, lifespan=_lifespan(service))
    app.add_exception_handler(AnyHTTPException, _plain_error)
    app.add_exception_handler(RequestValidationError, _bad_request)
    app.add_exception_handler(AdvriskError, _known_error)
    _add_static(app)
    _add_labeller(app, service)
    _add_operator(app, service)
    return Guard(app, loopback=loopback, public=public)


def _lifespan(service: Service) -> Callable[[FastAPI], Any]:
    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        service.labelling.start()
        yield
        service.labelling.stop()

    return lifespan


def _add_static(app: FastAPI) -> None:
    folder = files("advrisk.web") / "static"

    @app.get("/static/{name}")
    def static(name: str) -> Response:
        if name not in _STATIC:
            raise HTTPException(404)
        return Response((folder / name).read_bytes(), media_type=_STATIC[name])


# A labeller


def _add_labeller(app: FastAPI, service: Service) -> None:
    labelling, design = service.labelling, service.labelling.settings.design

    def known(token: Annotated[str, Path(max_length=100)]) -> Labeller:
        labeller = labelling.labeller(token)
        if labeller is None:
            raise HTTPException(403 if labelling.was_revoked(token) else 404)
        service.admit(f"labeller {labeller.id}")
        return labeller

    Known = Annotated[Labeller, Depends(known)]

    @app.get("/l/{token}")
    def page(labeller: Known) -> HTMLResponse:
        return rendered(
            "label.html",
            name=labeller.name,
            design=design,
            words=words(design),
            show_curve=service.show_curve,
        )

    @app.get("/l/{token}/question")
    def question(labeller: Known) -> dict[str, Any]:
        return _question(service, labeller)

    @app.post("/l/{token}/answer")
    def answer(labeller: Known, given: Said) -> dict[str, Any]:
        labelling.store.put_answer(labeller.id, given.nonce, given.said)
        question = _question(service, labeller)  # by what is known already: nobody waits for a fit
        labelling.notice()
        return question

    @app.post("/l/{token}/undo")
    def undo(labeller: Known) -> dict[str, Any]:
        labelling.store.undo(labeller.id, new_token())
        labelling.notice()
        return _question(service, labeller)

    @app.get("/l/{token}/picture/{nonce}/{which}.png")
    def picture(labeller: Known, nonce: str, which: str) -> Response:
        trial = labelling.store.open_trial(labeller.id)
        if trial is None or trial.nonce != nonce or which not in _pictures(service, trial):
            raise HTTPException(404)
        seen = labelling.store.put_seen(trial.id)
        limit = labelling.settings.seconds
        if limit is not None and which != "original" and time.time() > seen + limit + GRACE_S:
            raise HTTPException(410)
        return Response(png(_pictures(service, trial)[which]), media_type="image/png")

    @app.get("/l/{token}/curve")
    def curve(labeller: Known) -> JSONResponse:  # noqa: ARG001
        if not service.show_curve:
            raise HTTPException(404)
        labelling.notice()
        return JSONResponse(labelling.state["figure"] if labelling.state else {"pending": True})


def _question(service: Service, labeller: Labeller) -> dict[str, Any]:
    """What the page needs to show the open question; nothing in it tells the answer."""
    labelling = service.labelling
    trial = labelling.question(labeller, service.asking)
    model = service.asking.model
    seen = labelling.seen(labeller)
    known: dict[str, Any] = {
        "n_answers": seen.n_answers,
        "n_done": seen.n_answers if model is None else seen.n_walked(model),
        "goal": GOAL if model is None else n_to_walk(labelling.pool, model),
        "can_undo": labelling.store.can_undo(labeller.id),
        "done": trial is None,
    }
    if trial is None:
        return known
    left = _time_left(labelling.settings.seconds, trial.seen)
    return known | {"nonce": trial.nonce, "pictures": sorted(_pictures(service, trial)), "left_s": left}


def _time_left(limit: float | None, seen: float | None) -> float | None:
    """For how many seconds more a picture may be looked at; None: as long as one likes."""
    if limit is None:
        return None
    return limit if seen is None else max(0.0, seen + limit - time.time())


def _pictures(service: Service, trial: LabellingTrial) -> dict[str, Any]:
    """The pictures of a trial by the names that the page knows them by."""
    original, changed = service.labelling.pool.pictures(trial.shown)
    match service.labelling.settings.design:
        case "yes-no":
            return {"question": changed}
        case "side-by-side":
            return {"original": original, "question": changed}
        case "forced-choice":
            both = (changed, original) if trial.shown.changed_first else (original, changed)
            return dict(zip(("first", "second"), both, strict=True))


# The operator


def _add_operator(app: FastAPI, service: Service) -> None:
    labelling = service.labelling

    def operator(token: Annotated[str, Path(max_length=100)]) -> None:
        if not secrets.compare_digest(hash_of(token), service.operator_hash):
            raise HTTPException(404)
        service.admit("operator")

    guarded = [Depends(operator)]

    @app.get("/o/{token}", dependencies=guarded)
    def page() -> HTMLResponse:
        settings = labelling.settings
        return rendered("operator.html", settings=settings, asking=service.asking, pool=labelling.pool)

    @app.get("/o/{token}/state", dependencies=guarded)
    def state() -> JSONResponse:
        labelling.notice()
        behind, summary = labelling.behind, labelling.state
        if summary is None:
            return JSONResponse({"pending": True, "behind": behind})
        return JSONResponse(summary | {"behind": behind, "n_chosen_by": labelling.chooser.n_answers})

    @app.post("/o/{token}/invite", dependencies=guarded)
    def invite(given: Invited) -> dict[str, str]:
        try:
            token = labelling.invite(given.name)
        except NameRefusedError as error:
            raise HTTPException(422, str(error)) from None
        labelling.notice()
        return {"name": " ".join(given.name.split()), "link": f"{service.base}/l/{token}"}

    @app.get("/o/{token}/evasion.json", dependencies=guarded)
    def evasion() -> Response:
        text = _evasion_text(labelling)
        headers = {"Content-Disposition": 'attachment; filename="evasion.json"'}
        return Response(text, media_type="application/json", headers=headers)


def _evasion_text(labelling: Labelling) -> str:
    """The file that `label --fit` writes."""
    with TemporaryDirectory() as folder:
        target = Folder(folder) / "evasion.json"
        labelling.write_curve(target)
        return target.read_text(encoding="utf-8")


# Errors


async def _plain_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, AnyHTTPException)
    usual = {
        403: _REVOKED,
        404: "there is nothing here",
        405: "not this way",
        410: "the time for this picture is over",
    }
    reason = usual.get(error.status_code, error.detail)
    if error.status_code == 403 and "text/html" in request.headers.get("accept", ""):
        return rendered("ended.html", status=403, reason=reason)
    return JSONResponse({"error": reason}, error.status_code, headers=error.headers)


async def _bad_request(_request: Request, _error: Exception) -> Response:
    return JSONResponse({"error": "this request is not understood"}, 422)


async def _known_error(_request: Request, error: Exception) -> Response:
    if isinstance(error, AnswerRefusedError):
        return JSONResponse({"error": str(error)}, 409)
    if isinstance(error, RiskError):
        return JSONResponse({"error": str(error)}, 422)
    # Other messages name files and machines, which are not for labellers to know.
    return JSONResponse({"error": "this does not work at the moment; try again"}, 503)

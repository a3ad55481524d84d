"""The verb `label`: people are shown pictures, and their answers become an evasion curve."""

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from advrisk.cli import complain
from advrisk.cli.options import RunFolder
from advrisk.core.errors import RunError
from advrisk.core.names import counted, visible_line
from advrisk.core.plain import json_text
from advrisk.core.traits import Norm

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable

    from advrisk.answers.records import LabellingSettings
    from advrisk.answers.store import AnswerStore
    from advrisk.web.labelling import Wishes
    from advrisk.web.serve import Place
    from advrisk.web.stimuli import Pool
    from advrisk.web.summary import LabellingSummary
    from advrisk.web.trials import Asking

_Design = Literal["yes-no", "side-by-side", "forced-choice"]
_Trials = Literal["adaptive", "random"]
_Curve = Literal["bayesian", "monotone"]


def label(
    folder: RunFolder,
    answers: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Where answers are kept: sqlite:///FILE (default: in RUN) or postgresql://…"),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to serve on; only this machine unless given.")] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="The port (0: a free one; default: that of last time).")
    ] = None,
    public_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The address by which labellers reach the page, through a server with TLS."),
    ] = None,
    design: Annotated[
        _Design | None, typer.Option(help="What a labeller is asked (default: yes-no, or as before).")
    ] = None,
    trials: Annotated[
        _Trials, typer.Option(help="Sizes that tell most, or the samples of a model in random order.")
    ] = "adaptive",
    model: Annotated[str | None, typer.Option(help="With --trials random: whose samples.")] = None,
    norm: Annotated[Norm | None, typer.Option(help="The norm of sizes (default: the study's).")] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0.05, max=3600, help="Cover a picture after so many seconds.")
    ] = None,
    catch: Annotated[
        float, typer.Option(min=0.0, max=0.5, help="Share of unchanged pictures (forced choice: of easy ones).")
    ] = 1 / 6,
    show_curve: Annotated[bool, typer.Option("--show-curve", help="Labellers see the curve, too.")] = False,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the operator's page in a browser.")] = False,
    invite: Annotated[
        str | None, typer.Option(metavar="NAME", help="Print a link for this labeller, and do nothing else.")
    ] = None,
    revoke: Annotated[
        str | None, typer.Option(metavar="NAME", help="End the link of this labeller, and do nothing else.")
    ] = None,
    summary: Annotated[
        bool, typer.Option("--summary", help="Print what the answers say, and do nothing else.")
    ] = False,
    fit: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the evasion curve to FILE, and do nothing else.")
    ] = None,
    curve: Annotated[
        _Curve, typer.Option(help="With --fit: a curve with a shape, or one that only falls.")
    ] = "bayesian",
    as_json: Annotated[bool, typer.Option("--json", help="With --summary: print JSON for machines.")] = False,
) -> None:
    """Ask people which changes they notice, on a web page.

    Serves a page for the operator, who invites labellers and watches, until Ctrl-C.

    Example: advrisk label runs/signs --design side-by-side --open
    """
    from advrisk.ledger.sync.remote import url_of
    from advrisk.web.labelling import Wishes

    if sum((invite is not None, revoke is not None, summary, fit is not None)) > 1:
        raise RunError("--invite, --revoke, --summary and --fit are different things to do; say one of them")
    if as_json and not summary:
        raise RunError("--json prints a summary for machines: say --summary, too")
    if curve != "bayesian" and fit is None:
        raise RunError("--curve says which curve is written: name its file with --fit")
    if answers is None and (url := url_of(folder)):
        raise RunError(f"{url}: answers cannot be kept there; name a database with --answers")
    wishes = Wishes(answers, norm, design, seconds)
    if summary:
        _print_summary(folder, wishes, as_json=as_json)
    elif fit is not None:
        _write_curve(folder, wishes, fit, monotone=curve == "monotone")
    elif revoke is not None:
        _revoke(folder, wishes, revoke)
    else:
        from advrisk.web.serve import Place, checked_public
        from advrisk.web.trials import Asking

        place = Place(host, port, None if public_url is None else checked_public(public_url))
        if invite is not None:
            _invite(folder, wishes, invite, place)
            return

        def asking(settings: "LabellingSettings", pool: "Pool") -> Asking:
            return Asking(settings.design, trials, model, catch).checked(pool)

        _serve(folder, wishes, asking, place, show_curve=show_curve, open_browser=open_browser)


def _serve(
    folder: str,
    wishes: "Wishes",
    asking: "Callable[[LabellingSettings, Pool], Asking]",
    place: "Place",
    *,
    show_curve: bool,
    open_browser: bool,
) -> None:
    """Serve until interrupted. What cannot be asked, or not there, is refused before a database is made."""
    from advrisk.web.labelling import open_labelling
    from advrisk.web.serve import serve

    with ExitStack() as stack:
        sockets: list[socket.socket] = []

        def ready(settings: "LabellingSettings", pool: "Pool", store: "AnswerStore | None") -> None:
            asking(settings, pool)
            sockets.append(stack.enter_context(closing(place.listen(store.address() if store else None))))

        opened = stack.enter_context(open_labelling(folder, wishes, create=True, ready=ready))
        asked = asking(opened.settings, opened.pool)
        serve(opened, asked, place, sockets[0], show_curve=show_curve, open_browser=open_browser, say=_say)
        given, undone = opened.store.revision()
    print(f"Ended with {counted(given - undone, 'answer')}; the same command goes on.")


def _say(link: str) -> None:
    print(f"Operator's page: {link}", flush=True)
    print("Keep this link to yourself; invite labellers there. Ctrl-C ends; no answer is lost.", flush=True)


def _invite(folder: str, wishes: "Wishes", name: str, place: "Place") -> None:
    from advrisk.answers.store import checked_name
    from advrisk.web.labelling import open_labelling

    said = place.public or (place.address(place.port) if place.port else None)

    def ready(_settings: "LabellingSettings", _pool: "Pool", store: "AnswerStore | None") -> None:
        checked_name(name)
        if said is None and (store is None or store.link_base() is None):
            raise RunError(
                f"{folder}: its pages were never served, so a link has no address; start `advrisk label {folder}` "
                "first, or say --port or --public-url"
            )

    with open_labelling(folder, wishes, create=True, ready=ready) as opened:
        print(f"{said or opened.store.link_base()}/l/{opened.invite(name)}")


def _revoke(folder: str, wishes: "Wishes", name: str) -> None:
    from advrisk.answers.tables import NoAnswersError
    from advrisk.web.labelling import open_labelling

    def ready(_settings: "LabellingSettings", _pool: "Pool", store: "AnswerStore | None") -> None:
        if store is None:
            raise NoAnswersError(f"{folder}: nobody was invited yet; `advrisk label {folder} --invite NAME` does")

    with open_labelling(folder, wishes, create=True, ready=ready) as opened:
        opened.revoke(name)
    print(f"The link of {name!r} has ended; all answers are kept. --invite makes a new link.")


def _print_summary(folder: str, wishes: "Wishes", *, as_json: bool) -> None:
    from advrisk.web.labelling import open_labelling

    with open_labelling(folder, wishes, create=False) as opened:
        found = opened.current_summary()
        if as_json:
            print(json_text(found))
        else:
            _print_lines(found)
            _warn(found.warnings)


def _print_lines(found: "LabellingSummary") -> None:
    limit = "" if found.settings.seconds is None else f", {found.settings.seconds:g} s"
    print(f"{counted(found.n_answers, 'answer')} ({found.settings.design}{limit}; sizes in {found.settings.norm})")
    for who in found.labellers:
        print(f"  {who.name}: {who.n_answers}, catch trials {who.n_catch_right} of {who.n_catch} right")
    alpha = found.agreement.alpha
    shown = "not defined yet" if alpha is None else f"{alpha:.2f} on {counted(found.agreement.n_units, 'picture')}"
    print(f"agreement (Krippendorff's alpha): {shown}")
    if not found.fitted:
        print("curve and damage: unknown, until some changes were noticed and some not")
    if (half := found.half) is not None:
        print(f"half goes unnoticed at size {half.value:.3g} [{half.low:.3g}, {half.high:.3g}]")
    for model, damage in found.damage.items():
        print(f"damage of {visible_line(model)}: {damage.in_percent()}")
    for model, share in found.monte_carlo.items():
        n = counted(share.n, "sample")
        print(f"seen of {visible_line(model)}: {share.in_percent()} of {n} broken and unnoticed")


def _warn(warnings: "Iterable[str]") -> None:
    for warning in warnings:
        complain(warning)


def _write_curve(folder: str, wishes: "Wishes", target: str, *, monotone: bool) -> None:
    from advrisk.ledger.sync.files import output_file
    from advrisk.web.labelling import open_labelling

    with open_labelling(folder, wishes, create=False) as opened:
        with output_file(target) as path:
            written = opened.write_curve(path, monotone=monotone)
        _warn(written.notes)
        print(f"{target} written from {counted(written.n_answers, 'answer')}")

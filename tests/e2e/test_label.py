"""People at the labelling page: scripted ones, in a real browser, whose true curve is known."""

import json
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from advrisk import Run, Study
from advrisk.cli.app import app
from advrisk.core.errors import AdvriskError
from advrisk.risk.evasion import read_evasion
from advrisk.web.labelling import Wishes, open_labelling
from advrisk.web.trials import Asking

CHROMIUM = shutil.which("chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
Advrisk = Callable[..., "subprocess.CompletedProcess[str]"]

needs_browser = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: the browser tests did not run"),
]


@pytest.fixture(scope="module")
def digits_run(nets: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two nets, 64 digits of 8 x 8, the smallest perturbations that break them."""
    weights = {name: str(nets / f"{name}.safetensors") for name in ("plain", "noisy")}
    model = {"source": "torch", "factory": "advrisk.parts.models.small:SmallCnn", "args": {"size": 8, "width": 8}}
    study = {
        "name": "digits-study",
        "seed": 5,
        "data": {"source": "digits", "evaluate": 64},
        "models": {name: model | {"weights": path} for name, path in weights.items()},
        "arms": [{"attack": "minimum-norm", "norm": "linf"}, {"attack": "pgd", "norm": "linf", "eps": 0.2, "steps": 5}],
        "shard": 32,
        "assess": {"damage": {"norm": "linf", "resamples": 200}},
    }
    folder = tmp_path_factory.mktemp("labelled") / "run"
    Study.from_dict(study).run(folder)
    return folder


@pytest.fixture
def run(digits_run: Path, tmp_path: Path) -> Path:
    """The run, without answers."""
    return Path(shutil.copytree(digits_run, tmp_path / "run"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


class Server:
    """`advrisk label` in a process of its own."""

    def __init__(self, run: Path, *words: str) -> None:
        command = [sys.executable, "-m", "advrisk", "label", str(run), *words]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.fullmatch(r"Operator's page: (http://127\.0\.0\.1:(\d+)/o/[\w-]{32})\n", line)
        assert found, line + self.process.stdout.read()
        self.link, self.port = found[1], found[2]

    def end(self, how: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(how)
        self.process.communicate(timeout=60)
        return self.process.returncode


@contextmanager
def served(run: Path, *words: str) -> Iterator[Server]:
    server = Server(run, *words)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.end(signal.SIGKILL)
        assert server.process.stdout is not None
        server.process.stdout.close()


def link_for(run: Path, name: str) -> str:
    return CliRunner().invoke(app, ["label", str(run), "--invite", name], catch_exceptions=False).stdout.strip()


MIDDLE = 0.08


class Labeller:
    """Somebody at the page, who notices a change of size s unless a coin that shows Psi(s) says otherwise."""

    def __init__(
        self, browser: Any, run: Path, link: str, *, seed: int = 0, middle: float = MIDDLE, **context: Any
    ) -> None:
        self.run, self.rng, self.last, self.middle = run, np.random.default_rng(seed), "", middle
        self.complaints: list[str] = []
        self.context = browser.new_context(**({"viewport": {"width": 1000, "height": 800}} | context))
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(link)

    def next(self) -> tuple[float, bool]:
        """Wait for the next question; its size, and whether the changed picture is the first one."""
        self.page.wait_for_selector(f'#stage[data-nonce]:not([data-nonce="{self.last}"])')
        self.last = self.page.get_attribute("#stage", "data-nonce")
        with sqlite3.connect(self.run / "answers.sqlite") as database:
            found = database.execute(
                "SELECT size, changed_first FROM advrisk_trials WHERE nonce = ?", (self.last,)
            ).fetchone()
        database.close()
        return float(found[0]), bool(found[1])

    def answer(self, design: str = "yes-no") -> None:
        size, first = self.next()
        unseen = self.rng.random() < psi(size, design, self.middle)
        if design == "forced-choice":
            right = not unseen or self.rng.random() < 0.5
            key = "ArrowLeft" if first == right else "ArrowRight"
        else:
            key = "ArrowLeft" if unseen else "ArrowRight"
        self.page.keyboard.press(key)


def psi(sizes: Any, design: str = "yes-no", middle: float = MIDDLE) -> Any:
    """A labeller's true curve: lapses of 2 %, false alarms of 4 % where there can be any, half of what could be
    noticed at the middle."""
    false_alarms = 0.0 if design == "forced-choice" else 0.04
    return 0.02 + (0.98 - false_alarms) / (1 + (np.asarray(sizes) / middle) ** 2.5)


def half_size(curve: Callable[[Any], Any]) -> float:
    """Where a falling curve is one half."""
    sizes = np.geomspace(0.001, 1.0, 100_001)
    return float(sizes[np.argmin(np.abs(curve(sizes) - 0.5))])


def assert_held(run: Path, found: dict[str, Any], curve: Callable[[Any], Any]) -> None:
    """The true half size and the true damage of each model lie in their intervals."""
    assert found["half_size"]["low"] <= half_size(curve) <= found["half_size"]["high"]
    distances = Run.open(run).damage().distances.by_model
    assert set(found["damage"]) == set(distances) == {"noisy", "plain"}
    for model, damage in found["damage"].items():
        finite = np.isfinite(distances[model])
        assert damage["low"] <= curve(distances[model][finite]).sum() / len(finite) <= damage["high"]


def until_known(labeller: Labeller, server: Server, n: int) -> None:
    """Wait until the next question is chosen by so many answers."""
    deadline = time.monotonic() + 60
    while labeller.context.request.get(f"{server.link}/state").json().get("n_chosen_by") != n:
        assert time.monotonic() < deadline
        labeller.page.wait_for_timeout(20)


def n_stored(run: Path) -> int:
    return len(Run.open(run).answers())


def assert_all_on_the_phone(page: Any, design: str, scale: float) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate("document.documentElement.scrollHeight") <= 640
    images = page.locator("#stage img")
    assert images.count() == (1 if design == "yes-no" else 2)
    for image in images.all():
        box = image.bounding_box()
        per_pixel = box["width"] * scale / 8
        assert per_pixel >= 8
        assert per_pixel == pytest.approx(round(per_pixel), abs=0.01)
        assert box["height"] == pytest.approx(box["width"], abs=0.01)
        assert image.evaluate("image => getComputedStyle(image).imageRendering") == "pixelated"
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360
    for button in page.locator(".answers button").all():
        box = button.bounding_box()
        assert box["height"] >= 48
        assert box["y"] + box["height"] <= 640


class TestInBrowser:
    pytestmark = needs_browser

    @pytest.mark.parametrize("design", ["yes-no", pytest.param("forced-choice", marks=pytest.mark.slow)])
    def test_sixty_answers_by_keyboard_find_the_true_curve(
        self, browser: Any, run: Path, advrisk: Advrisk, tmp_path: Path, design: str
    ) -> None:
        with served(run, "--design", design) as server:
            labeller = Labeller(browser, run, link_for(run, "Ann"), seed=3)
            for n in range(60):
                labeller.answer(design)
                until_known(labeller, server, n + 1)  # so that the same is asked every time
            labeller.next()
            assert labeller.page.inner_text("#n") == "60"
            operator = browser.new_page(viewport={"width": 1200, "height": 900})
            operator.goto(server.link)
            operator.wait_for_selector('body[data-answers="60"]', timeout=20_000)
            assert operator.locator("#curve .mark").count() == 60
            shown = operator.inner_text("#damage")
            assert labeller.complaints == []
            assert server.end() == 0
        found = json.loads(advrisk("label", run, "--summary", "--json").stdout)
        assert found["n_answers"] == 60
        assert_held(run, found, lambda sizes: psi(sizes, design))
        for damage in found["damage"].values():
            assert damage["high"] - damage["low"] < (0.5 if design == "yes-no" else 0.6)  # a choice tells half as much
            assert f"{100 * damage['value']:.1f} %" in shown
        assert 7 <= found["labellers"][0]["n_catch"] <= 12
        if design == "yes-no":
            assert advrisk("label", run, "--fit", "evasion.json").returncode == 0
            curve = read_evasion(tmp_path / "evasion.json", norm="linf")
            assert curve([0.08]) == pytest.approx(psi(0.08), abs=0.25)
            chosen = json.loads(advrisk("select", run, "--evasion", "evasion.json", "--json").stdout)
            limits = {row["model"]: (row["damage"]["low"], row["damage"]["high"]) for row in chosen["models"]}
            assert limits == {name: (one["low"], one["high"]) for name, one in found["damage"].items()}

    def test_two_who_differ_make_one_curve(self, browser: Any, run: Path, advrisk: Advrisk) -> None:
        """The curve is that of a new labeller: between the two, as far as is known."""
        middles = {"Ann": 0.06, "Bob": 0.1}
        with served(run) as server:
            people = [
                Labeller(browser, run, link_for(run, name), seed=seed, middle=middle)
                for seed, (name, middle) in enumerate(middles.items())
            ]
            for n in range(30):
                people[n % 2].answer()
                until_known(people[n % 2], server, n + 1)
            for one in people:
                one.next()
                assert one.complaints == []
        found = json.loads(advrisk("label", run, "--summary", "--json").stdout)
        assert [(one["name"], one["n_answers"]) for one in found["labellers"]] == [("Ann", 15), ("Bob", 15)]
        assert_held(run, found, lambda sizes: (psi(sizes, middle=0.06) + psi(sizes, middle=0.1)) / 2)

    def test_a_killed_server_loses_nothing_and_the_page_goes_on(self, browser: Any, run: Path) -> None:
        with served(run) as server:
            labeller = Labeller(browser, run, link_for(run, "Ann"))
            for _ in range(7):
                labeller.answer()
            labeller.next()
            assert server.end(signal.SIGKILL) == -signal.SIGKILL
        assert n_stored(run) == 7
        labeller.page.keyboard.press("ArrowRight")
        labeller.page.wait_for_selector("#message:not(:empty)")
        with served(run) as again:
            assert again.port == server.port, "links stay valid"
            labeller.page.wait_for_selector("#message:empty", state="attached", timeout=20_000)
            labeller.page.wait_for_selector("button[data-said]:enabled")
            before = n_stored(run)
            assert before == 7, "the answer that was not taken is asked for again"
            labeller.last = ""
            for _ in range(3):
                labeller.answer()
            labeller.next()
            assert n_stored(run) == 10
        with sqlite3.connect(run / "answers.sqlite") as database:
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        database.close()

    def test_the_last_answer_can_be_taken_back_by_key(self, browser: Any, run: Path) -> None:
        with served(run):
            labeller = Labeller(browser, run, link_for(run, "Ann"))
            labeller.next()
            assert labeller.page.is_disabled("#undo")
            labeller.page.keyboard.press("ArrowRight")
            labeller.next()
            (given,) = Run.open(run).answers()
            assert not given.undetected
            labeller.page.keyboard.press("u")
            labeller.next()
            assert n_stored(run) == 0
            assert labeller.page.inner_text("#n") == "0"
            labeller.page.keyboard.press("ArrowLeft")
            labeller.next()
            (again,) = Run.open(run).answers()
            assert (again.sample, again.size, again.undetected) == (given.sample, given.size, True)
            assert labeller.page.is_enabled("#undo")
            labeller.page.click("#undo")
            labeller.next()
            assert n_stored(run) == 0
            assert labeller.complaints == []

    @pytest.mark.parametrize("design", ["yes-no", "side-by-side", "forced-choice"])
    def test_on_a_phone_nothing_is_cut_off_and_pixels_are_whole(self, browser: Any, run: Path, design: str) -> None:
        with served(run, "--design", design):
            for n, scale in enumerate((1, 2.625)):
                phone = {"viewport": {"width": 360, "height": 640}, "device_scale_factor": scale, "has_touch": True}
                labeller = Labeller(browser, run, link_for(run, f"Ann {n}"), **phone, is_mobile=True)
                labeller.next()
                assert_all_on_the_phone(labeller.page, design, scale)
                labeller.page.locator(".answers button").first.tap()
                labeller.next()
                assert n_stored(run) == n + 1
                assert labeller.complaints == []

    def test_a_walk_ends_and_its_last_answer_can_be_taken_back(
        self, browser: Any, nets: Path, advrisk: Advrisk, tmp_path: Path
    ) -> None:
        model = {"source": "torch", "factory": "advrisk.parts.models.small:SmallCnn", "args": {"size": 8, "width": 8}}
        study = {
            "name": "few-digits",
            "data": {"source": "digits", "evaluate": 6},
            "models": {"plain": model | {"weights": str(nets / "plain.safetensors")}},
            "arms": [{"attack": "minimum-norm", "norm": "linf"}],
            "assess": {"damage": {"norm": "linf"}},
        }
        run = Study.from_dict(study).run(tmp_path / "run").folder
        with served(run, "--trials", "random", "--catch", "0"):
            labeller = Labeller(browser, run, link_for(run, "Ann"))
            for n in range(6):  # the attack breaks every sample
                labeller.next()
                labeller.page.keyboard.press("ArrowRight" if n else "ArrowLeft")
            labeller.page.wait_for_selector('body[data-done="yes"]')
            assert not labeller.page.is_visible("#stage")
            assert "Thank you" in labeller.page.inner_text("h1")
            labeller.page.keyboard.press("ArrowRight")
            labeller.page.keyboard.press("u")
            labeller.next()
            assert labeller.page.is_visible("#question")
            assert labeller.page.inner_text("h1") == "Was this picture changed?"
            labeller.page.keyboard.press("ArrowRight")
            labeller.page.wait_for_selector('body[data-done="yes"]')
            labeller.page.click("#undo")
            labeller.next()
            labeller.page.keyboard.press("ArrowLeft")
            labeller.page.wait_for_selector('body[data-done="yes"]')
            assert labeller.complaints == []
        assert [answer.undetected for answer in Run.open(run).answers()] == [True, False, False, False, False, True]
        share = json.loads(advrisk("label", run, "--summary", "--json").stdout)["monte_carlo"]["plain"]
        assert (share["value"], share["n"]) == (pytest.approx(2 / 6), 6)

    def test_the_picture_is_covered_when_its_time_is_over(self, browser: Any, run: Path) -> None:
        with served(run, "--seconds", "0.3"):
            labeller = Labeller(browser, run, link_for(run, "Ann"))
            labeller.next()
            labeller.page.wait_for_selector(".cover:visible")
            assert not labeller.page.is_visible("#question")
            labeller.page.keyboard.press("ArrowRight")
            labeller.next()
            assert n_stored(run) == 1
            labeller.page.keyboard.press("u")
            labeller.next()
            assert labeller.page.is_visible(".cover"), "its time was over before"
            assert not labeller.page.is_visible("#question")
            labeller.page.keyboard.press("ArrowLeft")
            labeller.next()
            assert n_stored(run) == 1
            assert labeller.complaints == []

    def test_an_operator_invites_and_names_are_text(self, browser: Any, run: Path) -> None:
        name = "<script>alert(1)</script>"
        with served(run, "--show-curve") as server:
            operator = browser.new_page(viewport={"width": 360, "height": 700}, color_scheme="dark")
            complaints: list[str] = []
            operator.on("dialog", lambda dialog: complaints.append(dialog.message))
            operator.on("console", lambda message: complaints.append(message.text))
            operator.goto(server.link)
            operator.fill("#name", name)
            operator.press("#name", "Enter")
            link = operator.locator("#invited input").input_value()
            assert link.startswith(f"http://127.0.0.1:{server.port}/l/")
            operator.wait_for_selector("#labellers tbody th", timeout=20_000)
            assert operator.inner_text("#labellers tbody th") == name
            assert operator.is_visible("#no-damage")
            assert not operator.is_visible("#damage"), "of the prior alone"
            assert operator.evaluate("document.documentElement.scrollWidth") <= 360
            labeller = Labeller(browser, run, link)
            labeller.answer()
            labeller.next()
            assert labeller.page.inner_text(".who") == name
            labeller.page.wait_for_selector("#curve .line", state="attached")
            assert complaints == labeller.complaints == []


# Commands


def test_links_summary_and_fit_without_a_server(run: Path, advrisk: Advrisk, tmp_path: Path) -> None:
    for words in (["--summary"], ["--fit", "evasion.json"]):
        refused = advrisk("label", run, *words)
        assert (refused.returncode, "holds no answers yet" in refused.stderr) == (2, True)
    refused = advrisk("label", run, "--invite", "Ann")
    assert (refused.returncode, "never served" in refused.stderr) == (2, True)
    link = advrisk("label", run, "--invite", "Ann", "--port", "8123")
    assert re.fullmatch(r"http://127\.0\.0\.1:8123/l/[\w-]{32}\n", link.stdout)
    shown = advrisk("label", run, "--summary")
    assert shown.returncode == 0
    assert "0 answers (yes-no; sizes in linf)" in shown.stdout
    refused = advrisk("label", run, "--fit", "evasion.json")
    assert (refused.returncode, "found 0 answers" in refused.stderr) == (2, True)
    assert not (tmp_path / "evasion.json").exists()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--summary", "--invite", "Ann"], "different things to do"),
        (["--revoke", "Ann", "--invite", "Ann"], "different things to do"),
        (["--revoke", "Ann"], "nobody was invited yet"),
        (["--summary", "--curve", "monotone"], "name its file with --fit"),
        (["--trials", "random"], "needs --model, one of noisy, plain"),
        (["--trials", "random", "--model", "plane"], "did you mean 'plain'?"),
        (["--model", "plain"], "--model belongs to --trials random"),
        (
            ["--design", "forced-choice", "--trials", "random", "--model", "plain"],
            "use --design yes-no or side-by-side",
        ),
        (["--host", "256.1.1.1"], "cannot be served on"),
        (["--answers", "postgresql://me:hunter2@127.0.0.1:1/db"], "cannot be read or written"),
        (["--answers", "what"], "no address of a database"),
        (["--answers", "sqlite:///:memory:"], "kept in SQLite files and PostgreSQL"),
        (["--invite", "Ann"], "never served"),
        (["--invite", " ", "--port", "8123"], "1 to 80 printable characters"),
        (["--public-url", "label.example.org"], "such as https://label.example.org is needed"),
    ],
)
def test_mistakes_are_explained(run: Path, words: list[str], complaint: str) -> None:
    found = CliRunner().invoke(app, ["label", str(run), *words]).exception
    assert isinstance(found, AdvriskError)
    assert complaint in str(found)
    assert "hunter2" not in str(found)
    assert not (run / "answers.sqlite").exists(), "nothing is written before everything is known to be possible"


def test_links_are_those_of_the_public_address(run: Path, advrisk: Advrisk) -> None:
    public = ["--public-url", "https://label.example.org/"]
    link = advrisk("label", run, "--invite", "Ann", *public)
    assert re.fullmatch(r"https://label\.example\.org/l/[\w-]{32}\n", link.stdout)
    command = [sys.executable, "-m", "advrisk", "label", str(run), *public]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert re.fullmatch(r"Operator's page: https://label\.example\.org/o/[\w-]{32}\n", line)
        assert advrisk("label", run, "--invite", "Bob").stdout.startswith("https://label.example.org/l/")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 0


def test_designs_are_not_mixed(run: Path, advrisk: Advrisk) -> None:
    assert advrisk("label", run, "--design", "forced-choice", "--invite", "Ann", "--port", "8123").returncode == 0
    link = advrisk("label", run, "--design", "side-by-side", "--invite", "Ann", "--port", "8123").stdout
    with open_labelling(run, Wishes(), create=True) as opened:
        ann = opened.labeller(link.strip().rpartition("/")[2])
        assert ann is not None
        assert opened.question(ann, Asking(opened.settings.design)) is not None
    refused = advrisk("label", run, "--design", "yes-no", "--invite", "Bob", "--port", "8123")
    assert (refused.returncode, "holds answers of the design 'side-by-side'" in refused.stderr) == (2, True)
    assert advrisk("label", run, "--invite", "Bob", "--port", "8123").returncode == 0, "as before, unless said"


def test_the_server_ends_when_asked(run: Path) -> None:
    with served(run, "--port", "0") as server:
        assert server.end(signal.SIGINT) == 0

"""A report opened in a real browser."""

import shutil
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class Visit:
    """A page opened at some width, with everything it complained about or asked for; its questions are unfolded."""

    def __init__(
        self, browser: Any, report: Path, *, width: int = 1200, scheme: str = "light", folded: bool = False
    ) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(report.as_uri())
        self.page.wait_for_selector("html.drawn", state="attached")
        if not folded:
            self.unfold("details.question")

    def unfold(self, which: str = "details") -> None:
        """Open these, and wait until every figure that is shown is drawn."""
        self.page.evaluate(f"for (const one of document.querySelectorAll('{which}')) one.open = true")
        shown = "[...document.querySelectorAll('.figure')].filter(one => one.checkVisibility())"
        self.until(f"{shown}.every(one => one.querySelector('.chart'))")

    def left_the_machine(self) -> list[str]:
        return [url for url in self.requests[1:] if not url.startswith(("data:", "blob:"))]

    def until(self, expression: str) -> None:
        """Wait for something to be true; the page's own rules forbid what the browser's driver does for that."""
        for _ in range(200):
            if self.page.evaluate(expression):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"this never was: {expression}")

"""Looks at the documentation site in headless Chromium.

python tests/site/look.py dist/docs

Pages of each kind are opened on a telephone and on a wide screen, in light and dark: they have a
title and a text, are not wider than the screen, and load without errors. The search finds `scan`.
Where no Chromium is installed, it says so.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SCREENS = ((390, 844), (1400, 900))
KINDS = (
    "index.html",
    "guide/*.html",
    "gallery/*.html",
    "errors/*.html",
    "reference/index.html",
    "reference/numpy-re*.html",
    "options.html",
    "primitives.html",
    "design.html",
    "changelog.html",
)
"""Patterns of pages; of each, some are opened."""

OF_EACH = 2


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files, silently."""

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def served(site: Path) -> Iterator[str]:
    """The address at which a folder is served."""
    handler = functools.partial(Handler, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Look:
    """Opens pages, and collects what is wrong.

    Attributes:
        browser: the browser.
        address: where the site is.
        findings: what was wrong.
        opened: how many pages were opened.
    """

    def __init__(self, browser: Browser, address: str) -> None:
        self.browser = browser
        self.address = address
        self.findings: list[str] = []
        self.opened = 0

    def at(self, names: list[str], scheme: str, screen: tuple[int, int]) -> None:
        """Open pages in one colour scheme on one screen."""
        size = {"width": screen[0], "height": screen[1]}
        context = self.browser.new_context(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
        page = context.new_page()
        where = ""

        def note(text: str) -> None:
            self.findings.append(f"{where} ({scheme}, {screen[0]} wide): {text}")

        def note_response(response: Any) -> None:
            if response.status >= 400:
                note(f"{response.url} gives {response.status}")

        def note_message(message: Any) -> None:
            if message.type in ("error", "warning"):
                note(f"on the console: {message.text}")

        page.on("console", note_message)
        page.on("pageerror", lambda error: note(f"an error: {error}"))
        page.on("requestfailed", lambda request: note(f"not loaded: {request.url}"))
        page.on("response", note_response)
        for where in names:
            page.goto(f"{self.address}/{where}", wait_until="load")
            self.opened += 1
            for text in faults(page, scheme):
                note(text)
        where = "search"
        if screen == SCREENS[-1]:
            for text in faults_of_search(page):
                note(text)
        context.close()


def faults(page: Page, scheme: str) -> Iterator[str]:
    """What is wrong with an open page."""
    if not page.title().strip():
        yield "no title"
    heading = page.locator("article h1").first
    if heading.count() == 0 or not heading.inner_text().strip():
        yield "no heading"
    if len(page.locator("article").first.inner_text()) < 200:
        yield "hardly any text"
    wide, shown = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    if wide > shown:
        yield f"{wide} wide, on a screen of {shown}"
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    red, green, blue = (int(word) for word in colour.strip("rgba()").split(",")[:3])
    is_dark = red + green + blue < 3 * 128
    if is_dark != (scheme == "dark"):
        yield f"the background is {colour}"
    broken = page.evaluate(
        "[...document.images].filter(i => i.complete && i.naturalWidth === 0).map(i => i.src)"
    )
    if broken:
        yield f"pictures that are not shown: {broken}"


def faults_of_search(page: Page) -> Iterator[str]:
    """What is wrong with the search for `scan`, from the page that is open."""
    box = page.locator(".sidebar-search").first
    box.fill("scan")
    box.press("Enter")
    results = page.locator("ul.search li a")
    results.first.wait_for(timeout=30_000)
    page.locator("p.search-summary").get_by_text("found").wait_for(timeout=30_000)
    found = results.all_inner_texts()
    if not any("lax.scan" in text for text in found[:10]):
        yield f"lax.scan is not among the first results: {found[:10]}"


def pages_of_each_kind(site: Path, of_each: int) -> list[str]:
    """Pages of each kind that there is, some of it, spread over the alphabet."""
    names = []
    for pattern in KINDS:
        found = sorted(path.relative_to(site).as_posix() for path in site.glob(pattern))
        step = max(1, len(found) // of_each)
        names += found[::step][:of_each]
    return names


def main() -> int:
    """Print what is wrong; the exit code is 0 if nothing is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", type=Path)
    parser.add_argument("--all", action="store_true", help="open all pages")
    words = parser.parse_args()
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        print(f"no browser is installed here ({', '.join(BROWSERS)}): nothing was looked at")
        return 0
    names = pages_of_each_kind(words.site, sys.maxsize if words.all else OF_EACH)
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with served(words.site) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=root)
        look = Look(browser, address)
        for scheme in ("light", "dark"):
            for screen in SCREENS:
                look.at(names, scheme, screen)
        browser.close()
    for finding in look.findings:
        print(finding)
    print(f"{look.opened} times a page was looked at: {len(look.findings)} findings")
    return 1 if look.findings else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven by the WebDriver protocol, for tests of HTML; nothing but the standard library is needed.

``python tests/browser.py report.html picture.png 390 dark`` takes a picture of a whole page.
``python tests/browser.py build/docs`` checks all pages of a site: that none is wider than a phone or a laptop, and that
nothing is written on the console.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
MISSING = "no Chromium with chromedriver was found" if CHROMIUM is None or DRIVER is None else ""
"""Why a test with a browser is skipped; empty if it can run."""

_ARGUMENTS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-quic",
    "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


class Page:
    """An open page.

    :param session: the address of the session of the driver.
    """

    def __init__(self, session: str) -> None:
        self._session = session

    def open(self, file: Path, width: int = 1400, *, dark: bool = False) -> None:
        """Opens a file at a width in pixels."""
        self._command("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._command("Emulation.setEmulatedMedia", features=[scheme])
        _call(f"{self._session}/url", {"url": file.resolve().as_uri()})

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script returns."""
        return _call(f"{self._session}/execute/sync", {"script": script, "args": list(arguments)})

    def console(self) -> list[str]:
        """All messages on the console since the last call."""
        return [entry["message"] for entry in _call(f"{self._session}/se/log", {"type": "browser"})]

    def picture(self, file: Path) -> None:
        """Saves a picture of the whole page, not only of what is in sight."""
        size = self._command("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = self._command("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        file.write_bytes(base64.b64decode(shot["data"]))

    def _command(self, name: str, **parameters: Any) -> Any:
        return _call(f"{self._session}/goog/cdp/execute", {"cmd": name, "params": parameters})


@contextmanager
def browser() -> Iterator[Page]:
    """A browser that is closed at the end."""
    driver = subprocess.Popen([str(DRIVER), "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        port = _port(driver)
        options = {"binary": CHROMIUM, "args": _ARGUMENTS}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        made = _call(f"http://127.0.0.1:{port}/session", {"capabilities": {"alwaysMatch": wanted}})
        session = f"http://127.0.0.1:{port}/session/{made['sessionId']}"
        try:
            yield Page(session)
        finally:
            _call(session, None, method="DELETE")
    finally:
        driver.terminate()
        driver.wait(10)
        assert driver.stdout is not None
        driver.stdout.close()


def _port(driver: subprocess.Popen[str]) -> int:
    assert driver.stdout is not None
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        found = re.search(r"started successfully on port (\d+)", driver.stdout.readline())
        if found:
            return int(found.group(1))
    raise RuntimeError("chromedriver did not start")


def _call(address: str, values: dict[str, Any] | None, method: str = "POST") -> Any:
    body = None if values is None else json.dumps(values).encode()
    request = Request(address, body, {"Content-Type": "application/json"}, method=method)
    with urlopen(request, timeout=60) as answer:
        return json.load(answer)["value"]


def faults_of_site(folder: Path) -> list[str]:
    """What is wrong with the pages of a site, at the widths of a phone and a laptop, in light and dark mode."""
    found = []
    with browser() as page:
        for file in sorted(folder.rglob("*.html")):
            for width, dark in ((390, True), (1400, False)):
                page.open(file, width, dark=dark)
                name = f"{file.relative_to(folder)} at {width} pixels"
                shown = page.run("return document.documentElement.scrollWidth")
                found += [f"{name}: {shown} pixels wide"] if shown > width else []
                found += [f"{name}: {message}" for message in page.console()]
    return found


def main(words: list[str]) -> int:
    if MISSING:
        print(MISSING)
        return 1
    if len(words) == 1:
        faults = faults_of_site(Path(words[0]))
        print(*(faults or ["Nothing is wrong"]), sep="\n")
        return int(bool(faults))
    source, target, width, *scheme = words
    with browser() as page:
        page.open(Path(source), int(width), dark="dark" in scheme)
        page.picture(Path(target))
        print(*page.console(), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

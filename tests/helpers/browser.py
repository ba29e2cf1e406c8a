"""Chromium without a window, spoken to through its debugging pipe: enough to open a page, ask it and look at it."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from contextlib import contextmanager

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
]


_ELSEWHERE = "Inspected target navigated or closed", "Execution context was destroyed", "Cannot find context"
"""The answers to a script whose page gave way to another one."""


class RefusedError(AssertionError):
    """Chromium refused a call."""


class Page:
    """One open page: what it complained of, what it asked the network for, and what a script in it answers."""

    def __init__(self, write, read):
        self._write, self._read, self._rest, self._last = write, read, b"", 0
        self.complaints, self.requests = [], []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def open(self, path, width=1400, dark=False):
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])
        self._call("Page.navigate", url=path.as_uri())
        deadline = time.monotonic() + 30
        while self.ask("location.protocol + document.readyState") != "file:complete":
            assert time.monotonic() < deadline, "the page does not load"

    def print_as_paper(self):
        """Shows the page as it is printed."""
        self._call("Emulation.setEmulatedMedia", media="print")

    def ask(self, script):
        """The value of a script, as JSON can carry it; asked again while another page opens in its place."""
        deadline = time.monotonic() + 30
        while True:
            try:
                answer = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
                break
            except RefusedError as refused:
                if not any(said in str(refused) for said in _ELSEWHERE) or time.monotonic() > deadline:
                    raise
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key):
        # The focus moves by the number of the key, not by its name.
        code = {"windowsVirtualKeyCode": 9, "code": "Tab"} if key == "Tab" else {}
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, key=key, **code)

    def type(self, text):
        """Presses the key of each letter, in what has the focus."""
        for letter in text:
            self._call("Input.dispatchKeyEvent", type="keyDown", key=letter, text=letter)
            self._call("Input.dispatchKeyEvent", type="keyUp", key=letter)

    def move(self, x, y):
        self._call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def screenshot(self):
        """The whole page as a PNG."""
        answer = self._call("Page.captureScreenshot", captureBeyondViewport=True)
        return base64.b64decode(answer["data"])

    def print_to_pdf(self):
        """The page as a PDF, on the paper that it asks for."""
        answer = self._call("Page.printToPDF", preferCSSPageSize=True, paperWidth=8.27, paperHeight=11.69)
        return base64.b64decode(answer["data"])

    def _call(self, method, **parameters):
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if hasattr(self, "_session"):
            message["sessionId"] = self._session
        self._write.write(json.dumps(message).encode() + b"\0")
        while (answer := self._message()).get("id") != self._last:
            self._note(answer)
        if "error" in answer:
            raise RefusedError(answer["error"])
        return answer["result"]

    def _message(self):
        poll = select.poll()
        poll.register(self._read, select.POLLIN)
        while b"\0" not in self._rest:
            # poll, not select, which knows file descriptors below 1024 only
            ready = poll.poll(60_000)
            part = os.read(self._read.fileno(), 1 << 16) if ready else b""
            assert part, "Chromium does not answer"
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\0")
        return json.loads(text)

    def _note(self, event):
        method, details = event.get("method"), event.get("params")
        if method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            self.complaints.append(details)
        if method == "Network.requestWillBeSent":
            self.requests.append(details["request"]["url"])


@contextmanager
def page(profile):
    """A fresh Chromium, whose files go to the folder `profile`, with one page; closed at the end."""
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    command = ["bash", "-c", f'exec "$@" 3<&{to_read} 4>&{from_write}', "bash", CHROMIUM, *_FLAGS]
    chromium = subprocess.Popen(
        [*command, f"--user-data-dir={profile}"], pass_fds=(to_read, from_write), stderr=subprocess.DEVNULL
    )
    os.close(to_read)
    os.close(from_write)
    with open(to_write, "wb", buffering=0) as write, open(from_read, "rb", buffering=0) as read:
        try:
            yield Page(write, read)
        finally:
            chromium.kill()
            chromium.wait()

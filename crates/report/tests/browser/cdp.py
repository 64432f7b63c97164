"""A browser over the Chrome DevTools protocol, by its pipe: no port, no package to install."""

import base64
import json
import os
import select
import shlex
import shutil
import subprocess
import tempfile
import time

NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"]


class Fault(Exception):
    """What a page must not do."""


class Browser:
    """One headless browser with one page; notes every console message and request."""

    def __init__(self, program):
        self.profile = tempfile.mkdtemp(prefix="trimbench-browser-")
        to_browser, self.write_to = os.pipe()
        self.read_from, from_browser = os.pipe()
        options = ["--headless=new", "--remote-debugging-pipe", f"--user-data-dir={self.profile}",
                   "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions",
                   "--disable-background-networking", "--hide-scrollbars", "about:blank"]
        if os.geteuid() == 0:
            options.insert(0, "--no-sandbox")
        # The pipe is to be at 3 and 4; sh can put it there.
        command = f"exec {shlex.join([program, *options])} 3<&{to_browser} 4>&{from_browser}"
        self.process = subprocess.Popen(["/bin/sh", "-c", command], pass_fds=(to_browser, from_browser),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        # It leaves directories of its own there; they go with the profile.
                                        env=dict(os.environ, TMPDIR=self.profile))
        os.close(to_browser)
        os.close(from_browser)
        self.buffer = b""
        self.number = 0
        self.session = None
        self.faults = []
        self.requests = []
        self.events = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log", "Network"]:
            self.send(f"{domain}.enable")

    def message(self, deadline):
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.read_from], [], [], left)[0]:
                raise TimeoutError("the browser doesn't answer")
            chunk = os.read(self.read_from, 1 << 20)
            if not chunk:
                raise ConnectionError(f"the browser ended ({self.process.poll()})")
            self.buffer += chunk
        raw, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(raw)

    def send(self, method, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self.write_to, data):]
        deadline = time.monotonic() + 60
        while True:
            message = self.message(deadline)
            if message.get("id") == self.number:
                if "error" in message:
                    raise Fault(f"{method}: {message['error']}")
                return message["result"]
            self.note(message)

    def note(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.faults.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.faults.append(f"console: {params['args']}")
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.faults.append(f"log: {params['entry']['text']}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        self.events.append(method)

    def open(self, url):
        """Opens a page; returns the seconds until it was loaded and its scripts had run."""
        self.events.clear()
        begin = time.monotonic()
        self.send("Page.navigate", url=url)
        while "Page.loadEventFired" not in self.events:
            self.note(self.message(begin + 120))
        # Not before something was painted.
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
        return time.monotonic() - begin

    def run(self, script):
        result = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise Fault(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def size(self, width, height, mobile=False):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=2 if mobile else 1, mobile=mobile)
        self.run("new Promise(done => setTimeout(done, 200))")

    def mouse(self, kind, x, y, **more):
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def key(self, key):
        codes = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39, "Backspace": 8}
        for kind in ["keyDown", "keyUp"]:
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key])

    def screenshot(self, path, whole=True):
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        self.session = None
        try:
            self.send("Browser.close")  # its children end with it, and write no more
            self.process.wait(10)
        except (OSError, Fault, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.write_to)
        os.close(self.read_from)
        for _ in range(20):
            shutil.rmtree(self.profile, ignore_errors=True)
            if not os.path.exists(self.profile):
                return
            time.sleep(0.1)

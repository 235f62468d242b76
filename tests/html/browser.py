# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Drives a headless Chromium over its DevTools protocol, with nothing but Python.

The protocol goes over a pair of pipes (--remote-debugging-pipe): JSON texts that end with a zero
byte, answers carry the number of their command. https://chromedevtools.github.io/devtools-protocol/
"""
import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--remote-debugging-pipe"]


def find_chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return shutil.which(name)
    return None


class Browser:
    """One page. What it said, asked and loaded is in console, dialogs and requests."""

    def __init__(self, width=1280, height=760, limit_s=60):
        self.directory = tempfile.mkdtemp(prefix="kymo-chromium-")
        self.limit_s = limit_s
        self.number, self.session, self.pending = 0, None, b""
        self.console, self.dialogs, self.requests, self.loaded = [], [], [], False
        # The child wants its ends as descriptors 3 and 4; ours must not be in the way.
        commands, self.output = self.pipe()
        self.input, answers = self.pipe()

        def place_pipes():
            os.dup2(commands, 3)
            os.dup2(answers, 4)

        self.process = subprocess.Popen(
            [find_chromium(), *FLAGS, "--user-data-dir=" + self.directory],
            preexec_fn=place_pipes, pass_fds=(3, 4), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": self.directory})
        os.close(commands)
        os.close(answers)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.resize(width, height)

    @staticmethod
    def pipe():
        ends = os.pipe()
        high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
        for end in ends:
            os.close(end)
        return high

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.input)
        os.close(self.output)
        shutil.rmtree(self.directory, ignore_errors=True)

    def receive(self, deadline):
        while b"\0" not in self.pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.input], [], [], left)[0]:
                raise TimeoutError(f"the browser did not answer within {self.limit_s} s")
            piece = os.read(self.input, 1 << 20)
            if not piece:
                raise EOFError("the browser ended")
            self.pending += piece
        text, self.pending = self.pending.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        command = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        data = json.dumps(command).encode() + b"\0"
        while data:
            data = data[os.write(self.output, data):]
        deadline = time.monotonic() + self.limit_s
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.note(answer)

    def note(self, event):
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Page.javascriptDialogOpening":
            self.dialogs.append(parameters["message"])
            self.number += 1
            answer = {"id": self.number, "method": "Page.handleJavaScriptDialog",
                      "params": {"accept": False}, "sessionId": self.session}
            os.write(self.output, json.dumps(answer).encode() + b"\0")
        elif method == "Runtime.exceptionThrown":
            self.console.append(parameters["exceptionDetails"].get("exception", {}).get(
                "description", parameters["exceptionDetails"]["text"]))
        elif method == "Runtime.consoleAPICalled":
            self.console.append(str([a.get("value") for a in parameters["args"]]))
        elif method == "Log.entryAdded":
            self.console.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def open(self, url):
        self.loaded = False
        self.call("Page.navigate", url=url)
        deadline = time.monotonic() + self.limit_s
        while not self.loaded:
            self.note(self.receive(deadline))
        self.settle()

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True,
                           returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"]["description"])
        return result["result"].get("value")

    def settle(self):
        """Two frames later everything that was asked for has been drawn."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def mouse(self, kind, x, y):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.settle()

    def click(self, x, y):
        self.move(x, y)
        self.mouse("mousePressed", x, y)
        self.mouse("mouseReleased", x, y)
        self.settle()

    def key(self, name):
        text = {"text": name} if len(name) == 1 else {"text": "\r"} if name == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=name, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name)
        self.settle()

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

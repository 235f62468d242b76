# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Readers of others' formats that are in no package of Debian, for tests that skip without them.

E2E_READERS=DIRECTORY has, as far as they are wanted (CONTRIBUTING.md says how to fill it):

  node_modules/speedscope                      speedscope itself, driven in Chromium
  node_modules/@firefox-devtools/profiler-cli  Firefox Profiler without a browser
  node_modules/.bin/node                       Node.js 24 for it, where the machine's is older
  opentelemetry/proto                          the .proto files of opentelemetry-proto, for protoc
"""
import base64
import json
import os
import re
import shutil
import sys
import time

from harness import Skipped, expect, require_tool, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../html"))
import browser  # noqa: E402 pylint: disable=wrong-import-position


def find(name):
    directory = os.environ.get("E2E_READERS")
    path = os.path.join(directory, name) if directory else ""
    if not directory or not os.path.exists(path):
        raise Skipped(f"{name} is not in E2E_READERS")
    return os.path.abspath(path)


def decode_otlp(path):
    """The message as protoc prints it, parsed: {field: [values]}; protoc refuses what does not fit the schema."""
    require_tool("protoc")
    schema = find("opentelemetry/proto/profiles/v1development/profiles.proto")
    root = schema[:schema.rindex("/opentelemetry/")]
    with open(path, "rb") as stream:
        ended = run(["protoc", "-I", root, "--decode", "opentelemetry.proto.profiles.v1development.ProfilesData", schema],
                    stdin=stream.read())
    expect(ended.status == 0, f"protoc: {ended.stderr}")
    return parse_text_message(ended.stdout.decode())


def parse_text_message(text):
    stack = [{}]
    for line in text.splitlines():
        line = line.strip()
        if line.endswith("{"):
            message = {}
            stack[-1].setdefault(line[:-1].strip(), []).append(message)
            stack.append(message)
        elif line == "}":
            stack.pop()
        elif line:
            name, _, value = line.partition(": ")
            expect(not name.isdigit(), f"the schema does not know field {name}")
            stack[-1].setdefault(name, []).append(unquote(value) if value[0] == '"' else int(value) if re.match(r"-?\d+$", value) else value)
    expect(len(stack) == 1, "protoc's text does not end")
    return stack[0]


def unquote(value):
    data = re.sub(rb"\\([0-7]{3}|.)", lambda escape: bytes([int(escape[1], 8)]) if escape[1].isdigit() else
                  {b"n": b"\n", b"t": b"\t", b"r": b"\r"}.get(escape[1], escape[1]), value[1:-1].encode())
    return data.decode(errors="replace")


def find_node():
    """Node.js of version 24 or newer."""
    for node in (os.path.join(os.environ.get("E2E_READERS", ""), "node_modules/.bin/node"), shutil.which("node")):
        if node and os.path.exists(node) and int(run([node, "--version"]).stdout.decode().lstrip("v").split(".")[0]) >= 24:
            return os.path.abspath(node)
    raise Skipped("Node.js 24 is not installed")


class FirefoxProfiler:
    """profiler-cli with one profile loaded: it reads as the web page does."""

    def __init__(self, scratch, path):
        self.command = [find_node(), find("node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js")]
        self.environment = {"HOME": scratch.directory}
        self.call("load", path, check=False)
        deadline = time.monotonic() + 60
        while self.call("profile", "info", check=False).status != 0:  # the daemon may need longer to start
            expect(time.monotonic() < deadline, "profiler-cli did not load the profile")
            time.sleep(0.5)

    def call(self, *arguments, check=True):
        ended = run(self.command + list(arguments), environment=self.environment)
        expect(not check or ended.status == 0, f"profiler-cli {arguments}: {ended}")
        return ended

    def json(self, *arguments):
        return json.loads(self.call(*arguments, "--json").stdout)

    def close(self):
        self.call("stop", check=False)


class Speedscope:
    """speedscope in Chromium, with a file loaded."""

    def __init__(self, scratch, path):
        page = find("node_modules/speedscope/dist/release/index.html")
        if not browser.find_chromium():
            raise Skipped("there is no Chromium")
        script = scratch.path("load.js")
        with open(path, "rb") as source, open(script, "w", encoding="utf-8") as stream:
            content = base64.b64encode(source.read()).decode()
            stream.write(f"speedscope.loadFileFromBase64({json.dumps(os.path.basename(path))}, '{content}')")
        self.browser = browser.Browser()
        self.browser.open(f"file://{page}#localProfilePath={script}")
        deadline = time.monotonic() + 60
        while "Sandwich" not in self.text():
            expect(time.monotonic() < deadline, f"speedscope loaded nothing: {self.browser.console}")
            time.sleep(0.2)

    def text(self):
        return self.browser.evaluate("document.body.innerText")

    def title(self):
        return self.browser.evaluate("document.title")

    def sandwich(self):
        """{symbol: (total, self)} as the table of the shown thread prints them."""
        self.browser.key("3")
        deadline = time.monotonic() + 20
        while "Symbol Name" not in self.text():
            expect(time.monotonic() < deadline, "the table does not come")
            time.sleep(0.2)
        lines = [line.strip() for line in self.text().partition("Symbol Name")[2].splitlines() if line.strip()]
        return {name: (total, own) for total, own, name in zip(lines[::3], lines[1::3], lines[2::3])}

    def close(self):
        self.browser.close()


def speedscope_schema():
    with open(find("node_modules/speedscope/dist/release/file-format-schema.json"), encoding="utf-8") as stream:
        return json.load(stream)



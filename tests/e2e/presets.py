#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Presets: what each sets in a real run, what counts before it, and the file it is exported to.

  presets.py KYMO
"""
import json
import sys

from harness import Kymo, Result, Scratch, Tap, expect, require_tool, run

SOURCE = r"""
#include <pthread.h>
#include <unistd.h>
static volatile double sum;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *worker(void *x) { for (int i = 0; i < 10; i++) { pthread_mutex_lock(&lock);
	for (long k = 0; k < 2000000; k++) sum += (double)k;
	usleep(2000); pthread_mutex_unlock(&lock); if (write(3, "x", 1)) {} } return x; }
int main(void) { pthread_t t[2]; for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, worker, 0);
	for (int i = 0; i < 2; i++) pthread_join(t[i], 0); return 0; }
"""
PYTHON = "def parse(n):\n    return sum(i * i for i in range(n))\nfor _ in range(20):\n    parse(2000)\n"


class Presets:
    def __init__(self, kymo, scratch):
        self.kymo, self.scratch = kymo, scratch
        self.program = scratch.path("program")
        with open(self.program + ".c", "w", encoding="utf-8") as stream:
            stream.write(SOURCE)
        built = run(["cc", "-O1", "-g", self.program + ".c", "-o", self.program, "-pthread"])
        expect(built.status == 0, f"{built}")
        self.list = {preset["name"]: preset for preset in json.loads(run([kymo.path, "avail", "presets", "--json"]).stdout)["presets"]}

    def sampled(self, name, *options, **how):
        directory = self.scratch.path(name)
        ended = self.kymo.sample([self.program], directory, *options, **how)
        expect(ended.status == 0, f"{ended}")
        return Result(directory)

    @staticmethod
    def settings(result):
        return result.json("launch.json")["settings"]

    def each(self):
        """Each preset starts a program with its values, but for what belongs to other commands."""
        expect(list(self.list) == ["gpu", "server", "python", "mpi", "light", "full"], f"{list(self.list)}")
        for name, preset in self.list.items():
            settings = self.settings(self.sampled(f"run {name}", "--preset", name))
            wanted = {key: value for key, value in preset["settings"].items() if key != "PYTHON_CALLS"}
            found = {key: setting["value"] for key, setting in settings.items() if setting["origin"] == "preset"}
            expect(found == wanted, f"{name}: {found}, avail says {wanted}")
            expect(all(settings[key]["source"] == name for key in found), f"{name}: {settings}")

    def server(self):
        result = self.sampled("server", "--preset", "server", "--format", "text,json")
        profile = result.json("profile.json")
        regions = {node["name"] for node in profile["region_nodes"]}
        expect(profile["totals"]["blocked_ns"] > 0 and "pthread_mutex_lock" in regions and "write" in regions, f"{regions}")

    def light(self):
        result = self.sampled("light", "--preset", "light")
        profile = result.json("profile.json")
        expect(not profile.get("region_nodes") and "blocked_ns" not in profile["totals"], f"{profile['totals']}")
        expect(result.has("report.html") and not result.has("trace.pftrace") and not result.has("profile.pb.gz"), "files")

    def user_wins(self):
        settings = self.settings(self.sampled("user", "--preset", "server", "-f", "500", "--no-trace-io",
                                              environment={"KYMO_TRACE_THREAD_LOCKS": "off"}))
        found = {key: settings[key]["value"] for key in ("SAMPLING_FREQ", "TRACE_IO", "TRACE_THREAD_LOCKS", "SAMPLING_REALTIME")}
        expect(found == {"SAMPLING_FREQ": "500", "TRACE_IO": "off", "TRACE_THREAD_LOCKS": "off", "SAMPLING_REALTIME": "on"}, f"{found}")

    def exported(self):
        for ending in ("conf", "json"):
            path = self.scratch.path(f"server.{ending}")
            ended = run([self.kymo.path, "avail", "--preset", "server", "-G", path])
            expect(ended.status == 0, f"{ended}")
            settings = self.settings(self.sampled(f"exported {ending}", "-c", path))
            found = {key: setting["value"] for key, setting in settings.items() if setting["origin"] == "config"}
            expect(found == self.list["server"]["settings"], f"{ending}: {found}")

    def from_anywhere(self):
        path = self.scratch.path("named.conf")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write("preset = light\n")
        settings = self.settings(self.sampled("file", "-c", path))
        expect(settings["SAMPLING_FREQ"]["value"] == "100", f"{settings['SAMPLING_FREQ']}")
        settings = self.settings(self.sampled("variable", environment={"KYMO_PRESET": "light,server"}))
        expect((settings["SAMPLING_FREQ"]["value"], settings["USE_WRAPPERS"]["value"]) == ("200", "off"), f"{settings['SAMPLING_FREQ']}")

    def instrument(self):
        directory, script = self.scratch.path("instrumented"), self.scratch.path("script.py")
        with open(script, "w", encoding="utf-8") as stream:
            stream.write(PYTHON)
        ended = run([self.kymo.path, "instrument", "-q", "--preset", "python", "--time-output=off", "--", sys.executable, script],
                    environment={"KYMO_OUTPUT_PATH": directory})
        expect(ended.status == 0, f"{ended}")
        calls = {node["name"]: node["count"] for node in Result(directory).json("profile.json")["region_nodes"]}
        expect(any(name.startswith("parse (script.py") and count == 20 for name, count in calls.items()), f"{calls}")

    def refused(self):
        for command in ("sample", "instrument", "run", "attach"):
            ended = run([self.kymo.path, command, "--preset", "sever", "--", "/bin/true"])
            expect(ended.status == 125 and "did you mean 'server'?" in ended.stderr, f"{command}: {ended}")
        ended = run([self.kymo.path, "causal", "--preset", "server", "--", "/bin/true"])
        expect(ended.status == 125 and "unknown option '--preset'" in ended.stderr, f"{ended}")


def main():
    tap = Tap()
    require_tool("cc")
    with Scratch() as scratch:
        presets = Presets(Kymo(sys.argv[1]), scratch)
        for name, check in (("each preset", presets.each), ("server", presets.server), ("light", presets.light),
                            ("what the user sets counts first", presets.user_wins), ("exported to a file", presets.exported),
                            ("from files and variables", presets.from_anywhere), ("kymo instrument", presets.instrument),
                            ("unknown names", presets.refused)):
            tap.point(name, check)
    tap.finish()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Formats of other profilers' viewers, each opened by its own reader: Firefox Profiler, speedscope, OpenTelemetry.

  exchange.py KYMO
"""
import collections
import decimal
import json
import os
import re
import sys

from harness import Kymo, Result, Scratch, Tap, expect, require_tool, run
from readers import FirefoxProfiler, Speedscope, decode_otlp, speedscope_schema

SOURCE = r"""
#include <pthread.h>
#include <unistd.h>
static volatile double sum;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static inline __attribute__((always_inline)) double add(double a, long i) { return a + (double)i; }
__attribute__((noinline)) static void parse(long n) { for (long i = 0; i < n; i++) sum = add(sum, i); }
static void *worker(void *x) { for (int i = 0; i < 15; i++) { pthread_mutex_lock(&lock); parse(2000000); pthread_mutex_unlock(&lock); usleep(2000); }
	return x; }
int main(void) {
	pthread_t t[2];
	for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, worker, 0);
	for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
	return 0;
}
"""
TIME_UNITS = {"s": 1e9, "ms": 1e6, "µs": 1e3, "ns": 1, "min": 6e10}


class Exchange:
    def __init__(self, kymo, scratch):
        self.kymo, self.scratch = kymo, scratch
        self.program = scratch.path("worker \"1\" <b>")
        with open(scratch.path("program.c"), "w", encoding="utf-8") as stream:
            stream.write(SOURCE)
        built = run(["cc", "-O1", "-g", scratch.path("program.c"), "-o", self.program, "-pthread"])
        expect(built.status == 0, f"{built}")
        self.directory = scratch.path("result")
        ended = kymo.sample([self.program], self.directory, "--realtime", "--sampling-freq", "500", "--trace-thread-locks",
                            "--format", "json,gecko,speedscope,otlp")
        expect(ended.status == 0, f"{ended}")
        self.result = Result(self.directory)
        self.profile = self.result.json("profile.json")
        self.threads = {thread["tid"]: thread for thread in self.profile["threads"]}

    def written(self, name, *options):
        ended = self.kymo.report(self.directory, "--format", name, *options)
        expect(ended.status == 0, f"{ended}")
        return json.loads(ended.stdout, parse_float=decimal.Decimal)

    def part_of_the_time(self):
        """Half of the run is not shown as if it were the whole."""
        middle = f"{self.profile['duration_ns'] // 2}ns"
        said = "the selected part of the run"
        for option in ("--from", "--to"):
            part = self.written("json", option, middle)
            expect(part["only_part_of_time"] is True and part["totals"]["cpu_ns"] < self.profile["totals"]["cpu_ns"], f"{part}")
            expect(said in self.written("speedscope", option, middle)["name"], "speedscope")
            expect(said in json.dumps(self.written("gecko", option, middle)["meta"]["extra"], default=str), "gecko")
            expect(said in self.kymo.report(self.directory, "--format", "text", option, middle).stdout.decode(), "text")
        expect("only_part_of_time" not in self.profile and said not in self.written("speedscope")["name"], "the whole")

    def sums(self, measure):
        totals = self.profile["totals"]
        keys = {"cpu": ("cpu_ns",), "wall": ("cpu_ns", "blocked_ns", "runnable_ns")}[measure]
        return sum(totals[key] for key in keys)

    def functions(self, measure):
        ended = self.kymo.report(self.directory, "--format", "json", "--measure", measure)
        sums = collections.Counter()
        for function in json.loads(ended.stdout)["functions"]:
            sums[function["name"]] += function["self_ns"]
        return +sums

    # ---- speedscope ----

    def speedscope_sums(self):
        for measure in ("cpu", "wall"):
            data = self.written("speedscope", "--measure", measure)
            names, sums = [frame["name"] for frame in data["shared"]["frames"]], collections.Counter()
            for profile in data["profiles"]:
                expect(profile["endValue"] == sum(profile["weights"]), f"{profile['name']}: {profile['endValue']}")
                for stack, weight in zip(profile["samples"], profile["weights"], strict=True):
                    sums[names[stack[-1]]] += weight
            expect(sums == self.functions(measure), f"{measure}: {sums}\n{self.functions(measure)}")
            expect(sum(sums.values()) == self.sums(measure), f"{measure}: {sum(sums.values())}")

    def speedscope_schema(self):
        schema, data = speedscope_schema(), self.result.json("profile.speedscope.json")
        check_schema(schema, schema["definitions"], data, "file")

    def speedscope_itself(self):
        data = self.result.json("profile.speedscope.json")
        page = Speedscope(self.scratch, self.result.path("profile.speedscope.json"))
        try:
            expect("Importing as speedscope json file" in str(page.browser.console), f"{page.browser.console}")
            first = data["profiles"][0]
            expect(first["name"] in page.text() and f"(1/{len(data['profiles'])})" in page.text(), page.text())
            expect(data["name"] in page.title(), page.title())
            names, wanted = [frame["name"] for frame in data["shared"]["frames"]], collections.Counter()
            for stack, weight in zip(first["samples"], first["weights"]):
                wanted[names[stack[-1]]] += weight
            rows = page.sandwich()
            for name, weight in wanted.most_common(5):
                number, unit = re.match(r"([0-9.]+)(\S+)", rows[name][1]).groups()
                expect(abs(float(number) * TIME_UNITS[unit] - weight) <= 0.01 * weight + 1, f"{name}: {rows[name]}, {weight}")
        finally:
            page.close()

    # ---- Firefox Profiler ----

    def gecko_sums(self):
        for measure in ("cpu", "wall"):
            data = self.written("gecko", "--measure", measure)
            shared, sums, cpu = data["shared"], collections.Counter(), 0
            for thread in data["threads"]:
                samples = thread["samples"]
                cpu += sum(samples["threadCPUDelta"])
                expect(samples["time"] == sorted(samples["time"]), f"{thread['name']} is not in order")
                for stack, weight in zip(samples["stack"], samples["weight"], strict=True):
                    function = shared["frameTable"]["func"][shared["stackTable"]["frame"][stack]]
                    sums[shared["stringArray"][shared["funcTable"]["name"][function]]] += weight * 1000000
            expect(sums == self.functions(measure), f"{measure}: {sums}\n{self.functions(measure)}")
            expect(cpu == self.sums("cpu"), f"CPU time {cpu}, {self.sums('cpu')}")

    def gecko_tables(self):
        """All columns of a table have its length, all indexes are in their tables."""
        data = self.written("gecko")
        shared = data["shared"]
        tables = [value for value in shared.values() if isinstance(value, dict)]
        tables += [thread[name] for thread in data["threads"] for name in ("samples", "markers")]
        for table in tables:
            lengths = {name: len(column) for name, column in table.items() if isinstance(column, list)}
            expect(set(lengths.values()) == {table["length"]}, f"{lengths} of {table['length']}")
        for row, prefix in enumerate(shared["stackTable"]["prefix"]):
            expect(prefix is None or 0 <= prefix < row, f"stack {row} hangs at {prefix}")
        for table, column, of in (("stackTable", "frame", "frameTable"), ("frameTable", "func", "funcTable")):
            expect(all(0 <= value < shared[of]["length"] for value in shared[table][column]), f"{table}.{column}")
        lines = {shared["frameTable"]["line"][row] for row in range(shared["frameTable"]["length"])}
        expect(len(lines) > 3, f"lines {lines}")

    def gecko_itself(self):
        profiler = FirefoxProfiler(self.scratch, self.result.path("profile.gecko.json"))
        try:
            threads = profiler.json("thread", "list")["threads"]
            expect(len(threads) == 3 and {thread["tid"] for thread in threads} <= set(self.threads), f"{threads}")
            whole = sums = 0
            for thread in threads:
                profiler.call("thread", "select", thread["threadHandle"])
                samples = profiler.json("thread", "samples", "--include-idle")
                whole += samples["categoryBreakdown"]["totalSamples"]
                sums += sum(row["selfSamples"] for row in samples["topFunctionsBySelf"] if row["name"].endswith("parse"))
            expect(abs(whole * 1e6 - self.sums("wall")) < 1000, f"{whole} ms, profile.json {self.sums('wall')} ns")
            wanted = self.functions("wall")["parse"]
            expect(abs(sums * 1e6 - wanted) < 1000, f"parse {sums} ms, profile.json {wanted} ns")
            markers = json.dumps(profiler.json("profile", "markers", "--search", "pthread"))
            expect("pthread_join" in markers or "pthread_mutex_lock" in markers, markers[:2000])
        finally:
            profiler.close()

    # ---- OpenTelemetry ----

    def otlp(self):
        data = decode_otlp(self.result.path("profiles.otlp"))
        dictionary, = data["dictionary"]
        strings = dictionary["string_table"]
        expect(strings[0] == "" and len(set(strings)) == len(strings), "the table of strings")
        for table in ("mapping", "location", "function", "attribute", "stack"):
            expect(dictionary[f"{table}_table"][0] == {}, f"{table}_table[0] is {dictionary[f'{table}_table'][0]}")
        profiles = [profile for resource in data["resource_profiles"] for scope in resource["scope_profiles"]
                    for profile in scope["profiles"]]
        found = {}
        for profile in profiles:
            kind = strings[profile["sample_type"][0]["type_strindex"][0]]
            expect(strings[profile["sample_type"][0]["unit_strindex"][0]] == "nanoseconds", f"{profile['sample_type']}")
            found.setdefault(kind, collections.Counter()).update(self.otlp_functions(dictionary, profile))
        expect(set(found) == {"cpu", "wall"}, f"{set(found)}")
        for kind, sums in found.items():
            expect(sums == self.functions(kind), f"{kind}: {sums}\n{self.functions(kind)}")
        attributes = {attribute["key"][0]: attribute["value"][0] for attribute in data["resource_profiles"][0]["resource"][0]["attributes"]}
        expect(attributes["process.executable.path"]["string_value"] == [self.program], f"{attributes}")

    def otlp_functions(self, dictionary, profile):
        strings, sums = dictionary["string_table"], collections.Counter()
        for sample in profile["samples"]:
            stack = dictionary["stack_table"][sample["stack_index"][0]]["location_indices"]
            line = dictionary["location_table"][stack[0]]["lines"][0]
            function = dictionary["function_table"][line["function_index"][0]]
            sums[strings[function["name_strindex"][0]]] += sample["values"][0]
            names = {strings[dictionary["attribute_table"][index]["key_strindex"][0]]: dictionary["attribute_table"][index]["value"][0]
                     for index in sample["attribute_indices"]}
            tid = names["thread.id"]["int_value"][0]
            expect(names["thread.name"]["string_value"] == [self.threads[tid]["name"]], f"{names}")
        return sums

    def written_by_sample(self):
        for name in ("profile.gecko.json", "profile.speedscope.json", "profiles.otlp"):
            expect(self.result.has(name) and os.path.getsize(self.result.path(name)) > 0, f"no {name}")


def check_schema(schema, definitions, value, where):
    """As much of JSON Schema as speedscope's file needs."""
    if "$ref" in schema:
        check_schema(definitions[schema["$ref"].split("/")[-1]], definitions, value, where)
        return
    if "anyOf" in schema:
        failures = []
        for choice in schema["anyOf"]:
            try:
                check_schema(choice, definitions, value, where)
                return
            except Exception as failure:  # pylint: disable=broad-except
                failures.append(str(failure))
        expect(False, f"{where} fits none: {failures}")
    types = {"object": dict, "array": list, "string": str, "number": (int, float)}
    expect("type" not in schema or isinstance(value, types[schema["type"]]), f"{where}: {value!r} is no {schema.get('type')}")
    expect("enum" not in schema or value in schema["enum"], f"{where}: {value!r} is none of {schema.get('enum')}")
    if isinstance(value, dict):
        missing = set(schema.get("required", [])) - set(value)
        expect(not missing, f"{where} lacks {missing}")
        for name, item in value.items():
            if name in schema.get("properties", {}):
                check_schema(schema["properties"][name], definitions, item, f"{where}.{name}")
    if isinstance(value, list) and "items" in schema:
        for item in value:
            check_schema(schema["items"], definitions, item, f"{where}[]")


def main():
    tap = Tap()
    require_tool("cc")
    with Scratch() as scratch:
        exchange = Exchange(Kymo(sys.argv[1]), scratch)
        for name, check in (("written by kymo sample", exchange.written_by_sample), ("a part of the time", exchange.part_of_the_time),
                            ("speedscope: sums of functions", exchange.speedscope_sums),
                            ("speedscope: its schema", exchange.speedscope_schema),
                            ("speedscope: speedscope itself", exchange.speedscope_itself),
                            ("gecko: sums of functions", exchange.gecko_sums), ("gecko: tables", exchange.gecko_tables),
                            ("gecko: Firefox Profiler itself", exchange.gecko_itself),
                            ("otlp: protoc with the published schema", exchange.otlp)):
            tap.point(name, check)
    tap.finish()


if __name__ == "__main__":
    main()

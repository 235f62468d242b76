#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""kymo merge of the ranks of MPI programs: what was planted is found, sums are those of the ranks'
own results, nothing depends on order or grouping, and what is missing is said.

  job.py KYMO DIRECTORY-OF-PROGRAMS openmpi|mpich NCCL-JOB NCCL-PLUGIN
"""
import collections
import glob
import itertools
import json
import os
import re
import shutil
import sys

from harness import Kymo, Result, Scratch, Skipped, Tap, expect, run

RANKS = 4
STEPS = 250
LATE = 2
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
FILES = ("job.txt", "job.json", "samples.folded", "profile.pb.gz", "job.part", "launch.json")
FAILED = 125  # kymo itself


def load(directory):
    with open(os.path.join(directory, "job.json"), encoding="utf-8") as stream:
        return json.load(stream)


def text_of(directory):
    with open(os.path.join(directory, "job.txt"), encoding="utf-8") as stream:
        return stream.read()


def function(job, name, module=None):
    found = [each for each in job["functions"] if each["name"] == name
             and (not module or each["module"].startswith(module))]
    expect(len(found) == 1, f"{len(found)} functions {name}")
    return found[0]


def region(job, name):
    found = [each for each in job["regions"] if each["name"] == name and each["category"] == "mpi"]
    expect(len(found) == 1, f"{len(found)} regions {name}")
    return found[0]


def path_names(job, index):
    """The names of a call path, the root first."""
    names = {each["index"]: each["name"] for kind in ("programs", "functions")
             for each in job[kind]}
    path = []
    while index is not None:
        path.insert(0, names[job["paths"][index]["name"]])
        index = job["paths"][index]["parent"]
    return path


def headings(text):
    """{heading of a table: the line below it}"""
    lines = text.splitlines()
    return {lines[i + 1]: lines[i + 2] for i in range(len(lines) - 2) if not lines[i]}


class Job:
    def __init__(self, kymo, programs, flavor, nccl, scratch):
        self.kymo, self.programs, self.flavor, self.scratch = kymo, programs, flavor, scratch
        self.nccl_job, self.nccl_plugin = nccl
        self.ran = {}

    def mpirun(self, *command, ranks=RANKS):
        launcher = "mpirun." + self.flavor
        if not shutil.which(launcher):
            raise Skipped(f"{launcher} is not installed")
        extra = ["--oversubscribe"] if self.flavor == "openmpi" else []
        return [launcher, *extra, "-n", str(ranks), *command]

    def program(self):
        path = os.path.join(self.programs, "job-" + self.flavor)
        if not os.path.exists(path):
            raise Skipped(f"{os.path.basename(path)} is not built")
        return path

    def ranks(self, *arguments):
        """The directory with a directory a rank, and what the program printed: {rank: numbers}."""
        name = "-".join(arguments)
        if name not in self.ran:
            place = self.scratch.path(name)
            ended = run(self.mpirun(self.kymo.path, "sample", "-q", "-f", "1000", "-o", place + "/%r",
                                    "--time-output=off", "--", self.program(), *arguments),
                        environment=ROOT)
            numbers = {}
            for line in ended.stdout.decode().splitlines():
                match = re.fullmatch(r"rank (\d+) relax (\d+) again (\d+) count (\d+)", line)
                if match:
                    numbers[int(match[1])] = [int(match[i]) for i in (2, 3, 4)]
            expect(arguments[0] == "killed" or sorted(numbers) == list(range(RANKS)),
                   f"status {ended.status}, said {ended.stdout} {ended.stderr[-2000:]}")
            self.ran[name] = place, numbers
        return self.ran[name]

    def stencil(self):
        return self.ranks("stencil", str(STEPS), str(LATE))

    def merge(self, *arguments, status=0):
        ended = run([self.kymo.path, "merge", *arguments])
        expect(ended.status == status,
               f"merge {arguments}: status {ended.status}, not {status}: {ended.stderr[-2000:]}")
        return ended

    def merged(self, place, name, *options, status=0):
        output = self.scratch.path(name)
        self.merge(*options, *([place] if isinstance(place, str) else place), "-q", "-o", output,
                   status=status)
        return output

    # ---- what is found

    def planted_imbalance_and_who_is_late(self):
        place, said = self.stencil()
        job = load(self.merged(place, "late"))
        expect((job["ranks_expected"], job["ranks_merged"], job["ranks_missing"]) ==
               (RANKS, RANKS, []), f"ranks: {job['ranks_expected']}, {job['ranks_merged']}")
        again = function(job, "relax_again")["cpu_total_ns"]
        expect(again["ranks"] == 1 and again["maximum_rank"] == LATE, f"relax_again: {again}")
        # Steps are about as short as the distance of samples, so which of two calls gets one is chance.
        expect(0.5 < again["sum"] / 1000 / said[LATE][1] < 1.5,
               f"relax_again takes {again['sum'] / 1000} us, the program measured {said[LATE][1]}")
        sweep, both = function(job, "sweep")["cpu_outside_mpi_ns"], sum(said[LATE][:2])
        expect(sweep["maximum_rank"] == LATE and abs(sweep["maximum"] / 1000 / both - 1) < 0.15,
               f"sweep takes {sweep['maximum'] / 1000} us, the program measured {both}")
        worst = max(job["functions"],
                    key=lambda each: each.get("cpu_outside_mpi_ns", {"lost": 0})["lost"])
        expect(worst["name"] in ("sweep", "relax_again") and
               worst["cpu_outside_mpi_ns"]["maximum_rank"] == LATE, f"the most is lost in {worst}")
        late = job["late"]
        expect(late["verdict"] == "found" and late["ranks"] == [LATE], f"late: {late}")
        expect("relax_again" in path_names(job, late["paths"][0]),
               f"its path is {path_names(job, late['paths'][0])}")

    def sums_are_those_of_the_ranks_own_results(self):
        place, _ = self.stencil()
        output = self.merged(place, "sums")
        job = load(output)
        wanted = collections.Counter()
        for rank in range(RANKS):
            for stack, weight in Result(os.path.join(place, str(rank))).folded():
                wanted[tuple(stack)] += int(weight)
        got = collections.Counter()
        for stack, weight in Result(output).folded():
            got[tuple(stack)] += int(weight)
        expect(got == wanted, f"folded stacks differ: {(got - wanted)} {(wanted - got)}")
        by_leaf = collections.Counter()
        for stack, weight in wanted.items():
            by_leaf[stack[-1]] += weight
        merged = collections.Counter()
        for each in job["functions"]:
            for inside in ("cpu_outside_mpi_ns", "cpu_inside_mpi_ns"):
                merged[each["name"]] += each.get(inside, {"sum": 0})["sum"]
        merged = +merged
        expect(merged == by_leaf, f"functions differ: {merged - by_leaf} {by_leaf - merged}")
        profile = collections.Counter()
        for sample in Result(output).profile().samples:
            path = ";".join(frame.function for frame in reversed(sample.stack))
            profile[path] += sample.values["cpu"]
        stacks = collections.Counter()
        for stack, weight in wanted.items():
            stacks[";".join(stack)] += weight
        expect(profile == stacks, f"profile.pb.gz differs: {profile - stacks} {stacks - profile}")
        for call, count in (("MPI_Allreduce", RANKS * STEPS), ("MPI_Sendrecv", 2 * RANKS * STEPS),
                            ("MPI_Init", RANKS)):
            calls = region(job, call)["calls"]
            expect(calls["sum"] == count and calls["deviation"] == 0, f"{call}: {calls}")

    def waiting_is_the_time_in_the_calls(self):
        """As the ranks' own profiles have it."""
        place, _ = self.stencil()
        job = load(self.merged(place, "waits"))
        for rank in job["ranks"]:
            profile = Result(os.path.join(place, str(rank["rank"]))).json("profile.json")
            own = collections.Counter()
            for total in profile["region_totals"]:
                own[total["name"]] += round(total["wall_clock"]["self_ns"])
            for part, call in (("collective", "MPI_Allreduce"), ("finalize", "MPI_Finalize"),
                               ("point_to_point", "MPI_Sendrecv"), ("init", "MPI_Init")):
                expect(rank["mpi_ns"][part] == own[call] > 0,
                       f"rank {rank['rank']}: {part} {rank['mpi_ns'][part]}, {call} {own[call]}")
            waits = own["MPI_Allreduce"] + own["MPI_Finalize"] + own["MPI_Sendrecv"]
            expect(rank["mpi_waiting_ns"] == waits, f"{rank['mpi_waiting_ns']}, not {waits}")

    def a_rank_that_sleeps_is_late_without_computing(self):
        place, _ = self.ranks("sleep", str(STEPS), "1")
        output = self.merged(place, "sleeps")
        late = load(output)["late"]
        expect(late["verdict"] == "found" and late["ranks"] == [1], f"late: {late}")
        expect(not late["explained_by_cpu_time"] and "its CPU time explains" in text_of(output),
               "its sleep is taken for work")

    def real_time_shows_where_a_rank_sleeps(self):
        place = self.scratch.path("real-time")
        ended = run(self.mpirun(self.kymo.path, "sample", "-q", "--realtime", "-o", place + "/%r",
                                "--time-output=off", "--", self.program(), "sleep", str(STEPS), "1"),
                    environment=ROOT)
        expect(ended.status == 0, f"status {ended.status}: {ended.stderr[-2000:]}")
        output = self.merged(place, "real-time-merged")
        job = load(output)
        expect(job["late"].get("ranks") == [1], f"late: {job['late']}")
        paths = [path_names(job, path) for path in job["late"]["paths"]]
        expect(any("usleep" in path for path in paths), f"its paths are {paths}")
        slept = job["paths"][job["late"]["paths"][0]]["blocked_outside_mpi_ns"]
        expect(slept["maximum_rank"] == 1 and slept["maximum"] > STEPS * 1_200_000, f"{slept}")
        wanted = sum(weight for rank in range(RANKS)
                     for _, weight in Result(os.path.join(place, str(rank))).folded())
        got = sum(weight for _, weight in Result(output).folded())
        expect(got == wanted, f"{got} ns in folded stacks, not {wanted}")

    def a_master_is_not_waited_for(self):
        place, said = self.ranks("workers", "300")
        job = load(self.merged(place, "workers"))
        expect(said[0][2] == 300, f"the master took {said[0]}")
        waits = {rank["rank"]: rank["mpi_waiting_ns"] for rank in job["ranks"]}
        expect(max(waits, key=waits.get) == 0, f"waits: {waits}")
        expect(0 not in job["late"].get("ranks", []), f"the master is late: {job['late']}")

    def calls_that_were_not_recorded(self):
        place = self.scratch.path("unwrapped")
        ended = run(self.mpirun(self.kymo.path, "sample", "-q", "--mpi=off", "-o", place + "/%r",
                                "--time-output=off", "--", self.program(), "stencil", "60", "0"),
                    environment=ROOT)
        expect(ended.status == 0, f"status {ended.status}: {ended.stderr[-2000:]}")
        output = self.merged(place, "unwrapped-merged")
        job = load(output)
        expect(job["late"] == {"verdict": "no_mpi_calls"}, f"late: {job['late']}")
        expect(sum(rank["cpu_inside_mpi_ns"] for rank in job["ranks"]) > 0 and
               "calls of MPI were not recorded" in text_of(output), "it is not said")

    def one_directory_of_all_ranks(self):
        place = self.scratch.path("one")
        ended = self.kymo.sample(self.mpirun(self.program(), "stencil", str(STEPS), str(LATE)),
                                 place, environment=ROOT)
        expect(ended.status == 0, f"status {ended.status}: {ended.stderr[-2000:]}")
        job = load(self.merged(place, "one-merged"))
        expect([rank["rank"] for rank in job["ranks"]] == list(range(RANKS)), f"{job['ranks']}")
        expect(job["late"].get("ranks") == [LATE], f"late: {job['late']}")
        expect([each["name"] for each in job["programs"]] == [os.path.basename(self.program())],
               f"programs: {job['programs']}")

    # ---- order and grouping

    def same(self, wanted, got):
        for name in FILES:
            with open(os.path.join(wanted, name), "rb") as a, \
                    open(os.path.join(got, name), "rb") as b:
                expect(a.read() == b.read(), f"{name} of {got} differs")

    def bytes_do_not_depend_on_order_or_grouping(self):
        place, _ = self.stencil()
        wanted = self.merged(place, "direct")
        each = [os.path.join(place, str(rank)) for rank in range(RANKS)]
        for number, order in enumerate(list(itertools.permutations(each))[::5]):
            self.same(wanted, self.merged(list(order), f"order-{number}"))
        for workers in (2, 3, 64):
            self.same(wanted, self.merged(place, f"workers-{workers}", "-j", str(workers)))
        for shards in (1, 2, 7):
            parts = [self.scratch.path(f"part-{number}-{shards}") for number in range(1, shards + 1)]
            for number, part in enumerate(parts, 1):
                self.merge("--shard", f"{number}/{shards}", place, "-o", part)
            self.same(wanted, self.merged(parts[::-1], f"joined-{shards}", "--join"))
        halves = [self.merged(each[half::2], f"half-{half}") for half in (0, 1)]
        self.same(wanted, self.merged(halves, "halves"))

    def the_last_run_of_a_program_is_merged(self):
        place = self.scratch.path("runs")
        os.mkdir(place)
        for ranks in (3, 2):
            ended = run(self.mpirun(self.kymo.path, "sample", "-q", "--", self.program(),
                                    "stencil", "20", "-1", ranks=ranks), environment=ROOT, cwd=place)
            expect(ended.status == 0, f"status {ended.status}: {ended.stderr[-2000:]}")
        output, = glob.glob(os.path.join(place, "kymo-*-output"))
        links = sorted(name for name in os.listdir(output) if name.startswith("latest"))
        expect(links == ["latest", "latest-rank0", "latest-rank1"], f"links: {links}")
        # Runs that begin in one second are told apart by a number at the end.
        target = os.readlink(os.path.join(output, "latest-rank1"))
        expect(re.search(r"-rank1(-\d+)?$", target), f"a wrong link: {target}")
        expect(self.kymo.report(os.path.join(output, "latest-rank1")).status == 0, "no report of it")
        job = load(self.merged(output, "last-run"))
        expect((job["ranks_expected"], job["ranks_merged"]) == (2, 2), "not the last run")
        both = [path for path in glob.glob(os.path.join(output, "*-rank0*")) if not os.path.islink(path)]
        expect(len(both) == 2, f"directories of rank 0: {both}")
        ended = self.merge(*both, "-o", self.scratch.path("two-runs"), status=FAILED)
        expect(re.search("rank 0 is in '.*' and in '.*'|of a job of", ended.stderr), ended.stderr)
        expect(not os.path.exists(self.scratch.path("two-runs")), "a result is left")

    # ---- what is missing

    def every_table_says(self, text, what):
        tables = headings(text)
        expect(any("Functions by imbalance" in heading for heading in tables), f"tables: {tables}")
        for heading, line in tables.items():
            expect(line.startswith("  ! ") and what in line, f"below '{heading}': {line}")

    def nobody_is_named_late(self, output):
        late = load(output)["late"]
        expect(late == {"verdict": "incomplete"}, f"late: {late}")
        expect("cannot be concluded" in text_of(output), "the text concludes something")

    def waits_are_what_the_program_measured(self):
        """Each way to make others wait, beside times that the ranks took themselves."""
        place = self.scratch.path("waiters")
        program = os.path.join(self.programs, "waits-" + self.flavor)
        command = self.mpirun(self.kymo.path, "sample", "-q", "-o", place + "/%r",
                              "--time-output=off", "--", program, "6", "20")
        ended = run(command, environment=ROOT)
        expect(ended.status == 0, f"status {ended.status}: {ended.stderr[-2000:]}")
        output = self.merged(place, "waiters-merged")
        waits, job = load(output)["mpi_waits"], load(output)
        expect(waits["verdict"] == "found" and not waits["unmatched"] and not waits["unknown"],
               f"{ {key: value for key, value in waits.items() if key not in ('rows', 'ranks')} }")
        sites = {site["index"]: site for site in job["mpi_sites"]}
        truths = [line.split()[1:] for line in ended.stdout.decode().split("\n")
                  if line.startswith("truth ")]
        planted = {"late_sender": 3, "late_receiver": 3, "halo": 1, "barrier": 3, "allreduce": 0,
                   "broadcast": 1, "reduce": 1}
        expect({truth[0] for truth in truths} == set(planted), f"the program said {ended.stdout}")
        for function, cause in planted.items():
            state, = {truth[1] for truth in truths if truth[0] == function}
            rows = [row for row in waits["rows"] if row["state"] == state
                    and sites[row["site"]]["function"] == function]
            wanted = sum(int(truth[3]) for truth in truths if truth[0] == function)
            got = sum(row["wait_ns"] for row in rows)
            expect(abs(got - wanted) <= 0.02 * wanted + 1_000_000,
                   f"{function}: {state} {got} ns, not {wanted}; {rows}")
            # On a busy machine another rank may be later now and then; both say so.
            wanted = sum(int(truth[3]) for truth in truths
                         if truth[0] == function and int(truth[2]) == cause)
            got = sum(row["wait_ns"] for row in rows if row["cause_rank"] == cause)
            expect(abs(got - wanted) <= 0.1 * wanted + 2_000_000,
                   f"{function}: {state} by rank {cause} {got} ns, not {wanted}; {rows}")
            expect({sites[row["cause_site"]]["function"] for row in rows} == {function},
                   f"{function}: caused by {rows}")
        for state, sum_ns in waits["wait_ns"].items():
            expect(sum(rank["wait_ns"][state] for rank in waits["ranks"]) == sum_ns,
                   f"{state}: ranks do not add up")
            expect(sum(row["wait_ns"] for row in waits["rows"] if row["state"] == state) == sum_ns,
                   f"{state}: rows do not add up")
        without = self.merged([os.path.join(place, str(rank)) for rank in (0, 2, 3)], "waiters-hole")
        expect(load(without)["mpi_waits"]["verdict"] == "incomplete", "a conclusion in spite of a hole")
        expect("who waited for whom cannot be concluded" in text_of(without), text_of(without))
        each = [os.path.join(place, str(rank)) for rank in range(RANKS)]
        self.same(output, self.merged(each[::-1], "waiters-reverse", "-j", "3"))
        parts = [self.scratch.path(f"waiters-part-{number}") for number in (1, 2, 3)]
        for number, part in enumerate(parts, 1):
            self.merge("--shard", f"{number}/3", place, "-o", part)
        self.same(output, self.merged(parts[::-1], "waiters-joined", "--join"))

    def clocks_of_hosts_are_aligned_by_messages(self):
        """Odd ranks are on another host, whose clock is 1,000 s ahead: namespaces of their own."""
        far = ["unshare", "--uts", "--time", "--boottime", "1000", "--monotonic", "1000", "--fork"]
        if run([*far, "true"]).status:
            raise Skipped("no rights to make namespaces")
        script, place = self.scratch.path("far.sh"), self.scratch.path("hosts")
        with open(script, "w", encoding="utf-8") as stream:
            stream.write('rank=${PMI_RANK:-$OMPI_COMM_WORLD_RANK}\n'
                         '[ $((rank % 2)) = 0 ] && exec "$@"\n'
                         f"exec {' '.join(far)} sh -c 'hostname far; exec \"$@\"' sh \"$@\"\n")
        ended = run(self.mpirun("sh", script, self.kymo.path, "sample", "-q", "-o", place + "/%r",
                                "--time-output=off", "--",
                                os.path.join(self.programs, "waits-" + self.flavor), "6", "20"),
                    environment=ROOT)
        expect(ended.status == 0, f"status {ended.status}: {ended.stderr[-2000:]}")
        output = self.merged(place, "hosts-merged")
        job, waits = load(output), load(output)["mpi_waits"]
        expect({rank["host"] == "far" for rank in job["ranks"]} == {False, True}, "one host")
        expect(waits["verdict"] == "found" and not waits["hosts_without_clock"]
               and 0 < waits["clock_error_ns"] < 10_000_000,
               f"{ {key: value for key, value in waits.items() if key not in ('rows', 'ranks')} }")
        sites = {site["index"]: site["function"] for site in job["mpi_sites"]}
        error = 6 * 3 * waits["clock_error_ns"]
        # Late by 20 ms or more each time, and two ranks wait in halo(), three in broadcast().
        for function, cause, waiters in (("late_sender", 3, 1), ("late_receiver", 3, 1),
                                         ("halo", 1, 2), ("broadcast", 1, 3)):
            got = sum(row["wait_ns"] for row in waits["rows"] if sites[row["site"]] == function)
            by = sum(row["wait_ns"] for row in waits["rows"] if sites[row["site"]] == function
                     and row["cause_rank"] == cause)
            expect(got >= 0.95 * waiters * 6 * 20_000_000 - error and by > 0.5 * got,
                   f"{function}: {got} ns, {by} by rank {cause}; clocks wrong by {error}")
        expect("clocks of hosts are aligned to within" in text_of(output), text_of(output))

    def a_missing_rank(self):
        place, _ = self.stencil()
        output = self.merged([os.path.join(place, str(rank)) for rank in (0, 2, 3)], "without-1")
        job = load(output)
        expect(job["ranks_missing"] == [{"first": 1, "last": 1}], f"{job['ranks_missing']}")
        expect("3 of 4 ranks" in text_of(output), "the head counts wrongly")
        self.every_table_says(text_of(output), "1 of 4 ranks is missing (1)")
        self.nobody_is_named_late(output)

    def a_directory_that_is_not_there_or_corrupt(self):
        place, _ = self.stencil()
        broken = self.scratch.path("broken")
        shutil.copytree(place, broken)
        for path in glob.glob(os.path.join(broken, "1", "spool", "*.spool")):
            with open(path, "r+b") as stream:
                stream.write(b"\xa5" * 65536)
        shutil.rmtree(os.path.join(broken, "3", "spool"))
        output = self.scratch.path("broken-merged")
        ended = self.merge(broken, broken + "/gone", "-q", "-o", output, status=FAILED)
        for what in ("broken/1' has no readable records", "broken/3' has no recorded data", "gone",
                     "3 of 5 directories are missing"):
            expect(what in ended.stderr, f"not said: {what}: {ended.stderr}")
        job = load(output)
        expect(job["ranks_missing"] == [{"first": 1, "last": 1}, {"first": 3, "last": 3}],
               f"{job['ranks_missing']}")
        reasons = {os.path.basename(each["directory"]): each["reason"]
                   for each in job["directories_without_rank"]}
        expect(sorted(reasons) == ["1", "3", "gone"] and all(reasons.values()), f"{reasons}")
        self.every_table_says(text_of(output), "2 of 4 ranks are missing (1, 3)")
        self.nobody_is_named_late(output)
        parallel = self.scratch.path("broken-parallel")
        self.merge("-j", "3", broken, broken + "/gone", "-q", "-o", parallel, status=FAILED)
        self.same(output, parallel)

    def a_killed_rank(self):
        place, _ = self.ranks("killed", str(STEPS), "1")
        output = self.merged(place, "killed-merged")
        ends = {rank["rank"]: (rank["end"], rank["wait_status"]) for rank in load(output)["ranks"]}
        expect(ends[1] == ("killed", 9), f"ends: {ends}")
        expect("rank 1: killed by SIGKILL" in text_of(output), "it is not said")
        self.every_table_says(text_of(output), "incomplete (")
        self.nobody_is_named_late(output)

    def a_directory_that_is_of_no_job(self):
        place = self.scratch.path("plain")
        ended = self.kymo.sample(["/bin/sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"],
                                 place)
        expect(ended.status == 0, ended.stderr)
        output = self.scratch.path("plain-merged")
        ended = self.merge(place, "-o", output, status=FAILED)
        expect("is not of a parallel job" in ended.stderr and "nothing to merge" in ended.stderr,
               ended.stderr)
        expect(not os.path.exists(output), "a result is left")

    def wrong_requests(self):
        place, _ = self.stencil()
        part = self.scratch.path("wrong-part")
        for arguments, what in (
                (["--shard", "0/3", place, "-o", part], "--shard: '0/3' is not I/N"),
                (["--shard", "4/3", place, "-o", part], "--shard: '4/3' is not I/N"),
                (["--shard", "1/3x", place, "-o", part], "--shard: '1/3x' is not I/N"),
                (["-j", "0", place, "-o", part], "-j: '0' is not a number from 1 to"),
                (["--join", "--shard", "1/2", place, "-o", part], "--join is not possible"),
                (["--join", place + "/0/profile.txt", "-o", part], "is not a part"),
                ([place], "no output directory"), (["-o", part], "no result directories")):
            ended = self.merge(*arguments, status=FAILED)
            expect(what in ended.stderr, f"{arguments}: {ended.stderr}")
            expect(not os.path.exists(part), f"{arguments} leaves something")
        self.merge("--shard", "1/1", place, "-o", part)
        with open(part, "r+b") as stream:
            stream.seek(1000)
            byte = stream.read(1)
            stream.seek(1000)
            stream.write(bytes([byte[0] ^ 1]))
        ended = self.merge("--join", part, "-o", self.scratch.path("damaged"), status=FAILED)
        expect("is damaged: its checksum is wrong" in ended.stderr, ended.stderr)

    # ---- other commands, other data

    def reports_of_a_merged_result(self):
        place, _ = self.stencil()
        output = self.merged(place, "reported")
        shown = self.kymo.report(output)
        expect(shown.status == 0 and shown.stdout.startswith(b"Job: "), f"{shown.stdout[:200]}")
        for name, file in (("json", "job.json"), ("folded", "samples.folded")):
            with open(os.path.join(output, file), "rb") as stream:
                expect(self.kymo.report(output, "--format", name).stdout == stream.read(),
                       f"--format {name} differs")
        copy = self.scratch.path("copy.json")
        expect(self.kymo.report(output, "--format", "json", "-o", copy).status == 0 and
               os.path.getsize(copy) == os.path.getsize(output + "/job.json"), "no file")
        expect("exists" in self.kymo.report(output, "--format", "json", "-o", copy).stderr,
               "it is overwritten")
        full = self.kymo.report(output, "--top", "0").stdout.decode()
        expect(len(full.splitlines()) > len(shown.stdout.decode().splitlines()), "--top does nothing")
        ended = self.kymo.report(output, "--format", "perfetto")
        expect(ended.status == FAILED and "is the result of several ranks" in ended.stderr,
               f"{ended.stderr}")
        for command in (["sql", output, "select 1"], ["diff", output, output]):
            ended = run([self.kymo.path, *command])
            expect(ended.status not in (0, 1) and "is the result of several ranks" in ended.stderr,
                   f"{command[0]}: status {ended.status}, {ended.stderr}")
        with open(output + "/job.part", "r+b") as stream:
            stream.truncate(2000)
        ended = self.kymo.report(output)
        expect(ended.status == FAILED and "is damaged" in ended.stderr, ended.stderr)

    def nccl_records_in_the_same_result(self):
        ranks = []
        for rank in (0, 1):
            story = (f"gpu 0\ncomm 77 2 {rank} pg\ncoll AllReduce 1 1024 ncclFloat32 1\nbegin 0\n"
                     "end 0\ndone\nfinalize\nexit 0\n")
            ranks.append(self.scratch.path(f"nccl-{rank}"))
            ended = self.kymo.sample([self.nccl_job, self.nccl_plugin], self.scratch.path("nccl-%r"),
                                     stdin=story.encode(),
                                     environment={"OMPI_COMM_WORLD_RANK": str(rank),
                                                  "OMPI_COMM_WORLD_SIZE": "2"})
            expect(ended.status == 0, f"status {ended.status}: {ended.stderr[-2000:]}")
        output = self.scratch.path("with-nccl")
        ended = self.merge(*ranks, "-o", output)
        expect(b"NCCL" in ended.stdout and b"Job: " in ended.stdout, f"{ended.stdout}")
        expect(load(output)["ranks_merged"] == 2, "the ranks are not merged")
        with open(os.path.join(output, "nccl", "summary.json"), encoding="utf-8") as stream:
            expect(len(json.load(stream)["processes"]) == 2, "the records are not joined")
        parts = [self.scratch.path(f"nccl-part-{number}") for number in (1, 2)]
        for number, part in enumerate(parts, 1):
            self.merge("--shard", f"{number}/2", *ranks, "-o", part)
        joined = self.merged(parts, "with-nccl-joined", "--join")
        self.same(output, joined)
        for name in os.listdir(os.path.join(output, "nccl")):
            with open(os.path.join(output, "nccl", name), "rb") as a, \
                    open(os.path.join(joined, "nccl", name), "rb") as b:
                # A database has its own time; names of results are in the texts.
                expect(name.endswith(".db") or a.read().replace(b"with-nccl", b"") ==
                       b.read().replace(b"with-nccl-joined", b""), f"{name} differs")
        shutil.move(ranks[1], ranks[1] + "-moved")
        elsewhere = self.scratch.path("with-nccl-elsewhere")
        ended = self.merge("--join", *parts, "-q", "-o", elsewhere, status=FAILED)
        expect(f"the NCCL records in '{ranks[1]}' cannot be read here" in ended.stderr,
               ended.stderr)
        expect(load(elsewhere)["ranks_merged"] == 2, "the ranks are not joined")


def main():
    kymo, tap = Kymo(sys.argv[1]), Tap()
    with Scratch() as scratch:
        job = Job(kymo, os.path.abspath(sys.argv[2]), sys.argv[3], sys.argv[4:6], scratch)
        for name in ("planted_imbalance_and_who_is_late", "sums_are_those_of_the_ranks_own_results",
                     "waiting_is_the_time_in_the_calls", "waits_are_what_the_program_measured",
                     "clocks_of_hosts_are_aligned_by_messages",
                     "a_rank_that_sleeps_is_late_without_computing",
                     "real_time_shows_where_a_rank_sleeps", "a_master_is_not_waited_for",
                     "calls_that_were_not_recorded", "one_directory_of_all_ranks", "bytes_do_not_depend_on_order_or_grouping",
                     "the_last_run_of_a_program_is_merged", "a_missing_rank",
                     "a_directory_that_is_not_there_or_corrupt", "a_killed_rank",
                     "a_directory_that_is_of_no_job", "wrong_requests",
                     "reports_of_a_merged_result", "nccl_records_in_the_same_result"):
            tap.point(name.replace("_", " "), getattr(job, name))
    tap.finish()


main()

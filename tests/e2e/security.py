#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Foreign hands: what other users, profiled programs and senders of results can make kymo do.

Most points need two users and therefore root; the other user is a number that nobody has. Each of
them first makes sure that there was something to be tried.

usage: security.py KYMO ROCTX-LIBRARY     (TAP)
"""
import glob
import json
import os
import signal
import struct
import subprocess
import sys
import time

from harness import (Failed, Kymo, Result, Scratch, Skipped, Tap, clean_environment, expect,
                     is_alive, run, wait_until)

OTHER = 54321
PYTHON = "/usr/bin/python3"  # every user may execute it
BUSY = """
#include <stdint.h>
#include <time.h>
volatile uint64_t sink;
__attribute__((noinline)) void work(void)
{
	for (int i = 0; i < 100000; i++)
		sink += (uint64_t)i * 7;
}
int main(int argc, char **argv)
{
	time_t end = time(0) + (argc > 1 ? argv[1][0] - '0' : 1);
	while (time(0) <= end)
		work();
	return 0;
}
"""
CALLS = """
#include <stdio.h>
__attribute__((noinline)) int f1(int x) { volatile int y = x; for (int i = 0; i < 9; i++) y += i; return y; }
__attribute__((noinline)) int f2(int x) { volatile int y = x; for (int i = 0; i < 9; i++) y += f1(i); return y; }
int main(void) { long s = 0; for (int i = 0; i < 50; i++) s += f2(i); printf("%ld\\n", s); return 0; }
"""
TOOL = """
#include <stdio.h>
#include <unistd.h>
__attribute__((constructor)) static void loaded(void) { fprintf(stderr, "LOADED as %d\\n", (int)geteuid()); }
void *rocprofiler_configure(unsigned v, const char *r, unsigned p, void *id)
{ (void)v; (void)r; (void)p; (void)id; return 0; }
void rocprofiler_register_library_api_table(void) {}
"""
MARKS = """
int roctxRangePushA(const char *);
int roctxRangePop(void);
int main(void) { roctxRangePushA("x"); roctxRangePop(); return 0; }
"""
JIT = """
#include <string.h>
#include <sys/mman.h>
#include <time.h>
int main(void)
{
	/* mov $2000000,%ecx; 1: dec %ecx; jnz 1b; ret */
	static const unsigned char code[] = {0xb9, 0x80, 0x84, 0x1e, 0, 0xff, 0xc9, 0x75, 0xfc, 0xc3};
	void *at = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	time_t end = time(0) + 2;
	memcpy(at, code, sizeof(code));
	while (time(0) < end)
		((void (*)(void))at)();
	return 0;
}
"""
NAMES = """
#include <sys/prctl.h>
#include <time.h>
volatile unsigned long sink;
__attribute__((noinline)) void NAMENAMENAMENAMENAMENAMENAMENAMENAMENAME(void)
{
	for (int i = 0; i < 100000; i++)
		sink += i;
}
int main(void)
{
	clock_t end = clock() + CLOCKS_PER_SEC / 2;
	prctl(PR_SET_NAME, "t\\033[31m<b>\\"\\xff\\n");
	while (clock() < end)
		NAMENAMENAMENAMENAMENAMENAMENAMENAMENAME();
	return 0;
}
"""
HOSTILE = b'\x1b[31m\x1b]0;t\x07"<script>x</script>\\,;\'\n\xff'


def need_root():
    if os.geteuid():
        raise Skipped("needs root, to be two users")


def as_other():
    os.setgroups([])
    os.setgid(OTHER)
    os.setuid(OTHER)


def control_characters(data):
    """What a terminal would obey, or what is no UTF-8: the text around it."""
    text = data.decode("utf-8", "surrogateescape")
    return [text[max(0, i - 20):i + 20] for i, c in enumerate(text)
            if (ord(c) < 32 and c not in "\n\t") or 0x7f <= ord(c) < 0xa0 or 0xdc80 <= ord(c) <= 0xdcff]


class Security:
    def __init__(self, kymo, roctx, scratch):
        self.kymo, self.roctx, self.scratch = kymo, roctx, scratch
        self.count = 0

    # ---- helpers ----

    def _build(self, name, source, *options):
        path, code = self.scratch.path(name), self.scratch.path(name + ".c")
        if not os.path.exists(path):
            with open(code, "w", encoding="ascii") as stream:
                stream.write(source)
            ended = run(["gcc", "-g", "-O1", "-o", path, code, *options])
            expect(ended.status == 0, ended.stderr)
        return path

    def _directory(self, mode=0o755, owner=0):
        self.count += 1
        path = self.scratch.path(f"d{self.count}")
        os.mkdir(path)
        os.chmod(path, mode)
        if owner:
            os.chown(path, owner, owner)
        return path

    def _precious(self):
        """A file of root's that nobody else can reach."""
        directory = self._directory(0o700)
        path = os.path.join(directory, "a")
        with open(path, "w", encoding="ascii") as stream:
            stream.write("data")
        return path

    def _expect_untouched(self, precious):
        with open(precious, encoding="utf-8", errors="replace") as stream:
            text = stream.read()
        expect(text == "data", f"root's file now holds {text[:60]!r}")
        left = os.listdir(os.path.dirname(precious))
        expect(left == ["a"], f"beside root's file: {left}")

    def _start(self, command, **how):
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                env=clean_environment(), **how)

    @staticmethod
    def _victim(program):
        """A process of the other user that has started: its libraries are loaded."""
        process = subprocess.Popen([program, "9"], preexec_fn=as_other)
        wait_until(lambda: "libc.so" in open(f"/proc/{process.pid}/maps", encoding="utf-8").read(),
                   "the program does not start")
        return process

    @staticmethod
    def _handed_over(name):
        """The session directory in memory in which this is the other user's."""
        for path in glob.glob("/dev/shm/kymo-0-*/" + name):
            try:
                if os.stat(path).st_uid == OTHER:
                    return os.path.dirname(path)
            except FileNotFoundError:
                pass
        return None

    # ---- root attaches to another user's process ----

    def attaching_keeps_the_session_to_itself(self):
        need_root()
        busy, precious, out = self._build("busy", BUSY), self._precious(), self._directory()
        victim = self._victim(busy)
        try:
            kymo = self._start([self.kymo.path, "instrument", "-q", "-p", str(victim.pid), "-d", "2",
                                "-R", "^work$", "--output-path", out])
            session = wait_until(lambda: self._handed_over("spool"), "no session is handed over")
            tried = run([PYTHON, "-c", f"""
import os
names = [".launch.json.{kymo.pid}", "launch.json", "metadata.json.tmp", "perf-{victim.pid}.map", "plans"]
for name in names:
    try:
        os.symlink({precious!r}, {session!r} + "/" + name)
        print("made", name)
    except OSError:
        pass
for name in names + ["x.spool", "x.nccl", "attached"]:
    try:
        os.symlink({precious!r}, {session!r} + "/spool/" + name)
    except OSError:
        pass
os.mkfifo({session!r} + "/spool/1-0.spool")
try:
    os.rename({session!r} + "/spool", {session!r} + "/other")
    print("moved")
except OSError:
    pass
"""], preexec=as_other)
            expect(tried.status == 0, tried.stderr)
            expect(tried.stdout == b"", f"another user could: {tried.stdout}")
            text = kymo.communicate(timeout=60)[0].decode(errors="replace")
            expect(kymo.returncode == 0, text)
        finally:
            victim.kill()
            victim.wait()
        self._expect_untouched(precious)
        expect(not os.path.exists(session), "the session is still there")
        calls = Result(glob.glob(out + "/2*")[0]).metadata()
        expect(calls["processes"], "nothing was recorded")

    def a_user_asks_for_patches_of_its_own_processes_alone(self):
        need_root()
        busy, out = self._build("busy", BUSY), self._directory()
        victim = self._victim(busy)
        bystander = subprocess.Popen([busy, "9"])
        try:
            kymo = self._start([self.kymo.path, "instrument", "-q", "-p", str(victim.pid), "-d", "2",
                                "-R", "^work$", "--output-path", out])
            socket = wait_until(lambda: self._handed_over("plans"), "no socket is handed over") + "/plans"
            status = os.stat(busy)
            answers = []
            for pid in (bystander.pid, victim.pid):
                request = struct.pack("<IIQQQII32s", 1, pid, 0, status.st_dev, status.st_ino, 0, 0, b"")
                asked = run([PYTHON, "-c", f"""
import socket, struct
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect({socket!r})
s.send({request!r} + {busy.encode()!r} + bytes(1))
print(struct.unpack("<i", s.recv(20000)[:4])[0])
"""], preexec=as_other)
                expect(asked.status == 0, asked.stderr)
                answers.append(int(asked.stdout))
            kymo.communicate(timeout=60)
        finally:
            for process in (victim, bystander):
                process.kill()
                process.wait()
        expect(answers[0] == -1, f"asking for another user's process: {answers[0]}")
        expect(answers[1] != -1, "asking for its own process is refused as well")

    # ---- where results go ----

    def a_parent_directory_of_another_user(self):
        need_root()
        shared, precious = self._directory(0o1777), self._precious()
        run(["mkdir", shared + "/kymo-sleep-output"], preexec=as_other)
        os.chmod(shared + "/kymo-sleep-output", 0o755)
        for command in (["sample"], ["instrument"], ["causal"]):
            kymo = self._start([self.kymo.path, *command, "-q", "--", "sleep", "1.5"], cwd=shared)
            wait_until(lambda: glob.glob(shared + "/kymo-sleep-output/2*"), "no result directory")
            time.sleep(0.5)
            run(["sh", "-c", f"""
cd {shared}/kymo-sleep-output && for d in 2*; do
  mv "$d" old && mkdir -m 777 "$d" && mkdir -m 777 "$d/spool" "$d/causal" "$d/instrumentation"
  for name in .launch.json.{kymo.pid} metadata.json.tmp metadata.json profile.txt causal/windows.ndjson.tmp; do
    ln -s {precious} "$d/$name"
  done
done"""], preexec=as_other)
            text = kymo.communicate(timeout=60)[0].decode(errors="replace")
            expect(kymo.returncode == 0, text)
            self._expect_untouched(precious)
            expect(os.path.exists(shared + "/kymo-sleep-output/old/launch.json"), "nothing was written")
            strange = run(["sh", "-c", f"find {shared}/kymo-sleep-output/2* -type f"]).stdout
            expect(not strange, f"kymo wrote to what the user put there: {strange}")
            run(["rm", "-rf", shared + "/kymo-sleep-output/old", *glob.glob(shared + "/kymo-sleep-output/2*")])
        expect(not [path for path in glob.glob("/var/tmp/kymo-0-??????")
                    if os.path.exists(path + "/launch.json")], "a session is left in /var/tmp")

    def results_in_a_foreign_parent_are_whole(self):
        need_root()
        home = self._directory(0o755, OTHER)
        ended = run([self.kymo.path, "sample", "--color", "never", "--", self._build("busy", BUSY), "0"], cwd=home)
        expect(ended.status == 0, ended.stderr)
        expect(f"belongs to user {OTHER}" in ended.stderr, ended.stderr)
        expect("/proc/self/fd" not in ended.stderr, ended.stderr)
        result = Result(home + "/kymo-busy-output/latest")
        expect(result.samples() > 10, f"{result.samples()} samples")
        again = self.kymo.report(result.directory, "--color", "never")
        expect(again.status == 0 and b"work" in again.stdout, again.stderr)

    def a_link_of_another_user_on_the_way(self):
        need_root()
        home, precious = self._directory(0o755, OTHER), self._precious()
        run(["ln", "-s", os.path.dirname(precious), home + "/out"], preexec=as_other)
        for path in ("out/inside", "out"):
            ended = run([self.kymo.path, "sample", "--strict", "-q", "--time-output=off", "--force",
                         "--output-path", path, "--", "true"], cwd=home)
            expect(ended.status == 125 and "symbolic link of user" in ended.stderr, f"{path}: {ended}")
            self._expect_untouched(precious)

    def a_result_directory_of_another_user(self):
        need_root()
        home = self._directory(0o777, OTHER)
        ended = run([self.kymo.path, "sample", "--strict", "-q", "--time-output=off", "--output-path", home,
                     "--", "true"])
        expect(ended.status == 125 and f"belongs to user {OTHER}" in ended.stderr, str(ended))
        expect(not os.listdir(home), f"written: {os.listdir(home)}")

    def a_session_that_a_program_makes_itself(self):
        need_root()
        home, precious = self._directory(0o755, OTHER), self._precious()
        library = os.path.join(os.path.dirname(self.kymo.path), "../libkymo/libkymo.so")
        if not os.path.exists(library):
            raise Skipped("libkymo.so is not where the build tree has it")
        environment = {"LD_PRELOAD": os.path.realpath(library), "KYMO_ENABLED": "on"}
        ours = self._directory()
        ended = run([self._build("busy", BUSY), "0"], cwd=ours, environment=environment)
        expect(ended.status == 0 and glob.glob(ours + "/kymo-busy-output/2*/spool/*"), f"no session: {ended}")
        run(["ln", "-s", os.path.dirname(precious), home + "/kymo-busy-output"], preexec=as_other)
        ended = run([self._build("busy", BUSY), "0"], cwd=home, environment=environment)
        expect(ended.status == 0 and "runs unprofiled" in ended.stderr, str(ended))
        self._expect_untouched(precious)

    def reports_do_not_follow_links_of_others(self):
        need_root()
        result, precious, home = self.scratch.path("plain"), self._precious(), self._directory(0o755, OTHER)
        ended = self.kymo.sample([self._build("busy", BUSY), "0"], result)
        expect(ended.status == 0, ended.stderr)
        gone = os.path.join(os.path.dirname(precious), "new")
        for target in (precious, gone):
            run(["ln", "-sfn", target, home + "/report.txt"], preexec=as_other)
            ended = self.kymo.report(result, "--format", "text", "--force", "-o", home + "/report.txt")
            expect(ended.status == 125 and "symbolic link of user" in ended.stderr, str(ended))
            self._expect_untouched(precious)
        run(["mkfifo", home + "/pipe"], preexec=as_other)
        ended = self.kymo.report(result, "--format", "text", "-o", home + "/pipe", timeout=20)
        expect(ended.status == 125, str(ended))
        run(["ln", "-sfn", os.path.dirname(precious), home + "/reports"], preexec=as_other)
        ended = self.kymo.report(result, "--format", "text", "-o", home + "/reports/")
        expect(ended.status == 125, str(ended))
        self._expect_untouched(precious)

    def merging_copies_nothing_through_links(self):
        need_root()
        home, precious, out = self._directory(0o755, OTHER), self._precious(), self.scratch.path("merged")
        run(["sh", "-c", f"mkdir -p {home}/r/spool && ln -s {precious} {home}/r/spool/nccl-1-0.nccl && "
             f"mkfifo {home}/r/spool/nccl-2-0.nccl && ln -s {precious} {home}/r/launch.json"], preexec=as_other)
        ended = run([self.kymo.path, "merge", home + "/r", "-o", out], timeout=20)
        expect(ended.status == 125 and "symbolic link" in ended.stderr, str(ended))
        copied = [path for path in glob.glob(out + "/spool/*") if open(path, "rb").read() == b"data"]
        expect(not copied, f"copied: {copied}")

    # ---- caches that become code ----

    def _poison(self, directory):
        paths = glob.glob(directory + "/*.plan")
        expect(paths, f"no plans in {directory}")
        for path in paths:
            with open(path, "r+b") as stream:
                data = bytearray(stream.read())
                header_size = struct.unpack_from("<I", data, 12)[0]
                at = len(data) // 2
                for i in range(at, len(data)):
                    data[i] = 0xcc
                expect(at > header_size, "a plan without stubs")
                stream.seek(0)
                stream.write(data)

    def damaged_plans_are_made_again(self):
        program, plans = self._build("calls", CALLS), self._directory()
        bare = run([program])
        for poisoned in (False, True, False):
            if poisoned:
                self._poison(plans)
            ended = run([self.kymo.path, "instrument", "-q", "--plan-cache", plans, "--output-path",
                         self.scratch.path("plans-out"), "--", program])
            expect((ended.status, ended.stdout) == (bare.status, bare.stdout), str(ended))

    def plans_of_another_user_are_not_taken(self):
        need_root()
        program, home = self._build("calls", CALLS), self._directory(0o755, OTHER)
        bare, environment = run([program]), {"HOME": home, "XDG_CACHE_HOME": ""}
        made = run([self.kymo.path, "instrument", "-q", "--", program], cwd=home, environment=environment,
                   preexec=as_other)
        expect(made.status == 0, made.stderr)
        plans = home + "/.cache/kymo/plans"
        before = sorted(os.listdir(plans))
        expect(before, "the user has no cache")
        run([PYTHON, "-c", f"""
import glob
for path in glob.glob({plans!r} + "/*.plan"):
    data = bytearray(open(path, "rb").read())
    data[len(data) // 2:] = bytes([0xcc]) * (len(data) - len(data) // 2)
    open(path, "r+b").write(data)
"""], preexec=as_other)
        ended = run([self.kymo.path, "instrument", "--output-path", self.scratch.path("foreign-plans"), "--",
                     program], environment=environment)
        expect((ended.status, ended.stdout) == (bare.status, bare.stdout), str(ended))
        expect("no cache of patch plans" in ended.stderr, ended.stderr)
        expect(sorted(os.listdir(plans)) == before, "root wrote into the user's cache")
        owners = {os.stat(os.path.join(plans, name)).st_uid for name in before}
        expect(owners == {OTHER}, f"owners {owners}")

    # ---- programs with more rights than their caller ----

    def set_user_id_programs_load_nothing(self):
        need_root()
        library = os.path.dirname(self.roctx)
        program = self._build("marks", MARKS, self.roctx, "-Wl,-rpath," + library)
        tool = self._build("tool.so", TOOL, "-shared", "-fPIC")
        variables = ({"ROCP_TOOL_LIBRARIES": tool},
                     {"ROCPROFILER_REGISTER_FORCE_LOAD": "1", "ROCPROFILER_REGISTER_LIBRARY": tool})
        plain = [run([program], environment=environment).stderr for environment in variables]
        if not all("LOADED" in text for text in plain):
            raise Failed(f"the tool is not loaded into a plain program either: {plain}")
        privileged = self.scratch.path("privileged")
        run(["cp", program, privileged])
        os.chmod(privileged, 0o4755)
        for environment in variables:
            ended = run([privileged], environment=environment, preexec=as_other)
            expect(ended.status == 0 and "LOADED" not in ended.stderr, f"{environment}: {ended}")

    # ---- files that others made ----

    def a_pipe_instead_of_a_perf_map(self):
        program, out = self._build("jit", JIT), self.scratch.path("jit-out")
        other = as_other if os.geteuid() == 0 else None
        kymo = self._start([self.kymo.path, "sample", "-q", "--time-output=off", "-o", out, "--", "sh", "-c",
                            f"echo $$ >{self.scratch.path('pid')}; exec {program}"])
        pid = wait_until(lambda: os.path.exists(self.scratch.path("pid")) and
                         open(self.scratch.path("pid"), encoding="ascii").read().strip(), "no pid")
        paths = [f"/tmp/perf-{pid}.map", f"/tmp/jit-{pid}.dump"]
        try:
            expect(run(["mkfifo", *paths], preexec=other).status == 0, "no pipes")
            try:
                kymo.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                kymo.kill()
                raise Failed("kymo waits for the pipe") from None
        finally:
            for path in paths:
                os.unlink(path)
        expect(kymo.returncode == 0, f"status {kymo.returncode}")

    def a_perf_map_of_another_user(self):
        need_root()
        program, out = self._build("jit", JIT), self.scratch.path("jit-names")
        names = []
        for who in (None, as_other):
            kymo = self._start([self.kymo.path, "sample", "-q", "--force", "--time-output=off", "-o", out, "--", "sh",
                                "-c", f"echo $$ >{self.scratch.path('pid2')}; exec {program}"])
            time.sleep(0.7)
            with open(self.scratch.path("pid2"), encoding="ascii") as stream:
                pid = stream.read().strip()
            path = f"/tmp/perf-{pid}.map"
            run(["sh", "-c", f"echo '1000 7fffffffffff madeup' >{path}"], preexec=who)
            kymo.communicate(timeout=60)
            os.unlink(path)
            with open(out + "/samples.folded", encoding="utf-8", errors="replace") as stream:
                names.append("madeup" in stream.read())
        expect(names == [True, False], f"names from our own map, from another user's: {names}")

    def results_with_pipes_and_links_in_them(self):
        result = self.scratch.path("sent")
        ended = self.kymo.sample([self._build("busy", BUSY), "0"], result)
        expect(ended.status == 0, ended.stderr)
        os.mkfifo(result + "/spool/9-0.spool")
        os.mkfifo(result + "/spool/nccl-9-0.nccl")
        os.mkfifo(result + "/spool/9-0.gpu")
        os.unlink(result + "/launch.json")
        os.mkfifo(result + "/launch.json")
        for form in (["--format", "text"], ["--format", "json"], ["--format", "html"], ["--format", "report"], []):
            ended = self.kymo.report(result, *form, timeout=30)
            expect(ended.status == 0, f"{form}: {ended.stderr}")
        if os.geteuid() == 0:
            os.unlink(result + "/launch.json")
            os.symlink("/etc/shadow", result + "/launch.json")
            os.lchown(result + "/launch.json", OTHER, OTHER)
            ended = self.kymo.report(result)
            expect(ended.status == 0 and b"symbolic link" in ended.stdout, str(ended))

    def pipes_as_programs_lists_and_configuration(self):
        pipe = self.scratch.path("pipe")
        os.mkfifo(pipe)
        os.chmod(pipe, 0o755)
        for line in (["sample", "--", pipe], ["sample", "--config-file", pipe, "--", "true"],
                     ["instrument", "--simulate", "--", pipe], ["report", pipe]):
            ended = run([self.kymo.path, *line], timeout=20)
            expect(ended.status not in (0,), f"{line}: {ended}")
        ended = run(["bash", "-c", "\"$0\" sample -q --output-path \"$1\" --config-file <(echo KYMO_SAMPLING_FREQ=50) -- true",
                     self.kymo.path, self.scratch.path("c")], timeout=20)
        expect(ended.status == 0, ended.stderr)

    def the_configuration_of_another_user(self):
        need_root()
        home = self._directory(0o755, OTHER)
        os.makedirs(home + "/.config/kymo")
        with open(home + "/.config/kymo/config", "w", encoding="ascii") as stream:
            stream.write(f"KYMO_OUTPUT_PATH = {home}/chosen-by-user\n")
        os.chown(home + "/.config/kymo/config", OTHER, OTHER)
        ended = run([self.kymo.path, "sample", "--", "true"], cwd=self._directory(),
                    environment={"HOME": home, "XDG_CONFIG_HOME": ""})
        expect("is not read: it belongs to another user" in ended.stderr, ended.stderr)
        expect(not os.path.exists(home + "/chosen-by-user"), "its settings were taken")

    # ---- programs that change their user ----

    def an_exec_as_another_user_is_named(self):
        need_root()
        out = self.scratch.path("changed")
        program = self._build("busy", BUSY)
        for way in ("os.setgid(54321); os.setuid(54321)",
                    "ctypes.CDLL(None).prctl(8, 1); os.setresuid(54321, 54321, 54321)"):
            ended = self.kymo.sample([sys.executable, "-c", f"import os, ctypes; {way}; "
                                      f"os.execv({program!r}, ['busy', '0'])"], out, "--force", "--color", "never",
                                     quiet=False)
            expect(ended.status == 0, ended.stderr)
            expect("busy was not profiled: its user may not write" in " ".join(ended.stderr.split()),
                   f"{way}: {ended.stderr}")

    def forks_as_another_user_are_named(self):
        need_root()
        out = self.scratch.path("forked")
        ended = self.kymo.sample([sys.executable, "-c", """
import os
os.setgid(54321)
os.setuid(54321)
for _ in range(2):
    if os.fork() == 0:
        os._exit(0)
    os.wait()
sum(range(10000000))
"""], out, "--color", "never", quiet=False)
        text = " ".join(ended.stderr.split())
        expect(ended.status == 0 and "processes that it forked were not profiled" in text, ended.stderr)
        expect(Result(out).samples() > 5, "the process itself is not sampled any more")

    # ---- names ----

    def hostile_names_in_every_output(self):
        program = self._build("names", NAMES)
        with open(program, "rb") as stream:
            data = stream.read()
        plain = b"NAME" * 10
        expect(plain in data, "the name is not in the program")
        hostile = self.scratch.path("e\x1b[31m\x1b]0;t\x07\"<b>\\,;'\n") + os.fsdecode(b"\xff")
        with open(hostile, "wb") as stream:
            stream.write(data.replace(plain, HOSTILE + b"_" * (len(plain) - len(HOSTILE))))
        os.chmod(hostile, 0o755)
        for command in (["sample"], ["instrument"]):
            out = self.scratch.path("names-" + command[0])
            ended = subprocess.run([self.kymo.path, *command, "--color", "never", "--time-output=off", "--output-path",
                                    out, "--", hostile], capture_output=True, env=clean_environment(), check=False)
            expect(ended.returncode == 0, ended.stderr)
            expect(not control_characters(ended.stderr), f"{command}: {control_characters(ended.stderr)[:3]}")
            seen = 0
            for directory, _, names in os.walk(out):
                for name in names:
                    seen += self._check_file(os.path.join(directory, name))
            expect(seen >= 4, f"{seen} files looked at")
            for form in ("text", "json", "folded", "html", "report"):
                ended = subprocess.run([self.kymo.path, "report", "--format", form, out], capture_output=True,
                                       env=clean_environment(), check=False)
                found = control_characters(ended.stdout) + control_characters(ended.stderr)
                expect(not found, f"report --format {form}: {found[:3]}")

    @staticmethod
    def _check_file(path):
        if not path.endswith((".txt", ".json", ".folded", ".html", ".csv")):
            return False
        with open(path, "rb") as stream:
            data = stream.read()
        found = control_characters(data)
        expect(not found, f"{path}: {found[:3]}")
        if path.endswith(".json"):
            json.loads(data)
        if path.endswith(".html"):
            expect(b"<script>x" not in data and b"<b>\"" not in data, f"{path}: markup of a name")
        return True

    # ---- kymo ctl ----

    def a_spool_file_names_processes_of_its_user_alone(self):
        need_root()
        program, out = self._build("busy", BUSY), self._directory(0o755, OTHER)
        mine = self._start([self.kymo.path, "sample", "-q", "--time-output=off", "--output-path",
                            self.scratch.path("ctl-own"), "--", program, "6"])
        theirs = self._start([self.kymo.path, "sample", "-q", "--time-output=off", "--output-path", out + "/r", "--",
                              program, "6"], preexec_fn=as_other)
        try:
            own = wait_until(lambda: glob.glob(self.scratch.path("ctl-own") + "/spool/*-0.spool"), "no spool file")
            spool = wait_until(lambda: glob.glob(out + "/r/spool/*-0.spool"), "no spool file")
            time.sleep(0.5)
            pid = int(os.path.basename(spool[0]).split("-")[0])
            # The user's directory claims that root's process is of its session.
            with open(own[0], "rb") as stream:
                header = stream.read(65536)
            claim = out + "/r/spool/77-0.spool"
            with open(claim, "wb") as stream:
                stream.write(header)
            os.chown(claim, OTHER, OTHER)
            ended = run([self.kymo.path, "ctl", str(pid), "status", "--tree"], timeout=30)
            expect(ended.status == 0, ended.stderr)
            root_pid = os.path.basename(own[0]).split("-")[0]
            expect(root_pid not in ended.stdout.decode().split(), f"root's process is listed: {ended.stdout}")
        finally:
            for process in (mine, theirs):
                if is_alive(process.pid):
                    process.send_signal(signal.SIGTERM)
                process.communicate(timeout=60)


def main():
    kymo, tap = Kymo(sys.argv[1]), Tap()
    with Scratch() as scratch:
        security = Security(kymo, os.path.abspath(sys.argv[2]), scratch)
        only = sys.argv[3:]
        for name in (name for name in vars(Security) if not name.startswith("_")):
            if not only or name in only:
                tap.point(name.replace("_", " "), getattr(security, name))
    tap.finish()


main()

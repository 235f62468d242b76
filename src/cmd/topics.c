/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Help topics that are no commands: what needs more than one line an option.
 */
#include "cmd/topics.h"

#include <string.h>

static const struct topic topics_table[] = {
	{"settings", "where settings come from",
	 "Every setting has one name, NAME, and can be given as\n\n"
	 "    --name-with-dashes VALUE      on the command line\n"
	 "    KYMO_NAME=VALUE               in the environment\n"
	 "    NAME = VALUE                  in a configuration file (-c FILE, KYMO_CONFIG_FILE, "
	 "or\n"
	 "                                  ~/.config/kymo/config)\n\n"
	 "An option beats the environment, which beats configuration files, which beat the "
	 "default.\n"
	 "ROCPROFSYS_NAME and OMNITRACE_NAME are read where the meaning is the same. Unknown "
	 "names\n"
	 "and impossible values are errors before the program starts.\n\n"
	 "    kymo avail                    lists settings with their values and where they come "
	 "from\n"
	 "    kymo avail -G kymo.conf       writes them to a configuration file\n\n"
	 "Booleans: --trace, --trace=off, --no-trace. Durations are seconds, or end in ns, us, ms, "
	 "s,\n"
	 "m or h. Sizes are bytes, or end in K, M or G. Lists are separated by commas. Lists and\n"
	 "expressions that several options give add up; of any other setting the last option "
	 "counts.\n"},
	{"config", "configuration files",
	 "Text: one NAME = value a line; # begins a comment, quotes keep blanks, $env:VARIABLE is\n"
	 "replaced. Names in any case, with or without KYMO_.\n\n"
	 "    # half the default rate, no HTML\n"
	 "    sampling_freq  = 500\n"
	 "    output_formats = text, json, perfetto\n"
	 "    output_path    = \"$env:HOME/profiles/%n\"\n\n"
	 "JSON: {\"SAMPLING_FREQ\": 500, \"OUTPUT_FORMATS\": [\"text\", \"json\"]}, or the same "
	 "inside\n"
	 "{\"kymo\": {\"settings\": …}}.\n\n"
	 "Several files are separated by colons; a later one wins.\n"},
	{"windows", "recording only part of a run",
	 "--wait S skips the first S seconds, --duration S stops after S seconds of collection.\n"
	 "--periods takes windows clock:delay:duration:cycles, run one after the other:\n\n"
	 "    --periods realtime:10:1:5                      five times: 10 s off, then 1 s on\n"
	 "    --periods realtime:10:1:5 process_cputime:10:2:20\n"
	 "    --periods 2:0.5:0                              2 s off, 0.5 s on, for ever\n\n"
	 "The clock may be left out (TRACE_PERIOD_CLOCK_ID counts then), and so may fields at the\n"
	 "end. Duration 0 means until the end, cycles 0 for ever. While a window is closed the "
	 "timers\n"
	 "are off, not just ignored. Windows are those of the whole run: a process that "
	 "is\n"
	 "started late finds them under way. By CPU time each process has its own.\n\n"
	 "Collection can be stopped and started at any time, in all ways together:\n\n"
	 "    kymo ctl PID stop | start                      from outside; --tree: all processes\n"
	 "    kymo_stop_trace(), kymo_start_trace()          by the program (kymo/user.h)\n"
	 "    --control-signal=SIGUSR2                       by a signal: off, on, off ...\n"
	 "    --init-enabled=off                             not before the first start; windows "
	 "wait\n"
	 "                                                   for it as well\n\n"
	 "The program's own regions (kymo_push_region) are recorded even while collection is "
	 "stopped,\n"
	 "but not outside a window. Regions that are open when a window closes are ended in the "
	 "data\n"
	 "when they end in the program.\n\n"
	 "--selected-regions a,b collects only while a thread is inside a region named a or b.\n"},
	{"regions", "what begins and ends: calls, regions of the program, their measures",
	 "A region is a stretch of a thread's time with a name: a call of a wrapped function (kymo "
	 "help\n"
	 "wrappers), an OpenMP or Kokkos construct, or what the program marks itself (kymo/user.h, "
	 "link\n"
	 "with -lkymo-user). Each goes as begin and end into the trace, and is added up in a call "
	 "tree.\n\n"
	 "    --components wall_clock,thread_cpu_clock,peak_rss   what the tree measures\n"
	 "    --components wall_clock,instructions,LLC-load-misses  perf events as well\n"
	 "    --disable-categories pthread,io                     leave kinds of regions out\n"
	 "    --max-depth 20                                      no deeper\n"
	 "    --throttle-count 100000                             drop regions that are many and "
	 "short\n\n"
	 "kymo avail components and kymo avail counters list what can be measured, kymo avail\n"
	 "categories the kinds of regions. A region costs only what its components need: "
	 "wall_clock\n"
	 "alone costs tens of ns, components that ask the kernel cost microseconds.\n"},
	{"wrappers", "functions of libraries that are recorded",
	 "Calls of these functions are regions, with what they were called for: the address of a "
	 "lock,\n"
	 "the bytes of a message, the peer. kymo avail wrappers lists the groups and what is "
	 "on.\n\n"
	 "    --trace-thread-locks      waits for mutexes\n"
	 "    --trace-io                reads, writes, polls, with their bytes\n"
	 "    --trace-memory            allocations by call site, and what is never freed\n"
	 "    --no-mpi                  no MPI calls\n"
	 "    --use-wrappers=off        nothing at all is wrapped\n\n"
	 "Functions of your choice, by library and argument types:\n\n"
	 "    --wrap 'int libz.so:deflate(void *, int); *:my_function(int, const char *)'\n\n"
	 "Functions are wrapped where libraries and the program call each other. Calls inside one\n"
	 "library, and of functions that were inlined, are not seen; sampling sees those.\n"},
	{"keys", "keys in paths", NULL},
	{"sampling", "how samples are taken",
	 "CPU time (the default): a thread is interrupted after every 1/FREQ seconds of its own "
	 "CPU\n"
	 "time, so that functions get as many samples as they use the processor. With permission, "
	 "a\n"
	 "perf task-clock event does this; otherwise a timer, which cannot be faster than the\n"
	 "kernel's tick (250 Hz on many systems). Each sample carries the CPU time since the one\n"
	 "before, so that sums are right either way. --sampling-source=perf|timer chooses.\n\n"
	 "Real time (--realtime): threads are looked at whether they run or wait, which shows "
	 "where\n"
	 "they block.\n\n"
	 "Overflow (--sampling-overflow): when an event has happened a number of times:\n\n"
	 "    --sampling-overflow --sampling-overflow-event=page-faults "
	 "--sampling-overflow-freq=100\n\n"
	 "perf events need kernel.perf_event_paranoid of 2 or less for one's own processes:\n"
	 "sysctl kernel.perf_event_paranoid=2. In containers they are often forbidden by "
	 "seccomp.\n"},
	{"exit", "exit status",
	 "The program's own; when a signal killed the program, kymo dies of the same signal.\n\n"
	 "    125   kymo itself failed (wrong option, unreadable results, --strict)\n"
	 "    126   the program exists but cannot be executed\n"
	 "    127   the program was not found\n\n"
	 "A profiler that fails must not fail the program: without --strict it runs anyway. Once "
	 "it has\n"
	 "run, its status is passed on, also where results could not be written (a full disk): "
	 "that "
	 "is\n"
	 "said on standard error, in lines that begin with 'kymo: error:'.\n"},
};

const struct topic *const topics = topics_table;
const size_t topic_count = sizeof(topics_table) / sizeof(topics_table[0]);

const struct topic *topic_find(const char *name)
{
	for (size_t i = 0; i < topic_count; i++) {
		if (!strcmp(topics[i].name, name))
			return &topics[i];
	}
	return NULL;
}

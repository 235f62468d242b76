/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Help topics besides the commands: texts that need more than one line per option.
 */
#include "cmd/help/topics.h"

#include <string.h>

#include "common/array.h"

static const struct help_topic topics_table[] = {
	{"settings", "where settings come from",
	 "Every setting has one name, NAME. You can set it\n\n"
	 "    --name-with-dashes VALUE      on the command line\n"
	 "    KYMO_NAME=VALUE               in the environment\n"
	 "    NAME = VALUE                  in a configuration file (-c FILE, KYMO_CONFIG_FILE, "
	 "or\n"
	 "                                  ~/.config/kymo/config)\n\n"
	 "An option beats the environment, which beats configuration files, which beat presets\n"
	 "(--preset; kymo avail presets), which beat the default.\n"
	 "kymo also reads ROCPROFSYS_NAME and OMNITRACE_NAME where the meaning is the same. "
	 "Unknown names\n"
	 "and invalid values are errors, reported before the program starts.\n\n"
	 "    kymo avail                    lists settings, their values and where they come from\n"
	 "    kymo avail -G kymo.conf       writes them to a configuration file\n\n"
	 "Booleans: --trace, --trace=off, --no-trace. Durations are seconds, or end in ns, us, ms, "
	 "s,\n"
	 "m or h. Sizes are bytes, or end in K, M or G. Lists are separated by commas. If several "
	 "options\n"
	 "give lists or expressions, kymo combines them; for any other setting the last option "
	 "wins.\n"},
	{"config", "configuration files",
	 "Text: one NAME = value per line; # begins a comment, quotes keep blanks, and kymo "
	 "replaces\n"
	 "$env:VARIABLE. Names may be upper or lower case, with or without KYMO_.\n\n"
	 "    # half the default rate, no HTML\n"
	 "    sampling_freq  = 500\n"
	 "    output_formats = text, json, perfetto\n"
	 "    output_path    = \"$env:HOME/profiles/%n\"\n\n"
	 "JSON: {\"SAMPLING_FREQ\": 500, \"OUTPUT_FORMATS\": [\"text\", \"json\"]}, or the same "
	 "inside\n"
	 "{\"kymo\": {\"settings\": …}}.\n\n"
	 "Separate several files by colons; a later file wins.\n"},
	{"windows", "recording only part of a run",
	 "--wait S skips the first S seconds, --duration S stops after S seconds of collection.\n"
	 "--periods takes windows clock:delay:duration:cycles, which run one after the other:\n\n"
	 "    --periods realtime:10:1:5                      five times: 10 s off, then 1 s on\n"
	 "    --periods realtime:10:1:5 process_cputime:10:2:20\n"
	 "    --periods 2:0.5:0                              2 s off, 0.5 s on, for ever\n\n"
	 "You can omit the clock (the default is TRACE_PERIOD_CLOCK_ID) and fields at the end.\n"
	 "Duration 0 means until the end, cycles 0 means for ever. While a window is closed the "
	 "timers\n"
	 "are off. Windows apply to the whole run: a process that starts later joins the window "
	 "that is\n"
	 "open then. With CPU-time clocks each process has its own windows.\n\n"
	 "You can stop and start collection at any time, in several ways together:\n\n"
	 "    kymo ctl PID stop | start                      from outside; --tree: all processes\n"
	 "    kymo_stop_trace(), kymo_start_trace()          from the program (kymo/user.h)\n"
	 "    --control-signal=SIGUSR2                       by a signal: off, on, off ...\n"
	 "    --init-enabled=off                             collect nothing before the first "
	 "start;\n"
	 "                                                   windows wait for it as well\n\n"
	 "kymo records the program's own regions (kymo_push_region) even while collection is "
	 "stopped, but\n"
	 "not outside a window. A region that is open when a window closes ends in the data when "
	 "it ends\n"
	 "in the program.\n\n"
	 "--selected-regions a,b collects only while a thread is inside a region named a or b.\n"},
	{"regions", "regions: what they are, and what kymo measures in them",
	 "A region is a span of a thread's time with a name: a call of a wrapped function (kymo "
	 "help\n"
	 "wrappers), an OpenMP or Kokkos construct, or a part of the program that it marks itself\n"
	 "(kymo/user.h, link with -lkymo-user). The trace shows the beginning and end of each "
	 "region; the\n"
	 "profile adds them up in a call tree.\n\n"
	 "    --components wall_clock,thread_cpu_clock,peak_rss   measures in the tree\n"
	 "    --components wall_clock,instructions,LLC-load-misses  perf events as well\n"
	 "    --disable-categories pthread,io                     record no regions of these "
	 "kinds\n"
	 "    --max-depth 20                                      record no deeper nesting\n"
	 "    --throttle-count 100000                             drop regions with many short "
	 "calls\n\n"
	 "kymo avail components and kymo avail counters list the measures, kymo avail categories "
	 "the kinds\n"
	 "of regions. The cost of a region depends on its components: wall_clock costs tens of "
	 "ns,\n"
	 "components that ask the kernel cost microseconds.\n"},
	{"wrappers", "recorded library functions",
	 "kymo records calls of these functions as regions, with their main arguments: the address "
	 "of a\n"
	 "lock, the bytes of a message, the peer. kymo avail wrappers lists the groups and which "
	 "are on.\n\n"
	 "    --trace-thread-locks      waits for mutexes\n"
	 "    --trace-io                reads, writes, polls, with their bytes\n"
	 "    --trace-memory            allocations by call site, and blocks that are never freed\n"
	 "    --no-mpi                  no MPI calls\n"
	 "    --use-wrappers=off        wrap nothing\n\n"
	 "To wrap other functions, give the library and the argument types:\n\n"
	 "    --wrap 'int libz.so:deflate(void *, int); *:my_function(int, const char *)'\n\n"
	 "kymo sees calls between libraries and from the program into a library. It does not see "
	 "calls\n"
	 "inside one library, or calls that the compiler inlined; sampling does.\n"},
	{"keys", "keys in paths", NULL},
	{"sampling", "how samples are taken",
	 "CPU time (the default): kymo interrupts a thread after every 1/FREQ seconds of its own "
	 "CPU time,\n"
	 "so the number of samples in a function is proportional to its CPU time. With permission, "
	 "kymo\n"
	 "uses a perf task-clock event; otherwise a timer, which fires at most once per kernel "
	 "tick (250 Hz\n"
	 "on many systems). Each sample carries the CPU time since the one before, so sums are "
	 "right either\n"
	 "way. --sampling-source=perf|timer selects the source.\n\n"
	 "Real time (--realtime): kymo samples threads whether they run or wait, which shows where "
	 "they\n"
	 "block, and where they wait for a CPU.\n\n"
	 "Overflow (--sampling-overflow): kymo takes a sample each time an event has occurred N "
	 "times:\n\n"
	 "    --sampling-overflow --sampling-overflow-event=page-faults "
	 "--sampling-overflow-freq=100\n\n"
	 "To use perf events on your own processes, kernel.perf_event_paranoid must be 2 or less:\n"
	 "sysctl kernel.perf_event_paranoid=2. In containers a seccomp filter often forbids "
	 "them.\n"},
	{"exit", "exit status",
	 "kymo exits with the program's status. If a signal kills the program, kymo dies of the "
	 "same signal.\n\n"
	 "    125   kymo failed (wrong option, unreadable results, --strict)\n"
	 "    126   the program exists but cannot be executed\n"
	 "    127   the program was not found\n\n"
	 "If the profiler fails, the program still runs, unless you give --strict. Once the "
	 "program has run,\n"
	 "kymo returns its status even if it could not write the results (a full disk, for "
	 "example); it then\n"
	 "prints lines that begin with 'kymo: error:' to standard error.\n"},
};

const struct help_topic *const topics = topics_table;
const size_t topic_count = ARRAY_SIZE(topics_table);

const struct help_topic *help_topic_find_by_name(const char *name)
{
	for (size_t i = 0; i < topic_count; i++) {
		if (!strcmp(topics[i].name, name))
			return &topics[i];
	}
	return NULL;
}

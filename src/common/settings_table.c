/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The settings table itself; see settings.h. A row: name, category, help, type with its default,
 * then what is special about it. Names follow the peer's (ROCm Systems Profiler) where there is
 * one; ALIAS says that the meaning is the same, so that its ROCPROFSYS_ and OMNITRACE_ variables
 * are read as well. Listings keep the order of this table.
 */
#include "common/settings.h"

#include <stddef.h>

#include "common/output_formats.h"

/* Words for people are left out of what is loaded into programs: each is a pointer that the loader
 * moves in every process. */
#ifdef KYMO_SETTINGS_WITHOUT_WORDS
#define WORDS(member, text) .member = NULL
#else
#define WORDS(member, text) .member = text
#endif
#define LONG_OPTION(text) WORDS(long_option, text)
#define METAVAR(text)     WORDS(metavar, text)

#define SETTING(id, category_, help_, ...)                                                         \
	[SETTING_##id] = {.name = #id, WORDS(category, category_), WORDS(help, help_), __VA_ARGS__}

#define TYPE_FIELDS(type_, default_) .type = SETTING_##type_, .default_value = default_
#define BOOL(default_)               TYPE_FIELDS(BOOL, default_)
#define INTEGER(default_)            TYPE_FIELDS(INTEGER, default_)
#define NUMBER(default_)             TYPE_FIELDS(NUMBER, default_)
#define STRING(default_)             TYPE_FIELDS(STRING, default_)
#define PATH(default_)               TYPE_FIELDS(PATH, default_)
#define LIST(default_)               TYPE_FIELDS(LIST, default_)
#define SIZE(default_)               TYPE_FIELDS(SIZE, default_)
#define PERIODS(default_)            TYPE_FIELDS(PERIODS, default_)
#define PATTERN                      TYPE_FIELDS(PATTERN, ""), METAVAR("REGEX")
#define TID_LIST(default_)           TYPE_FIELDS(TIDS, default_)
#define CHOICE(default_, list)       TYPE_FIELDS(CHOICE, default_), .choices = list
#define CHOICES(default_, list)      TYPE_FIELDS(LIST, default_), .choices = list
#define RANGE(low, high)             .minimum = low, .maximum = high
/* 30 years: a duration that stays far from the end of 64-bit nanoseconds. */
#define DURATION(default_) TYPE_FIELDS(DURATION, default_), RANGE(0, 1e9), METAVAR("S")
/* Above 10 kHz the kernel's part of a sample alone distorts the program. */
#define FREQUENCY(default_) TYPE_FIELDS(NUMBER, default_), RANGE(0.01, 10000), METAVAR("HZ")
#define ADVANCED            .visibility = SETTING_ADVANCED
#define INTERNAL            .visibility = SETTING_INTERNAL
#define PEER_ALIAS          .has_peer_aliases = 1

const struct setting settings_table[SETTING_COUNT] = {
	/* ---- General ---- */
	SETTING(ENABLED, "general",
		"Master switch: off runs the program as if kymo were not there.", BOOL("on"),
		PEER_ALIAS),
	SETTING(VERBOSE, "general",
		"How much kymo prints to standard error: -1 errors only, 0 a summary, 1 and up "
		"details.",
		INTEGER("0"), RANGE(-1, 3), METAVAR("LEVEL"), PEER_ALIAS),
	SETTING(CONFIG_FILE, "general",
		"Configuration files, text (NAME = value) or JSON, separated by colons.", PATH(""),
		LONG_OPTION("config"), .short_option = 'c', METAVAR("FILE"), PEER_ALIAS),
	SETTING(PRESET, "general",
		"Settings for a kind of program (kymo avail presets explains them); what you set "
		"yourself counts before them.",
		CHOICES("", "gpu,server,python,mpi,light,full"), METAVAR("NAME")),
	SETTING(STRICT_CONFIG, "general",
		"Treat unknown settings in configuration files as errors.", BOOL("on"), ADVANCED,
		PEER_ALIAS),
	SETTING(STRICT, "general",
		"Do not start a program that cannot be profiled, or with an unknown KYMO_ variable "
		"in the environment; without it, the program runs unprofiled, and the variable is "
		"a warning.",
		BOOL("off"), ADVANCED),
	SETTING(COLOR, "general",
		"Colour in messages and summaries; auto: on a terminal, unless NO_COLOR is set.",
		CHOICE("auto", "auto,always,never"), ADVANCED),

	/* ---- Results ---- */
	SETTING(OUTPUT_PATH, "output",
		"Directory for results; takes keys such as %p (pid), %h (host), %t (time), %n "
		"(program), %r (rank), %q{VARIABLE}.",
		PATH("kymo-%n-output"), LONG_OPTION("output"), .short_option = 'o', METAVAR("DIR"),
		PEER_ALIAS),
	SETTING(OUTPUT_PREFIX, "output",
		"Prefix for the name of every result file; a trailing slash makes it a directory.",
		PATH(""), METAVAR("PREFIX"), PEER_ALIAS),
	SETTING(OUTPUT_FORMATS, "output", "Which result files to write after the run.",
		CHOICES(OUTPUT_FORMATS_DEFAULT, OUTPUT_FORMATS_CHOICES), LONG_OPTION("format"),
		METAVAR("LIST")),
	SETTING(TIME_OUTPUT, "output",
		"Put each run's results in a sub-directory named by date and time.", BOOL("on"),
		ADVANCED, PEER_ALIAS),
	SETTING(FORCE, "output", "Overwrite existing results.", BOOL("off"), ADVANCED),
	SETTING(TRACE, "output", "Write the Perfetto trace.", BOOL("on"), .short_option = 'T',
		PEER_ALIAS),
	SETTING(PROFILE, "output", "Write the call-tree profile.", BOOL("on"), .short_option = 'P',
		PEER_ALIAS),
	SETTING(FLAT_PROFILE, "output",
		"Make the text profile flat (by function) instead of a call tree.", BOOL("off"),
		.short_option = 'F', PEER_ALIAS),
	SETTING(TIMELINE_PROFILE, "output",
		"Make the text profile a timeline: one row for each call of a region, in order of "
		"time.",
		BOOL("off"), ADVANCED, PEER_ALIAS),
	SETTING(COLLAPSE_THREADS, "output",
		"Add up the call trees of all threads of a process in the profile.", BOOL("on"),
		ADVANCED, PEER_ALIAS),
	SETTING(COLLAPSE_PROCESSES, "output",
		"Add up the call trees of all processes in the profile.", BOOL("off"), ADVANCED,
		PEER_ALIAS),
	SETTING(TRACE_COMPRESS, "output", "Compress the Perfetto trace with zlib.", BOOL("off"),
		ADVANCED),
	SETTING(SAMPLING_INCLUDE_INLINES, "output",
		"Show inlined functions as frames where debug information has them.", BOOL("on"),
		LONG_OPTION("inlines"), .short_option = 'i', PEER_ALIAS),
	SETTING(DEBUG_PATH, "output",
		"Where separate debug files are looked for, separated by colons.",
		PATH("/usr/lib/debug"), METAVAR("PATH"), ADVANCED),
	SETTING(SYMBOL_CACHE, "output",
		"Directory of the symbol cache; empty: the user's cache directory; none: no cache.",
		PATH(""), METAVAR("DIR"), ADVANCED),

	/* ---- Collection windows ---- */
	SETTING(TRACE_DELAY, "windows", "Seconds before collection starts.", DURATION("0"),
		LONG_OPTION("wait"), .short_option = 'w', PEER_ALIAS),
	SETTING(TRACE_DURATION, "windows",
		"Seconds of collection after the delay; 0 means until the end.", DURATION("0"),
		LONG_OPTION("duration"), .short_option = 'd', PEER_ALIAS),
	SETTING(TRACE_PERIODS, "windows",
		"Collection windows, clock:delay:duration:cycles, run one after the other; cycles "
		"0 means for ever.",
		PERIODS(""), LONG_OPTION("periods"), METAVAR("SPEC")),
	SETTING(TRACE_PERIOD_CLOCK_ID, "windows", "Clock of windows that do not name one.",
		CHOICE("realtime", "realtime,monotonic,process_cputime,monotonic_raw,realtime_"
				   "coarse,monotonic_coarse,boottime"),
		METAVAR("CLOCK"), ADVANCED, PEER_ALIAS),
	SETTING(INIT_ENABLED, "windows",
		"Collect from the start; off waits for kymo_start_trace() or kymo ctl PID start.",
		BOOL("on"), PEER_ALIAS),
	SETTING(SELECTED_REGIONS, "windows",
		"Collect only while a thread is inside a region with one of these names.", LIST(""),
		METAVAR("LIST"), PEER_ALIAS),
	SETTING(ENABLE_CATEGORIES, "windows",
		"Record regions of these categories only (kymo avail categories lists them).",
		LIST(""), METAVAR("LIST"), ADVANCED, PEER_ALIAS),
	SETTING(DISABLE_CATEGORIES, "windows", "Record no regions of these categories.", LIST(""),
		METAVAR("LIST"), ADVANCED, PEER_ALIAS),
	SETTING(CONTROL_SIGNAL, "windows",
		"Signal that stops collection, and starts it again the next time; none: no signal.",
		CHOICE("none", "none,SIGUSR1,SIGUSR2,SIGURG,SIGIO,SIGPROF,SIGVTALRM"), ADVANCED),

/* ---- Call-stack sampling ---- */
#include "common/settings_sampling.inc"

	/* ---- Regions ---- */
	SETTING(COMPONENTS, "regions",
		"What the profile measures in every region (kymo avail components lists them).",
		LIST("wall_clock"), LONG_OPTION("components"), METAVAR("LIST")),
	SETTING(MAX_DEPTH, "regions", "Deepest nesting of regions recorded.", INTEGER("65535"),
		RANGE(1, 65535), LONG_OPTION("max-depth"), METAVAR("N"), ADVANCED, PEER_ALIAS),
	SETTING(THROTTLE_COUNT, "regions",
		"Calls of a region after which THROTTLE_VALUE applies to it; 0: regions are never "
		"throttled.",
		INTEGER("0"), RANGE(0, 1e12), METAVAR("N"), ADVANCED),
	SETTING(THROTTLE_VALUE, "regions",
		"A region whose calls last fewer ns than this on average is no longer recorded.",
		INTEGER("10000"), RANGE(1, 1e12), METAVAR("NS"), ADVANCED, PEER_ALIAS),
	SETTING(PROFILE_MAX_NODES, "regions",
		"Most nodes of a thread's call tree; further calls are counted together as (more).",
		INTEGER("65536"), RANGE(16, 16777216), METAVAR("N"), ADVANCED),
	SETTING(PROFILE_MAX_THREADS, "regions",
		"Most call trees of a process; later threads reuse the trees of ended threads.",
		INTEGER("1024"), RANGE(1, 1e6), METAVAR("N"), ADVANCED),

/* ---- Wrapped functions ---- */
#include "common/settings_wrapped_functions.inc"

	/* ---- Counters of devices ---- */
	SETTING(COUNTERS, "counters",
		"Counters to read for each kernel; the kernels of a device then run one at a time "
		"(kymo avail --counters).",
		LIST(""), METAVAR("LIST")),
	SETTING(DEVICE_COUNTERS, "counters",
		"Counters to read for whole devices, every COUNTER_INTERVAL.", LIST(""),
		METAVAR("LIST")),
	SETTING(COUNTER_INTERVAL, "counters",
		"Time between two readings of DEVICE_COUNTERS, in ms.", NUMBER("10"),
		RANGE(0.05, 3600000), LONG_OPTION("interval"), METAVAR("MS")),
	SETTING(KERNEL_INCLUDE, "counters", "Count kernels with these names only.", PATTERN),
	SETTING(KERNEL_EXCLUDE, "counters",
		"Do not count kernels with these names. Kernels of NCCL, RCCL and NVSHMEM are left "
		"out anyway, unless KERNEL_INCLUDE names them.",
		PATTERN),
	SETTING(KERNEL_RANGE, "counters",
		"Which launches of each kernel to count, from 1: 3, 2-5, 1,8-12.", STRING(""),
		METAVAR("A-B")),
	SETTING(COUNT_REGIONS, "counters",
		"Count what a thread does inside each roctx or NVTX range, as if the range were a "
		"kernel of the host.",
		BOOL("off")),
	SETTING(COUNTER_DEFS, "counters",
		"Files with definitions of counters besides kymo's own, separated by colons.",
		PATH(""), METAVAR("FILE")),
	SETTING(COUNTER_WATCHDOG, "counters",
		"Seconds without progress after which a counted kernel is no longer counted, so "
		"that kernels that wait for each other can continue; 0: never.",
		DURATION("30"), ADVANCED),

/* ---- Instrumented functions ---- */
#include "common/settings_instrumented_functions.inc"

/* ---- Causal profiling ---- */
#include "common/settings_causal.inc"

	/* ---- Process metrics ---- */
	SETTING(FOLLOW_CHILDREN, "process",
		"Profile the processes that the program starts as well.", BOOL("on")),
	SETTING(USE_PROCESS_SAMPLING, "process",
		"Record memory, faults, CPU time and I/O of the process in the background.",
		BOOL("on"), LONG_OPTION("host"), .short_option = 'H', PEER_ALIAS),
	SETTING(PROCESS_SAMPLING_FREQ, "process", "Readings a second of the process's metrics.",
		NUMBER("10"), RANGE(0.01, 1000), LONG_OPTION("process-freq"), METAVAR("HZ"),
		PEER_ALIAS),
	SETTING(PROCESS_SAMPLING_DELAY, "process",
		"Seconds before the first reading of the process's metrics.", DURATION("0"),
		ADVANCED),
	SETTING(PROCESS_SAMPLING_DURATION, "process",
		"Seconds of process sampling; 0 means until the end.", DURATION("0"), ADVANCED,
		PEER_ALIAS),
	SETTING(CPU_FREQ_ENABLED, "process", "Record the frequency of every CPU.", BOOL("off"),
		PEER_ALIAS),

	/* ---- Memory and files ---- */
	SETTING(USE_TEMPORARY_FILES, "memory",
		"Keep recorded data in files; off keeps it in memory (tmpfs) until the results are "
		"written.",
		BOOL("on"), ADVANCED, PEER_ALIAS),
	SETTING(SPOOL_LIMIT, "memory",
		"Most bytes of recorded data that a process may keep; 0 means no limit.",
		SIZE("4G"), METAVAR("SIZE"), ADVANCED),
	SETTING(SPOOL_RING, "memory",
		"At SPOOL_LIMIT, overwrite the oldest data; off drops the newest instead.",
		BOOL("on"), ADVANCED),

	/* ---- Between the halves of kymo; not for users ---- */
	SETTING(COMPONENT_EVENTS, "internal",
		"The perf events among COMPONENTS, as type:config in hexadecimal, in their order.",
		STRING(""), INTERNAL),
	SETTING(SAMPLING_COUNTER_EVENTS, "internal", "The same for SAMPLING_COUNTERS.", STRING(""),
		INTERNAL),
	SETTING(SAMPLING_OVERFLOW_CODE, "internal", "The same for SAMPLING_OVERFLOW_EVENT.",
		STRING(""), INTERNAL),
	SETTING(SPOOL_DIRECTORY, "internal",
		"Where the processes of this session write their spool files.", PATH(""), INTERNAL),
	SETTING(INSTRUMENT, "internal",
		"Socket at which processes of this session ask what to instrument.", PATH(""),
		INTERNAL),
	SETTING(CAUSAL, "internal",
		"Directory of what kymo and the processes of this session share in causal "
		"profiling.",
		PATH(""), INTERNAL),
};

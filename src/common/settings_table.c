/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The settings table itself; see settings.h.
 *
 * A row: name, category, help, type with its default, then what is special about it. Names follow
 * the peer's (ROCm Systems Profiler) where there is one; ALIAS says that the meaning is the same,
 * so that its ROCPROFSYS_ and OMNITRACE_ variables are read as well. Listings keep the order of
 * this table.
 */
#include "common/settings.h"

#include <stddef.h>

#define SETTING(id, category_, help_, ...)                                                         \
	[SETTING_##id] = {.name = #id, .category = category_, .help = help_, __VA_ARGS__}

#define OF_TYPE(type_, default_) .type = SETTING_##type_, .default_value = default_
#define BOOL(default_)           OF_TYPE(BOOL, default_)
#define INTEGER(default_)        OF_TYPE(INTEGER, default_)
#define NUMBER(default_)         OF_TYPE(NUMBER, default_)
#define STRING(default_)         OF_TYPE(STRING, default_)
#define PATH(default_)           OF_TYPE(PATH, default_)
#define LIST(default_)           OF_TYPE(LIST, default_)
#define SIZE(default_)           OF_TYPE(SIZE, default_)
#define PERIODS(default_)        OF_TYPE(PERIODS, default_)
#define THREADS(default_)        OF_TYPE(TIDS, default_)
#define CHOICE(default_, list)   OF_TYPE(CHOICE, default_), .choices = list
#define LIST_OF(default_, list)  OF_TYPE(LIST, default_), .choices = list
#define RANGE(low, high)         .minimum = low, .maximum = high
/* 30 years: a duration that stays far from the end of 64-bit nanoseconds. */
#define DURATION(default_) OF_TYPE(DURATION, default_), RANGE(0, 1e9), .metavar = "S"
/* Above 10 kHz the kernel's part of a sample alone distorts the program. */
#define FREQUENCY(default_) OF_TYPE(NUMBER, default_), RANGE(0.01, 10000), .metavar = "HZ"
#define ADVANCED            .visibility = SETTING_ADVANCED
#define INTERNAL            .visibility = SETTING_INTERNAL
#define ALIAS               .alias = 1

const struct setting settings_table[SETTING_COUNT] = {

	/* ---- General ---- */
	SETTING(ENABLED, "general",
		"Master switch: off runs the program as if kymo were not there.", BOOL("on"),
		ALIAS),
	SETTING(VERBOSE, "general",
		"How much kymo says on standard error: -1 errors only, 0 a summary, 1 and up "
		"details.",
		INTEGER("0"), RANGE(-1, 3), .metavar = "LEVEL", ALIAS),
	SETTING(CONFIG_FILE, "general",
		"Configuration files, text (NAME = value) or JSON, separated by colons.", PATH(""),
		.option = "config", .short_option = 'c', .metavar = "FILE", ALIAS),
	SETTING(STRICT_CONFIG, "general",
		"Treat unknown settings in configuration files as errors.", BOOL("on"), ADVANCED,
		ALIAS),
	SETTING(STRICT, "general",
		"Do not start a program that cannot be profiled; without it, the program runs "
		"unprofiled.",
		BOOL("off"), ADVANCED),
	SETTING(COLOR, "general",
		"Colour in messages and summaries; auto: on a terminal, unless NO_COLOR is set.",
		CHOICE("auto", "auto,always,never"), ADVANCED),

	/* ---- Results ---- */
	SETTING(OUTPUT_PATH, "output",
		"Directory for results; takes keys such as %p (pid), %h (host), %t (time), %n "
		"(program), %r (rank), %q{VARIABLE}.",
		PATH("kymo-%n-output"), .option = "output", .short_option = 'o', .metavar = "DIR",
		ALIAS),
	SETTING(OUTPUT_PREFIX, "output",
		"Text put in front of every result file's name; a trailing slash makes it a "
		"directory.",
		PATH(""), .metavar = "PREFIX", ALIAS),
	SETTING(OUTPUT_FORMATS, "output", "Which result files to write after the run.",
		LIST_OF("text,json,perfetto,folded,pprof,html,memory",
			"text,json,perfetto,folded,pprof,html,memory,regions-folded"),
		.option = "format", .metavar = "LIST"),
	SETTING(TIME_OUTPUT, "output",
		"Put each run's results in a sub-directory named by date and time.", BOOL("on"),
		ADVANCED, ALIAS),
	SETTING(FORCE, "output", "Overwrite results that are already there.", BOOL("off"),
		ADVANCED),
	SETTING(TRACE, "output", "Write the Perfetto trace.", BOOL("on"), .short_option = 'T',
		ALIAS),
	SETTING(PROFILE, "output", "Write the call-tree profile.", BOOL("on"), .short_option = 'P',
		ALIAS),
	SETTING(FLAT_PROFILE, "output",
		"Make the text profile flat (by function) instead of a call tree.", BOOL("off"),
		.short_option = 'F', ALIAS),
	SETTING(TIMELINE_PROFILE, "output",
		"Make the text profile a timeline: one row a call of a region, in order of time.",
		BOOL("off"), ADVANCED, ALIAS),
	SETTING(COLLAPSE_THREADS, "output",
		"Add up the call trees of all threads of a process in the profile.", BOOL("on"),
		ADVANCED, ALIAS),
	SETTING(COLLAPSE_PROCESSES, "output",
		"Add up the call trees of all processes in the profile.", BOOL("off"), ADVANCED,
		ALIAS),
	SETTING(TRACE_COMPRESS, "output", "Compress the Perfetto trace with zlib.", BOOL("off"),
		ADVANCED),
	SETTING(SAMPLING_INCLUDE_INLINES, "output",
		"Show inlined functions as frames where debug information has them.", BOOL("on"),
		.option = "inlines", .short_option = 'i', ALIAS),
	SETTING(DEBUG_PATH, "output",
		"Where separate debug files are looked for, separated by colons.",
		PATH("/usr/lib/debug"), .metavar = "PATH", ADVANCED),
	SETTING(SYMBOL_CACHE, "output",
		"Directory of the symbol cache; empty: the user's cache directory; none: no cache.",
		PATH(""), .metavar = "DIR", ADVANCED),

	/* ---- Collection windows ---- */
	SETTING(TRACE_DELAY, "windows", "Seconds before collection starts.", DURATION("0"),
		.option = "wait", .short_option = 'w', ALIAS),
	SETTING(TRACE_DURATION, "windows",
		"Seconds of collection after the delay; 0 means until the end.", DURATION("0"),
		.option = "duration", .short_option = 'd', ALIAS),
	SETTING(TRACE_PERIODS, "windows",
		"Collection windows, clock:delay:duration:cycles, run one after the other; cycles "
		"0 means for ever.",
		PERIODS(""), .option = "periods", .metavar = "SPEC"),
	SETTING(TRACE_PERIOD_CLOCK_ID, "windows", "Clock of windows that name none.",
		CHOICE("realtime", "realtime,monotonic,process_cputime,monotonic_raw,realtime_"
				   "coarse,monotonic_coarse,boottime"),
		.metavar = "CLOCK", ADVANCED, ALIAS),

	SETTING(INIT_ENABLED, "windows",
		"Collect from the start; off waits for kymo_start_trace() or kymo ctl PID start.",
		BOOL("on"), ALIAS),
	SETTING(SELECTED_REGIONS, "windows",
		"Collect only inside regions with these names (of the thread that is in one).",
		LIST(""), .metavar = "LIST", ALIAS),
	SETTING(ENABLE_CATEGORIES, "windows",
		"Record regions of these categories only (kymo avail categories lists them).",
		LIST(""), .metavar = "LIST", ADVANCED, ALIAS),
	SETTING(DISABLE_CATEGORIES, "windows", "Record no regions of these categories.", LIST(""),
		.metavar = "LIST", ADVANCED, ALIAS),
	SETTING(CONTROL_SIGNAL, "windows",
		"Signal that stops collection, and starts it when it comes again; none: no signal.",
		CHOICE("none", "none,SIGUSR1,SIGUSR2,SIGURG,SIGIO,SIGPROF,SIGVTALRM"), ADVANCED),

	/* ---- Call-stack sampling ---- */
	SETTING(USE_SAMPLING, "sampling", "Sample call stacks.", BOOL("on"), ALIAS),
	SETTING(SAMPLING_FREQ, "sampling", "Samples a second and thread; at most 10000.",
		FREQUENCY("1000"), .option = "freq", .short_option = 'f', ALIAS),
	SETTING(SAMPLING_DELAY, "sampling", "Seconds before the first sample.", DURATION("0"),
		ALIAS),
	SETTING(SAMPLING_DURATION, "sampling", "Seconds of sampling; 0 means until the end.",
		DURATION("0"), ALIAS),
	SETTING(SAMPLING_TIDS, "sampling",
		"Sample only these threads, numbered by creation (0 is the main thread).",
		THREADS(""), .option = "tids", .short_option = 't', ALIAS),
	SETTING(SAMPLING_SOURCE, "sampling",
		"What interrupts the threads: perf task-clock events, POSIX CPU timers (limited to "
		"the kernel's tick), or the best permitted.",
		CHOICE("auto", "auto,perf,timer")),
	SETTING(SAMPLING_CPUTIME, "sampling",
		"Sample on CPU time; auto: on unless only another kind is asked for.",
		CHOICE("auto", "auto,on,off"), ALIAS),
	SETTING(SAMPLING_CPUTIME_FREQ, "sampling", "CPU-time samples a second of CPU time.",
		FREQUENCY(""), .inherits = "SAMPLING_FREQ", ADVANCED, ALIAS),
	SETTING(SAMPLING_CPUTIME_DELAY, "sampling", "Seconds before the first CPU-time sample.",
		DURATION(""), .inherits = "SAMPLING_DELAY", ADVANCED, ALIAS),
	SETTING(SAMPLING_CPUTIME_DURATION, "sampling",
		"Seconds of CPU-time sampling; 0 means until the end.", DURATION(""),
		.inherits = "SAMPLING_DURATION", ADVANCED),
	SETTING(SAMPLING_CPUTIME_TIDS, "sampling", "Threads for CPU-time sampling.", THREADS(""),
		.inherits = "SAMPLING_TIDS", ADVANCED, ALIAS),
	SETTING(SAMPLING_REALTIME, "sampling",
		"Sample on real time as well, which shows where threads block.", BOOL("off"),
		ALIAS),
	SETTING(SAMPLING_REALTIME_FREQ, "sampling", "Real-time samples a second.", FREQUENCY(""),
		.inherits = "SAMPLING_FREQ", ADVANCED, ALIAS),
	SETTING(SAMPLING_REALTIME_DELAY, "sampling", "Seconds before the first real-time sample.",
		DURATION(""), .inherits = "SAMPLING_DELAY", ADVANCED, ALIAS),
	SETTING(SAMPLING_REALTIME_DURATION, "sampling",
		"Seconds of real-time sampling; 0 means until the end.", DURATION(""),
		.inherits = "SAMPLING_DURATION", ADVANCED),
	SETTING(SAMPLING_REALTIME_TIDS, "sampling", "Threads for real-time sampling.", THREADS(""),
		.inherits = "SAMPLING_TIDS", ADVANCED, ALIAS),
	SETTING(SAMPLING_OVERFLOW, "sampling",
		"Sample when a perf event has counted a number of times.", BOOL("off"), ALIAS),
	SETTING(SAMPLING_OVERFLOW_EVENT, "sampling",
		"Perf event for overflow sampling, by name: page-faults, cache-misses, r01c2, ...",
		STRING("page-faults"), .metavar = "EVENT", ALIAS),
	SETTING(SAMPLING_OVERFLOW_FREQ, "sampling",
		"Overflow samples a second (clock events) or events a sample (all others).",
		NUMBER(""), RANGE(1, 1e+15), .inherits = "SAMPLING_FREQ", .metavar = "N", ADVANCED,
		ALIAS),
	SETTING(SAMPLING_OVERFLOW_TIDS, "sampling", "Threads for overflow sampling.", THREADS(""),
		.inherits = "SAMPLING_TIDS", ADVANCED, ALIAS),
	SETTING(SAMPLING_METRICS, "sampling",
		"Record thread CPU time, faults and context switches with the samples.",
		BOOL("on")),
	SETTING(SAMPLING_COUNTERS, "sampling",
		"Perf events counted per thread and recorded with the samples, by name; at most 8.",
		LIST(""), .metavar = "LIST"),
	SETTING(SAMPLING_MAX_DEPTH, "sampling",
		"Deepest stack recorded; deeper ones are cut and counted.", INTEGER("512"),
		RANGE(1, 4096), .metavar = "N", ADVANCED),
	SETTING(SAMPLING_OVERHEAD_LIMIT, "sampling",
		"Percent of a thread's time that taking samples may cost before the rate is "
		"lowered; 0 means no limit.",
		NUMBER("5"), RANGE(0, 100), .metavar = "PERCENT", ADVANCED),
	SETTING(SAMPLING_JITTER, "sampling",
		"Vary the sampling period at random, so that it cannot run in step with the "
		"program.",
		BOOL("on"), ADVANCED),
	SETTING(SAMPLING_ALLOCATOR_SIZE, "sampling", "Threads served by one allocator thread.",
		INTEGER("8"), RANGE(1, 1000000), .metavar = "N", ADVANCED, ALIAS),
	SETTING(SAMPLING_SIGNAL, "sampling", "Signal for the sources that need one.",
		CHOICE("auto", "auto,SIGURG,SIGPROF,SIGIO,SIGUSR1,SIGUSR2,SIGVTALRM"),
		.metavar = "SIGNAL", ADVANCED),
	SETTING(UNWIND_CACHE, "sampling",
		"Directory of the unwind-table cache; empty: the user's cache directory; none: no "
		"cache.",
		PATH(""), .metavar = "DIR", ADVANCED),

	/* ---- Regions ---- */
	SETTING(COMPONENTS, "regions",
		"What the profile measures in every region (kymo avail components lists them).",
		LIST("wall_clock"), .option = "components", .metavar = "LIST"),
	SETTING(MAX_DEPTH, "regions", "Deepest nesting of regions recorded.", INTEGER("65535"),
		RANGE(1, 65535), .option = "max-depth", .metavar = "N", ADVANCED, ALIAS),
	SETTING(THROTTLE_COUNT, "regions",
		"Calls of a region after which it is judged by THROTTLE_VALUE; 0 means no region "
		"is "
		"ever throttled.",
		INTEGER("0"), RANGE(0, 1e12), .metavar = "N", ADVANCED),
	SETTING(THROTTLE_VALUE, "regions",
		"A region whose calls last fewer ns than this on average is no longer recorded.",
		INTEGER("10000"), RANGE(1, 1e12), .metavar = "NS", ADVANCED, ALIAS),
	SETTING(PROFILE_MAX_NODES, "regions",
		"Most nodes of a thread's call tree; more calls are counted together.",
		INTEGER("65536"), RANGE(16, 16777216), .metavar = "N", ADVANCED),
	SETTING(PROFILE_MAX_THREADS, "regions",
		"Most call trees of a process; later threads go on with those of ended ones.",
		INTEGER("1024"), RANGE(1, 1e6), .metavar = "N", ADVANCED),

	/* ---- Wrapped functions ---- */
	SETTING(USE_WRAPPERS, "wrappers", "Wrap functions of libraries, as the settings below say.",
		BOOL("on")),
	SETTING(TRACE_THREADS, "wrappers", "Record the creation of threads.", BOOL("on"), ADVANCED),
	SETTING(TRACE_THREAD_LOCKS, "wrappers", "Record waits for pthread mutexes.", BOOL("off"),
		ALIAS),
	SETTING(TRACE_THREAD_RW_LOCKS, "wrappers", "Record waits for pthread read-write locks.",
		BOOL("off"), ADVANCED, ALIAS),
	SETTING(TRACE_THREAD_SPIN_LOCKS, "wrappers", "Record waits for pthread spin locks.",
		BOOL("off"), ADVANCED, ALIAS),
	SETTING(TRACE_THREAD_BARRIERS, "wrappers", "Record waits at pthread barriers.", BOOL("on"),
		ADVANCED, ALIAS),
	SETTING(TRACE_THREAD_JOIN, "wrappers", "Record waits for the end of threads.", BOOL("on"),
		ADVANCED, ALIAS),
	SETTING(TRACE_THREAD_CONDITIONS, "wrappers",
		"Record waits for pthread condition variables and semaphores.", BOOL("off"),
		ADVANCED),
	SETTING(TRACE_PROCESSES, "wrappers",
		"Record fork, exec, posix_spawn, system, waits for children, and exit.", BOOL("on"),
		ADVANCED),
	SETTING(TRACE_SLEEP, "wrappers", "Record sleeps.", BOOL("off"), ADVANCED),
	SETTING(TRACE_IO, "wrappers",
		"Record calls that read, write, poll, connect and so on, with their bytes.",
		BOOL("off")),
	SETTING(TRACE_LOADER, "wrappers", "Record dlopen and dlclose.", BOOL("off"), ADVANCED),
	SETTING(TRACE_MEMORY, "wrappers",
		"Count allocations by call site, and what is never freed.", BOOL("off")),
	SETTING(MEMORY_SITE_DEPTH, "wrappers",
		"Frames that tell one allocation call site from another.", INTEGER("8"),
		RANGE(1, 64), .metavar = "N", ADVANCED),
	SETTING(WRAP, "wrappers",
		"Functions to wrap: library:function(argument types), separated by semicolons; '*' "
		"for any library.",
		STRING(""), .option = "wrap", .metavar = "LIST"),
	SETTING(USE_MPIP, "wrappers", "Record MPI calls with bytes, peers and communicators.",
		BOOL("on"), .option = "mpi", ALIAS),
	SETTING(MPIP_PERMIT_LIST, "wrappers", "Record only these MPI functions.", LIST(""),
		.metavar = "LIST", ADVANCED, ALIAS),
	SETTING(MPIP_REJECT_LIST, "wrappers", "Leave these MPI functions out.", LIST(""),
		.metavar = "LIST", ADVANCED, ALIAS),
	SETTING(USE_NCCL, "wrappers", "Record calls of NCCL and RCCL.", BOOL("on"),
		.option = "nccl"),
	SETTING(USE_OMPT, "wrappers",
		"Record OpenMP regions through the runtime's tools interface.", BOOL("on"),
		.option = "openmp", ALIAS),
	SETTING(USE_KOKKOSP, "wrappers", "Record Kokkos regions and kernels.", BOOL("on"),
		.option = "kokkos", ALIAS),
	SETTING(KOKKOSP_PREFIX, "wrappers", "Text put in front of Kokkos names.", STRING(""),
		.metavar = "TEXT", ADVANCED, ALIAS),
	SETTING(KOKKOSP_NAME_LENGTH_MAX, "wrappers",
		"Leave out Kokkos events with longer names; 0 means no limit.", INTEGER("0"),
		RANGE(0, 65535), .metavar = "N", ADVANCED, ALIAS),
	SETTING(KOKKOSP_DEEP_COPY, "wrappers", "Record Kokkos deep copies.", BOOL("on"), ADVANCED,
		ALIAS),

	/* ---- Process metrics ---- */
	SETTING(FOLLOW_CHILDREN, "process",
		"Profile the processes that the program starts as well.", BOOL("on")),
	SETTING(USE_PROCESS_SAMPLING, "process",
		"Record memory, faults, CPU time and I/O of the process in the background.",
		BOOL("on"), .option = "host", .short_option = 'H', ALIAS),
	SETTING(PROCESS_SAMPLING_FREQ, "process", "Readings a second of the process's metrics.",
		NUMBER("10"), RANGE(0.01, 1000), .option = "process-freq", .metavar = "HZ", ALIAS),
	SETTING(PROCESS_SAMPLING_DELAY, "process",
		"Seconds before the first reading of the process's metrics.", DURATION("0"),
		ADVANCED),
	SETTING(PROCESS_SAMPLING_DURATION, "process",
		"Seconds of process sampling; 0 means until the end.", DURATION("0"), ADVANCED,
		ALIAS),
	SETTING(CPU_FREQ_ENABLED, "process", "Record the frequency of every CPU.", BOOL("off"),
		ALIAS),

	/* ---- Memory and files ---- */
	SETTING(USE_TEMPORARY_FILES, "memory",
		"Keep recorded data in files; off keeps it in memory (tmpfs) until the results are "
		"written.",
		BOOL("on"), ADVANCED, ALIAS),
	SETTING(SPOOL_LIMIT, "memory",
		"Most bytes of recorded data a process may keep; 0 means no limit.", SIZE("0"),
		.metavar = "SIZE", ADVANCED),
	SETTING(SPOOL_RING, "memory",
		"At the limit, overwrite the oldest data instead of dropping the newest.",
		BOOL("off"), ADVANCED),

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
};

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The settings as the profiled process uses them: parsed once from the environment, then read-only.
 *
 * The kymo command has checked every value before; here a value that does not parse counts as
 * unset, because a profiler that fails must not fail the program. No allocation; safe before libc's
 * constructors have run.
 */
#ifndef KYMO_CORE_BASE_OPTIONS_H
#define KYMO_CORE_BASE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define OPTIONS_PATH_SIZE              4096
#define OPTIONS_THREAD_RANGES_MAX      256
#define OPTIONS_COLLECTION_PERIODS_MAX 16

/* Threads by creation order; no range means all threads. */
struct options_thread_filter {
	uint32_t count;
	struct {
		uint64_t first, last;
	} range[OPTIONS_THREAD_RANGES_MAX];
};

struct collection_period_setting {
	int clock;
	int64_t delay_ns, duration_ns;
	uint64_t repeat_count;
};

struct sampling_options {
	bool on;
	uint64_t period; /* ns, or events for overflow */
	struct collection_period_setting window;
	struct options_thread_filter tids;
};

enum options_sampling_source_kind {
	OPTIONS_SOURCE_AUTO,
	OPTIONS_SOURCE_PERF,
	OPTIONS_SOURCE_TIMER
};

/* Regions and wrapped functions. Texts lie in the environment's memory. */
struct region_options {
	bool trace, profile; /* record events; keep the call-tree profile in the process */
	bool start;          /* INIT_ENABLED */
	const char *components, *component_event_codes, *selected, *enabled_categories,
		*disabled_categories;
	uint32_t max_depth, profile_nodes_max, profile_threads_max;
	uint64_t throttle_count, throttle_below_mean_call_ns;
	int control_signal; /* 0: none */
};

struct wrapper_options {
	bool on;
	bool is_any_wrapper_requested; /* the user named some of these kinds of calls */
	bool wrap_threads, wrap_locks, wrap_rw_locks, wrap_spin_locks, wrap_barriers,
		wrap_thread_joins, wrap_condition_variables, wrap_processes, wrap_sleep, wrap_io,
		wrap_loader, wrap_memory, wrap_mpi, wrap_nccl, wrap_ompt, wrap_kokkos,
		wrap_kokkos_deep_copies;
	uint32_t allocation_site_depth_max, kokkos_name_length_max;
	const char *wrapped_functions_spec, *mpi_permit_list, *mpi_reject_list, *kokkos_name_prefix;
};

/* Instrumented functions. Texts lie in the environment's memory; empty: not set. */
struct instrument_options {
	const char *socket;                 /* where plans are asked for */
	const char *arguments;              /* some functions are recorded with theirs */
	uint64_t demote_calls_per_second;   /* calls a second from which a short function is only
				   counted; 0:   never */
	uint64_t demote_below_mean_call_ns; /* ... when its calls take less than this on average */
};

/* Calls of Python functions. Expressions lie in the environment's memory; empty: not set. */
struct python_call_options {
	bool on, records_builtins; /* functions written in C, too */
	bool has_sections;         /* only parts of the program are recorded */
	/* Which functions and lines run at all, in the place of calls. */
	bool covers_functions, covers_lines;
	bool label_has_file, label_has_line, has_full_path;
	const char *function_include, *function_exclude, *function_restrict, *file_include,
		*file_exclude, *file_restrict;
};

struct options {
	bool enabled;
	bool follow_children;
	bool metrics, has_period_jitter, ring, records_process_metrics, records_cpu_frequency;
	int verbosity_level;
	enum options_sampling_source_kind source;
	int signal; /* 0: automatic */
	uint32_t max_depth, task_name_maximum;
	uint32_t threads_per_allocator;
	double overhead_limit_fraction; /* fraction of a thread's time; 0: none */
	uint64_t process_metrics_period_ns, spool_limit_bytes;
	int64_t process_metrics_delay_ns, process_metrics_duration_ns;
	struct sampling_options cpu, wall, overflow;
	struct region_options regions;
	struct wrapper_options wrappers;
	struct instrument_options instrument;
	struct python_call_options python_calls;
	struct collection_period_setting collection_periods[OPTIONS_COLLECTION_PERIODS_MAX];
	uint32_t collection_period_count;
	/* in the environment's memory; codes as perf_event_parse_code() takes them, or empty */
	const char *overflow_event_name, *overflow_event_code, *counters, *counter_event_codes;
	char spool_directory[OPTIONS_PATH_SIZE];
	char cache_directory[OPTIONS_PATH_SIZE]; /* empty: no cache */
};

/* Reads the KYMO_* variables of `environment`. */
void options_read_environment(struct options *ret, char *const *environment);

static inline bool options_want_sampling(const struct options *options)
{
	return options->cpu.on || options->wall.on || options->overflow.on;
}

/* Does the filter let this thread (by sequent number) through? */
bool options_thread_filter_allows(const struct options_thread_filter *tids, uint64_t sequent_id);

#endif

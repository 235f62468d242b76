/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The settings as the profiled process uses them: parsed once from the environment, then read-only.
 *
 * The kymo command has checked every value before; here a value that does not parse counts as
 * unset, because a profiler that fails must not fail the program. No allocation; safe before libc's
 * constructors have run.
 */
#ifndef KYMO_CORE_OPTIONS_H
#define KYMO_CORE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define OPTIONS_PATH_SIZE  4096
#define OPTIONS_TID_RANGES 256
#define OPTIONS_PERIODS    16

/* Threads by creation order; no range means all threads. */
struct options_tids {
	uint32_t count;
	struct {
		uint64_t first, last;
	} range[OPTIONS_TID_RANGES];
};

struct options_period {
	int clock;
	int64_t delay_ns, duration_ns;
	uint64_t cycles;
};

struct options_sampler {
	bool on;
	uint64_t period; /* ns, or events for overflow */
	struct options_period window;
	struct options_tids tids;
};

enum options_source { OPTIONS_SOURCE_AUTO, OPTIONS_SOURCE_PERF, OPTIONS_SOURCE_TIMER };

/* Regions and wrapped functions. Texts lie in the environment's memory. */
struct options_regions {
	bool trace, profile; /* record events; keep the call-tree profile in the process */
	bool start;          /* INIT_ENABLED */
	const char *components, *component_events, *selected, *enable_categories,
		*disable_categories;
	uint32_t max_depth, profile_nodes, profile_threads;
	uint64_t throttle_count, throttle_ns;
	int control_signal; /* 0: none */
};

struct options_wrappers {
	bool on;
	bool threads, locks, rw_locks, spin_locks, barriers, join, conditions, processes, sleep, io,
		loader, memory, mpi, nccl, ompt, kokkos, kokkos_deep_copy;
	uint32_t memory_site_depth, kokkos_name_length;
	const char *wrap, *mpi_permit, *mpi_reject, *kokkos_prefix;
};

/* Instrumented functions. Texts lie in the environment's memory; empty: not set. */
struct options_instrument {
	const char *socket;    /* where plans are asked for */
	const char *arguments; /* some functions are recorded with theirs */
	uint64_t demote_rate;  /* calls a second from which a short function is only counted; 0:
				  never */
	uint64_t demote_ns;    /* ... when its calls take less than this on average */
};

struct options {
	bool enabled;
	bool follow_children;
	bool metrics, jitter, ring, process_metrics, cpu_frequency;
	int verbose;
	enum options_source source;
	int signal; /* 0: automatic */
	uint32_t max_depth;
	uint32_t threads_per_allocator;
	double overhead_limit; /* fraction of a thread's time; 0: none */
	uint64_t process_period_ns, spool_limit;
	int64_t process_delay_ns, process_duration_ns;
	struct options_sampler cpu, wall, overflow;
	struct options_regions regions;
	struct options_wrappers wrappers;
	struct options_instrument instrument;
	struct options_period periods[OPTIONS_PERIODS];
	uint32_t period_count;
	/* in the environment's memory; codes as perf_event_parse_code() takes them, or empty */
	const char *overflow_event, *overflow_code, *counters, *counter_events;
	char spool_directory[OPTIONS_PATH_SIZE];
	char cache_directory[OPTIONS_PATH_SIZE]; /* empty: no cache */
};

/* Reads the KYMO_* variables of `environment`. */
void options_read(struct options *ret, char *const *environment);

/* Does the filter let this thread (by sequent number) through? */
bool options_tids_allow(const struct options_tids *tids, uint64_t sequent_id);

#endif

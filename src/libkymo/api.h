/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The table of functions that libkymo offers libkymo-dl, and through it the user API, the OpenMP
 * and Kokkos tools and instrumented programs. libkymo exports kymo_runtime_api() and nothing else
 * for them. Append only; `size` tells which members are there.
 */
#ifndef KYMO_LIBKYMO_API_H
#define KYMO_LIBKYMO_API_H

#include "regions/regions.h"

struct runtime_api {
	uint32_t size;
	/* regions.h */
	region_id (*region_find_or_add_name)(enum region_category category, const char *name);
	region_id (*region_find_or_add_name_in)(const char *category, const char *name);
	region_id (*region_find_or_add_function)(enum region_category category, uint64_t address);
	void (*region_begin)(region_id region);
	bool (*region_end)(region_id region);
	int (*region_begin_by_name)(const char *category, const char *name);
	int (*region_end_by_name)(const char *category, const char *name);
	void (*region_values)(const struct region_value *values, size_t count);
	void (*region_write_mark)(region_id region);
	void (*region_write_counter)(region_id counter, uint64_t real_bits);
	void (*region_write_progress)(region_id point, enum spool_progress kind);
	bool (*region_category_is_recorded)(enum region_category category);
	/* control */
	int (*trace_start)(void); /* 0 or negative errno */
	int (*trace_stop)(void);
	int (*thread_trace_start)(void);
	int (*thread_trace_stop)(void);
	int (*flush)(void);
	bool (*active)(void);
	const struct wrapper_options *(*get_wrapper_options)(void);
	/* regions.h, and the clock that it wants */
	void (*region_write_whole_call)(region_id region, uint64_t begin_ticks, uint64_t end_ticks);
	uint64_t (*ticks)(void);
	/* instrument.h: a rewritten library was opened, whose code has not run yet */
	void (*rewritten_library_opened)(void);
	/* region_write_progress() by name, counted for causal profiling whether it is recorded or
	 * not */
	void (*region_write_progress_by_name)(const char *name, enum spool_progress kind);
	/* causal/coz.h; pay: causal/causal.h */
	uint64_t *(*causal_find_or_add_counter)(uint32_t kind, const char *name);
	void (*causal_before_block)(void);
	void (*causal_after_block)(bool woken);
	void (*causal_pay_delay)(void);
	/* launches/launches.h, of the caller */
	uint32_t (*find_launch_path)(void);
};

#define KYMO_RUNTIME_API_NAME "kymo_runtime_api"
const struct runtime_api *kymo_runtime_api(void);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counters of the tool library: which there are (kinds.c), which are counted together (configs.c),
 * kernel by kernel (dispatches.c) and over time (devices.c), and how values become records.
 *
 * One lock is for everything that is rare: sdk_counters_acquire_lock(). Nobody's function but a
 * backend's is called with it held. The general lock of state.h may be taken within it, not the
 * other way.
 */
#ifndef KYMO_LIBKYMO_SDK_COUNTERS_H
#define KYMO_LIBKYMO_SDK_COUNTERS_H

#include <stdatomic.h>

#include <kymo/counting.h>

#include "counters/catalogue.h"
#include "device/counting.h"
#include "libkymo-sdk/emit.h"

#define COUNTERS_MAX 65536u /* ids have 16 bits in a record's instance id; 0 is none */

struct sdk_context;

/* Agents that have the same counters. */
struct sdk_agent_kind_with_counters {
	struct sdk_agent_kind_with_counters *next;
	const rocprofiler_agent_v0_t *agent; /* the first of them */
	const struct device_counting_backend *counting;
	struct counter_catalogue catalogue;
};

/* What a counter's user points to. */
struct sdk_counter {
	uint32_t id;
	struct counter *counter;
	struct sdk_agent_kind_with_counters *kind;
	/* For queries, made when first asked for, never changed: info.c. */
	struct sdk_counter_dimensions *dimensions;
};

void sdk_counters_acquire_lock(void);
void sdk_counters_release_lock(void);
void sdk_counters_reset_lock_in_child(void);

/* One line for the user, by kymo_counting_problem() or to standard error. */
void sdk_counters_report_problem_line(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
/* What kymo_counter_config_problem() answers on this thread; NULL: nothing. */
void sdk_counters_set_thread_problem_text(const char *text);
/* A mistake in a counter's definition, with its place. */
void sdk_counter_report_problem(const struct counter *counter,
				const struct expression_problem *problem);

/* ---- kinds.c, with the lock held ---- */

/* Those of an agent. NULL: *status says why. */
struct sdk_agent_kind_with_counters *
sdk_agent_kind_find_or_create(const rocprofiler_agent_v0_t *agent, rocprofiler_status_t *status);
/* Gives a usable counter an id. NULL: there are too many. */
struct sdk_counter *sdk_counter_assign_id(struct sdk_agent_kind_with_counters *kind,
					  struct counter *counter);

/* Without the lock; NULL: there is none. */
struct sdk_counter *sdk_counter_find_by_id(uint64_t id);
/* A property of an agent, by the number of its counter. */
double sdk_agent_get_property_value(const rocprofiler_agent_v0_t *agent, uint32_t property);
/* Positions have room in a record's id, and the extents stand in order. */
bool sdk_counter_event_is_valid(const struct counting_event_info *event);

/* ---- definitions: load.c, with the lock held ---- */

/* Puts the definitions for agents like this one into its catalogue, behind the backend's events. */
void sdk_agent_kind_add_definitions(struct sdk_agent_kind_with_counters *kind);

/* ---- requested.c, with the lock held ---- */

/* Adds the events that kymo's user names by forms that the backend does not list. */
void sdk_agent_kind_add_requested_events(struct sdk_agent_kind_with_counters *kind);

/* ---- ids of values: instances.c ---- */

uint64_t sdk_counter_build_instance_id(uint32_t id, const struct value_shape *shape, size_t value);
/* The same for all of them. */
void sdk_counter_fill_instance_ids(uint32_t id, const struct value_shape *shape, uint64_t *ids);
uint32_t sdk_instance_id_to_counter_id(uint64_t instance);
uint32_t sdk_instance_id_to_position(uint64_t instance, uint32_t dimension);

/* ---- configs.c ---- */

struct sdk_counter_config;

/* Memory of one evaluation. */
struct sdk_counter_evaluation_memory {
	struct sdk_counter_config *config;
	rocprofiler_counter_record_t *records;
	struct arena_record *list; /* room for one more than there are records, in front */
	double *work, *values;
	const double **inputs;
};

/* With a reference more; NULL: there is none. */
struct sdk_counter_config *sdk_counter_config_acquire_by_id(uint64_t id);
void sdk_counter_config_add_reference(struct sdk_counter_config *config);
void sdk_counter_config_release_reference(struct sdk_counter_config *config);
uint64_t sdk_counter_config_get_agent_id(const struct sdk_counter_config *config);
void *sdk_counter_config_get_backend_event_set(const struct sdk_counter_config *config);
uint32_t sdk_counter_config_get_counting_ways(const struct sdk_counter_config *config);
size_t
sdk_counter_config_get_value_count(const struct sdk_counter_config *config); /* that its set has */
size_t sdk_counter_config_get_record_count(const struct sdk_counter_config *config);
const struct device_counting_backend *
sdk_counter_config_get_backend(const struct sdk_counter_config *config);
/* Memory for an evaluation; NULL: there is none. It is given back to the config. */
struct sdk_counter_evaluation_memory *
sdk_counter_config_take_evaluation_memory(struct sdk_counter_config *config);
void sdk_counter_config_return_evaluation_memory(struct sdk_counter_evaluation_memory *counted);
/* All values of all its counters, as records; dispatch and user data are put into each. */
void sdk_counter_config_compute_records(struct sdk_counter_evaluation_memory *counted,
					const double *values, uint64_t dispatch,
					rocprofiler_user_data_t user_data);
rocprofiler_status_t sdk_counting_status_to_rocprofiler(enum counting_status status);

/* ---- dispatches.c ---- */

/* Makes contexts start and stop what they count (sdk_set_counting_callbacks_of_contexts()). */
void sdk_counting_register_callbacks(void);
/* A runtime is there: what waited for it is begun. */
void sdk_counting_handle_runtime_ready(void);
struct sdk_device_work;
/* A copy was made of work that is counted. */
void sdk_counting_copy_state_to_work(struct sdk_device_work *work, struct sdk_device_work *again);
/* The work ends, counted or not. */
void sdk_counting_finish_for_completed_work(struct sdk_device_work *work, uint64_t start,
					    uint64_t end);
/* A correlation that its kernels had their counting of; nothing is to come of itself. */
void sdk_counting_free_state_of_work(struct sdk_device_work *work);
void sdk_counting_reset_after_fork(void);
/* At the end: how many kernels were not counted. */
void sdk_counting_report_losses(void);
extern const struct device_counting_sink sdk_counting_sink;

/* ---- devices.c ---- */

rocprofiler_status_t sdk_device_counting_start_context(struct sdk_context *context);
void sdk_device_counting_stop_context(struct sdk_context *context);
void sdk_device_counting_start_all_waiting(void);
void sdk_device_counting_reset_after_fork(void);
bool sdk_context_has_device_counting(const struct sdk_context *context);
void sdk_device_report_counter_sample(device_handle agent, const double *values, size_t count,
				      uint64_t start, uint64_t end);
void sdk_device_counting_add_lost_sample_count(device_handle agent, uint64_t count);
uint64_t sdk_device_counting_get_lost_sample_count(void);
bool sdk_context_has_dispatch_counting(const struct sdk_context *context);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counters of the tool library: which there are (kinds.c), which are counted together (configs.c),
 * kernel by kernel (dispatches.c) and over time (devices.c), and how values become records.
 *
 * One lock is for everything that is rare: sdk_counters_lock(). Nobody's function but a backend's
 * is called with it held. The general lock of state.h may be taken within it, not the other way.
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
struct sdk_counter_kind {
	struct sdk_counter_kind *next;
	const rocprofiler_agent_v0_t *agent; /* the first of them */
	const struct device_counting *counting;
	struct catalogue catalogue;
};

/* What a counter's user points to. */
struct sdk_counter {
	uint32_t id;
	struct counter *counter;
	struct sdk_counter_kind *kind;
	/* For queries, made when first asked for, never changed: info.c. */
	struct sdk_counter_dimensions *dimensions;
};

void sdk_counters_lock(void);
void sdk_counters_unlock(void);
void sdk_counters_unlock_in_child(void);

/* One line for the user, by kymo_counting_problem() or to standard error. */
void sdk_counters_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* What kymo_counter_config_problem() answers on this thread; NULL: nothing. */
void sdk_counters_problem(const char *text);
/* A mistake in a counter's definition, with its place. */
void sdk_counter_tell(const struct counter *counter, const struct expression_problem *problem);

/* ---- kinds.c, with the lock held ---- */

/* Those of an agent. NULL: *status says why. */
struct sdk_counter_kind *sdk_counter_kind(const rocprofiler_agent_v0_t *agent,
					  rocprofiler_status_t *status);
/* Gives a usable counter an id. NULL: there are too many. */
struct sdk_counter *sdk_counter_publish(struct sdk_counter_kind *kind, struct counter *counter);

/* Without the lock; NULL: there is none. */
struct sdk_counter *sdk_counter_find(uint64_t id);
/* A property of an agent, by the number of its counter. */
double sdk_counter_property(const rocprofiler_agent_v0_t *agent, uint32_t property);
/* Positions have room in a record's id, and the extents stand in order. */
bool sdk_counter_event_is_sane(const struct counting_event *event);

/* ---- definitions: load.c, with the lock held ---- */

/* Puts the definitions for agents like this one into its catalogue, behind the backend's events. */
void sdk_counter_definitions(struct sdk_counter_kind *kind);

/* ---- ids of values: instances.c ---- */

uint64_t sdk_counter_instance(uint32_t id, const struct shape *shape, size_t value);
/* The same for all of them. */
void sdk_counter_instances(uint32_t id, const struct shape *shape, uint64_t *ids);
uint32_t sdk_instance_counter(uint64_t instance);
uint32_t sdk_instance_position(uint64_t instance, uint32_t dimension);

/* ---- configs.c ---- */

struct sdk_config;

/* Memory of one evaluation. */
struct sdk_counted {
	struct sdk_config *config;
	rocprofiler_counter_record_t *records;
	struct arena_record *list; /* room for one more than there are records, in front */
	double *work, *values;
	const double **inputs;
};

/* With a reference more; NULL: there is none. */
struct sdk_config *sdk_config_get(uint64_t id);
void sdk_config_keep(struct sdk_config *config);
void sdk_config_drop(struct sdk_config *config);
uint64_t sdk_config_agent(const struct sdk_config *config);
void *sdk_config_set(const struct sdk_config *config);
uint32_t sdk_config_ways(const struct sdk_config *config);
size_t sdk_config_values(const struct sdk_config *config); /* that its set has */
size_t sdk_config_records(const struct sdk_config *config);
const struct device_counting *sdk_config_counting(const struct sdk_config *config);
/* Memory for an evaluation; NULL: there is none. It is given back to the config. */
struct sdk_counted *sdk_config_take(struct sdk_config *config);
void sdk_config_give(struct sdk_counted *counted);
/* All values of all its counters, as records; dispatch and user data are put into each. */
void sdk_config_evaluate(struct sdk_counted *counted, const double *values, uint64_t dispatch,
			 rocprofiler_user_data_t user_data);
rocprofiler_status_t sdk_counting_status(enum counting_status status);

/* ---- dispatches.c ---- */

/* Active contexts that count kernels: one at most. */
extern _Atomic uint64_t sdk_counting_active;

static inline uint64_t sdk_counting_contexts(void)
{
	return atomic_load_explicit(&sdk_counting_active, memory_order_acquire);
}

rocprofiler_status_t sdk_counting_started(struct sdk_context *context);
void sdk_counting_stopped(struct sdk_context *context);
/* A runtime is there: what waited for it is begun. */
void sdk_counting_runtime_ready(void);
struct sdk_work;
/* A copy was made of work that is counted. */
void sdk_counting_again(struct sdk_work *work, struct sdk_work *again);
/* The work ends, counted or not. */
void sdk_counting_ends(struct sdk_work *work, uint64_t start, uint64_t end);
/* A correlation that its kernels had their counting of; nothing is to come of itself. */
void sdk_counting_forget(struct sdk_work *work);
void sdk_counting_forked(void);
/* At the end: how many kernels were not counted. */
void sdk_counting_report(void);
extern const struct device_counting_sink sdk_counting_sink;

/* ---- devices.c ---- */

rocprofiler_status_t sdk_device_counting_started(struct sdk_context *context);
void sdk_device_counting_stopped(struct sdk_context *context);
void sdk_device_counting_runtime_ready(void);
void sdk_device_counting_forked(void);
bool sdk_device_counting_has(const struct sdk_context *context);
void sdk_device_sample(device_handle agent, const double *values, size_t count, uint64_t start,
		       uint64_t end);
void sdk_device_samples_lost(device_handle agent, uint64_t count);
uint64_t sdk_device_samples_lost_in_all(void);
bool sdk_dispatch_counting_has(const struct sdk_context *context);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See count_devices.h. Each agent has a context of its own, so that one which cannot be counted
 * takes no other with it. The library's values are those since the start; a record holds those of
 * one interval: differences, but for derived counters, whose values are of all the time since the
 * start, and whose records say so.
 */
#include "libkymo-gpu/count_devices.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rocprofiler-sdk/rocprofiler.h>

#include "libkymo-gpu/counter_choice.h"
#include "libkymo-gpu/counter_records.h"
#include "libkymo-gpu/file.h"

#define AGENTS_MAX  64
#define INTERVAL_MS 10.0

struct counted_agent {
	rocprofiler_agent_id_t agent;
	rocprofiler_context_id_t context;
	rocprofiler_counter_config_id_t config;
	bool is_on;
	uint64_t started, read; /* when */
	rocprofiler_counter_record_t *values;
	const rocprofiler_counter_record_t **order; /* of `values`, as counter_records wants them */
	double *before;                             /* of the last reading */
	bool *derived;
	size_t count, room;
};

static const char *names;
static struct counted_agent agents[AGENTS_MAX];
static size_t agent_count;
static double interval_ms;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* one reading at a time */
static _Atomic bool has_ended;

/* ---- configuring ---- */

static void set_config(rocprofiler_context_id_t context, rocprofiler_agent_id_t agent,
		       rocprofiler_device_counting_agent_cb_t set, void *data)
{
	const struct counted_agent *counted = data;

	(void)agent;
	set(context, counted->config);
}

static void tell(const struct counted_agent *counted, const char *what, rocprofiler_status_t status)
{
	const char *why = rocprofiler_get_status_string(status);
	char text[256];

	(void)counted;
	snprintf(text, sizeof(text), "counters of a device are not read: %s: %s", what,
		 why != NULL ? why : "unknown status");
	gpu_file_notice(text);
}

static void configure(rocprofiler_agent_id_t agent)
{
	struct counted_agent *counted = &agents[agent_count];
	rocprofiler_status_t status;

	*counted = (struct counted_agent){.agent = agent, .config = counter_choice(agent, names)};
	if (counted->config.handle == 0)
		return;
	status = rocprofiler_create_context(&counted->context);
	if (status == ROCPROFILER_STATUS_SUCCESS)
		status = rocprofiler_configure_device_counting_service(
			counted->context, (rocprofiler_buffer_id_t){0}, agent, set_config, counted);
	if (status == ROCPROFILER_STATUS_SUCCESS)
		agent_count++;
	else
		tell(counted, "configuring", status);
}

static rocprofiler_status_t each_agent(rocprofiler_agent_version_t version, const void **list,
				       size_t count, void *unused)
{
	(void)version;
	(void)unused;
	for (size_t i = 0; i < count && agent_count < AGENTS_MAX; i++)
		configure(((const rocprofiler_agent_v0_t *)list[i])->id);
	return ROCPROFILER_STATUS_SUCCESS;
}

void count_devices_configure(void)
{
	const char *interval = getenv("KYMO_COUNTER_INTERVAL");

	names = getenv("KYMO_DEVICE_COUNTERS");
	if (names == NULL || *names == '\0')
		return;
	interval_ms = interval != NULL ? strtod(interval, NULL) : INTERVAL_MS;
	if (!(interval_ms > 0))
		interval_ms = INTERVAL_MS;
	rocprofiler_query_available_agents(ROCPROFILER_AGENT_INFO_VERSION_0, each_agent,
					   sizeof(rocprofiler_agent_v0_t), NULL);
}

/* ---- reading ---- */

static bool make_room(struct counted_agent *counted, size_t count)
{
	if (count <= counted->room)
		return true;
	free(counted->values);
	free(counted->order);
	free(counted->before);
	free(counted->derived);
	counted->room = 0;
	counted->values = calloc(count, sizeof(*counted->values));
	counted->order = calloc(count, sizeof(const rocprofiler_counter_record_t *));
	counted->before = calloc(count, sizeof(*counted->before));
	counted->derived = calloc(count, sizeof(*counted->derived));
	if (counted->values == NULL || counted->order == NULL || counted->before == NULL ||
	    counted->derived == NULL)
		return false;
	counted->room = count;
	return true;
}

static bool is_derived(const rocprofiler_counter_record_t *value)
{
	rocprofiler_counter_info_v0_t info;
	rocprofiler_counter_id_t id;

	return rocprofiler_query_record_counter_id(value->id, &id) == ROCPROFILER_STATUS_SUCCESS &&
	       rocprofiler_query_counter_info(id, ROCPROFILER_COUNTER_INFO_VERSION_0, &info) ==
		       ROCPROFILER_STATUS_SUCCESS &&
	       (info.is_derived || info.is_constant);
}

static rocprofiler_status_t sample(struct counted_agent *counted)
{
	size_t count = counted->room;
	rocprofiler_status_t status = rocprofiler_sample_device_counting_service(
		counted->context, (rocprofiler_user_data_t){.value = 0},
		ROCPROFILER_COUNTER_FLAG_NONE, counted->values, &count);

	if (status == ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES && count > counted->room) {
		if (!make_room(counted, count))
			return status;
		status = rocprofiler_sample_device_counting_service(
			counted->context, (rocprofiler_user_data_t){.value = 0},
			ROCPROFILER_COUNTER_FLAG_NONE, counted->values, &count);
		for (size_t i = 0; status == ROCPROFILER_STATUS_SUCCESS && i < count; i++)
			counted->derived[i] = is_derived(&counted->values[i]);
	}
	counted->count = status == ROCPROFILER_STATUS_SUCCESS ? count : 0;
	return status;
}

/* Derived ones in a record of their own: they are of another stretch of time. */
static void write_some(struct counted_agent *counted, bool derived, uint64_t start, uint64_t end)
{
	size_t count = 0;

	for (size_t i = 0; i < counted->count; i++) {
		if (counted->derived[i] == derived)
			counted->order[count++] = &counted->values[i];
	}
	counter_records_values(counted->order, count, start, end);
}

static void read_agent(struct counted_agent *counted)
{
	uint64_t before = gpu_now(), now;
	rocprofiler_status_t status = sample(counted);

	now = before + (gpu_now() - before) / 2;
	if (status != ROCPROFILER_STATUS_SUCCESS) {
		gpu_file_lost(GPU_LOSS_READINGS, 1);
		return;
	}
	for (size_t i = 0; i < counted->count; i++) {
		double value = counted->values[i].counter_value;

		if (!counted->derived[i])
			counted->values[i].counter_value -= counted->before[i];
		counted->before[i] = value;
	}
	gpu_file_lock();
	write_some(counted, false, counted->read, now);
	write_some(counted, true, counted->started, now);
	gpu_file_unlock();
	counted->read = now;
}

static void read_all(void)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < agent_count; i++) {
		if (agents[i].is_on)
			read_agent(&agents[i]);
	}
	pthread_mutex_unlock(&lock);
}

/* At fixed times, so that a late reading does not make all later ones late. */
static void *read_often(void *unused)
{
	struct timespec next;
	uint64_t step = (uint64_t)(interval_ms * 1e6), at, now, told = 0;

	pthread_setname_np(pthread_self(), "kymo-counters");
	clock_gettime(CLOCK_MONOTONIC, &next);
	at = (uint64_t)next.tv_sec * 1000000000u + (uint64_t)next.tv_nsec;
	while (!atomic_load(&has_ended)) {
		at += step;
		next.tv_sec = (time_t)(at / 1000000000u);
		next.tv_nsec = (long)(at % 1000000000u);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		if (atomic_load(&has_ended))
			break;
		read_all();
		clock_gettime(CLOCK_MONOTONIC, &next);
		now = (uint64_t)next.tv_sec * 1000000000u + (uint64_t)next.tv_nsec;
		if (now > at + step)
			at = now;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &next);
		now = (uint64_t)next.tv_sec * 1000000000u + (uint64_t)next.tv_nsec;
		gpu_file_cpu(now - told);
		told = now;
	}
	return unused;
}

/* ---- life ---- */

static void start_thread(void)
{
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, NULL, read_often, NULL) == 0)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void count_devices_start(void)
{
	bool any = false;

	for (size_t i = 0; i < agent_count; i++) {
		rocprofiler_status_t status = rocprofiler_start_context(agents[i].context);

		/* HSA_NOT_LOADED: it begins by itself once the runtime is up. */
		agents[i].is_on = status == ROCPROFILER_STATUS_SUCCESS ||
				  status == ROCPROFILER_STATUS_ERROR_HSA_NOT_LOADED;
		agents[i].started = agents[i].read = gpu_now();
		any = any || agents[i].is_on;
		if (!agents[i].is_on)
			tell(&agents[i], "starting", status);
	}
	if (any)
		start_thread();
}

void count_devices_end(void)
{
	if (!atomic_exchange(&has_ended, true))
		read_all();
}

/* The child of fork has the memory, but not the thread; what is counted is the parent's. */
void count_devices_forked(void)
{
	pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	lock = fresh;
	for (size_t i = 0; i < agent_count; i++)
		agents[i].is_on = false;
}

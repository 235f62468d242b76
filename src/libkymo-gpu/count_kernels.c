/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See count_kernels.h. The tool library asks for each launch, on the thread that launches; the
 * agent's set of counters is the answer, made when its first kernel comes. Which launches are left
 * out (KYMO_KERNEL_INCLUDE and others) is the library's business. Launches with a set and without
 * values in the end were filtered or not counted, and both are told.
 */
#include "libkymo-gpu/count_kernels.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rocprofiler-sdk/rocprofiler.h>

#include "kymo/counting.h"
#include "libkymo-gpu/counter_choice.h"
#include "libkymo-gpu/counter_records.h"
#include "libkymo-gpu/file.h"

#define AGENTS_MAX     64
#define VALUES_AT_ONCE 1024u

static const char *names;
static rocprofiler_context_id_t context;
static bool is_on;
static _Atomic uint64_t asked, answered;

/* Of kymo's tool library alone. */
#pragma weak kymo_counting_totals

/* Sets by agent. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	uint64_t agent;
	rocprofiler_counter_config_id_t config;
} sets[AGENTS_MAX];
static size_t set_count;

/* ---- which ---- */

static rocprofiler_counter_config_id_t set_of(rocprofiler_agent_id_t agent)
{
	rocprofiler_counter_config_id_t config = {0};

	for (size_t i = 0; i < set_count; i++) {
		if (sets[i].agent == agent.handle)
			return sets[i].config;
	}
	if (set_count == AGENTS_MAX)
		return config;
	config = counter_choice(agent, names);
	sets[set_count].agent = agent.handle;
	sets[set_count++].config = config;
	return config;
}

static void choose(rocprofiler_dispatch_counting_service_data_t data,
		   rocprofiler_counter_config_id_t *config, rocprofiler_user_data_t *user_data,
		   void *unused)
{
	(void)unused;
	user_data->value = (uint64_t)gettid();
	pthread_mutex_lock(&lock);
	*config = set_of(data.dispatch_info.agent_id);
	pthread_mutex_unlock(&lock);
	if (config->handle != 0)
		atomic_fetch_add_explicit(&asked, 1, memory_order_relaxed);
}

/* ---- what came of it ---- */

/* At once, for a kernel that was counted was waited for: the file has it however the process ends.
 */
static void take_values(rocprofiler_dispatch_counting_service_data_t data,
			rocprofiler_counter_record_t *records, size_t count,
			rocprofiler_user_data_t user_data, void *unused)
{
	const rocprofiler_counter_record_t *values[VALUES_AT_ONCE];

	(void)unused;
	gpu_file_lock();
	counter_records_kernel(&data, count, (uint32_t)user_data.value);
	for (size_t i = 0; i < count;) {
		size_t taken = 0;

		while (i < count && taken < VALUES_AT_ONCE)
			values[taken++] = &records[i++];
		counter_records_values(values, taken, 0, 0);
	}
	gpu_file_unlock();
	atomic_fetch_add_explicit(&answered, 1, memory_order_relaxed);
}

/* ---- life ---- */

static void tell(const char *what, rocprofiler_status_t status)
{
	char text[640];

	snprintf(text, sizeof(text), "kernels are not counted: %s: %s", what,
		 counter_choice_why(status));
	gpu_file_notice(text);
}

void count_kernels_configure(void)
{
	rocprofiler_status_t status;

	names = getenv("KYMO_COUNTERS");
	if (names == NULL || *names == '\0')
		return;
	status = rocprofiler_create_context(&context);
	if (status == ROCPROFILER_STATUS_SUCCESS)
		status = rocprofiler_configure_callback_dispatch_counting_service(
			context, choose, NULL, take_values, NULL);
	if (status != ROCPROFILER_STATUS_SUCCESS)
		tell("configuring", status);
	is_on = status == ROCPROFILER_STATUS_SUCCESS;
}

void count_kernels_start(void)
{
	rocprofiler_status_t status;

	if (!is_on)
		return;
	status = rocprofiler_start_context(context);
	is_on = status == ROCPROFILER_STATUS_SUCCESS;
	if (!is_on)
		tell("starting", status);
}

void count_kernels_end(void)
{
	uint64_t launched = atomic_load(&asked), counted, totals[4] = {0};

	if (!is_on)
		return;
	counted = atomic_load(&answered);
	if (kymo_counting_totals != NULL)
		kymo_counting_totals(totals);
	if (launched > counted + totals[1])
		gpu_file_lost(GPU_LOSS_NOT_COUNTED, launched - counted - totals[1]);
}

/* Launches before belong to the parent. */
void count_kernels_forked(void)
{
	pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	lock = fresh;
	atomic_store(&asked, 0);
	atomic_store(&answered, 0);
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See count_kernels.h. The tool library asks for each launch, on the thread that launches; the
 * agent's set of counters is the answer, made when its first kernel comes. Which launches are left
 * out (KYMO_KERNEL_INCLUDE and others) is the library's business. Launches with a set and without
 * values in the end were filtered or not counted, and both are reported.
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

#define AGENTS_MAX           64
#define VALUES_PER_WRITE_MAX 1024u

static const char *requested_kernel_counter_names;
static rocprofiler_context_id_t kernel_counting_context_handle;
static bool kernel_counting_on_flag;
static _Atomic uint64_t launches_with_counter_set_count, counted_launch_count;

/* Only kymo's tool library has it. */
#pragma weak kymo_counting_totals

/* Sets by agent. */
static pthread_mutex_t agent_counter_sets_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	uint64_t agent;
	rocprofiler_counter_config_id_t config;
} agent_counter_set_table[AGENTS_MAX];
static size_t agent_counter_sets_used_count;

/* ---- which ---- */

static rocprofiler_counter_config_id_t
find_or_add_counter_set_of_agent(rocprofiler_agent_id_t agent)
{
	rocprofiler_counter_config_id_t config = {0};

	for (size_t i = 0; i < agent_counter_sets_used_count; i++) {
		if (agent_counter_set_table[i].agent == agent.handle)
			return agent_counter_set_table[i].config;
	}
	if (agent_counter_sets_used_count == AGENTS_MAX)
		return config;
	config = counter_choice_create_config(agent, requested_kernel_counter_names);
	agent_counter_set_table[agent_counter_sets_used_count].agent = agent.handle;
	agent_counter_set_table[agent_counter_sets_used_count++].config = config;
	return config;
}

static void choose_counter_set_and_count_launch(rocprofiler_dispatch_counting_service_data_t data,
						rocprofiler_counter_config_id_t *config,
						rocprofiler_user_data_t *user_data, void *unused)
{
	(void)unused;
	user_data->value = (uint64_t)gettid();
	pthread_mutex_lock(&agent_counter_sets_lock);
	*config = find_or_add_counter_set_of_agent(data.dispatch_info.agent_id);
	pthread_mutex_unlock(&agent_counter_sets_lock);
	if (config->handle != 0)
		atomic_fetch_add_explicit(&launches_with_counter_set_count, 1,
					  memory_order_relaxed);
}

/* ---- what came of it ---- */

/* At once, for a kernel that was counted was waited for: the file has it however the process ends.
 */
static void write_counter_values_of_kernel(rocprofiler_dispatch_counting_service_data_t data,
					   rocprofiler_counter_record_t *records, size_t count,
					   rocprofiler_user_data_t user_data, void *unused)
{
	const rocprofiler_counter_record_t *values[VALUES_PER_WRITE_MAX];

	(void)unused;
	gpu_file_lock();
	counter_records_write_counted_kernel(&data, count, (uint32_t)user_data.value);
	for (size_t i = 0; i < count;) {
		size_t taken = 0;

		while (i < count && taken < VALUES_PER_WRITE_MAX)
			values[taken++] = &records[i++];
		counter_records_write_values(values, taken, 0, 0);
	}
	gpu_file_unlock();
	atomic_fetch_add_explicit(&counted_launch_count, 1, memory_order_relaxed);
}

/* ---- life ---- */

static void write_kernel_counting_problem_notice(const char *what, rocprofiler_status_t status)
{
	char text[640];

	snprintf(text, sizeof(text), "kernels are not counted: %s: %s", what,
		 counter_choice_get_problem_text(status));
	gpu_file_write_notice(text);
}

void kernel_counting_configure_if_env_asks(void)
{
	rocprofiler_status_t status;

	requested_kernel_counter_names = secure_getenv("KYMO_COUNTERS");
	if (requested_kernel_counter_names == NULL || *requested_kernel_counter_names == '\0')
		return;
	status = rocprofiler_create_context(&kernel_counting_context_handle);
	if (status == ROCPROFILER_STATUS_SUCCESS)
		status = rocprofiler_configure_callback_dispatch_counting_service(
			kernel_counting_context_handle, choose_counter_set_and_count_launch, NULL,
			write_counter_values_of_kernel, NULL);
	if (status != ROCPROFILER_STATUS_SUCCESS)
		write_kernel_counting_problem_notice("configuring", status);
	kernel_counting_on_flag = status == ROCPROFILER_STATUS_SUCCESS;
}

void kernel_counting_start(void)
{
	rocprofiler_status_t status;

	if (!kernel_counting_on_flag)
		return;
	status = rocprofiler_start_context(kernel_counting_context_handle);
	kernel_counting_on_flag = status == ROCPROFILER_STATUS_SUCCESS;
	if (!kernel_counting_on_flag)
		write_kernel_counting_problem_notice("starting", status);
}

void kernel_counting_add_loss_of_uncounted_kernels(void)
{
	uint64_t launched = atomic_load(&launches_with_counter_set_count), counted, totals[4] = {0};

	if (!kernel_counting_on_flag)
		return;
	counted = atomic_load(&counted_launch_count);
	if (kymo_counting_totals != NULL)
		kymo_counting_totals(totals);
	if (launched > counted + totals[1])
		gpu_file_add_loss_count(GPU_LOSS_NOT_COUNTED, launched - counted - totals[1]);
}

/* Launches before belong to the parent. */
void kernel_counting_reset_after_fork(void)
{
	pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	agent_counter_sets_lock = fresh;
	atomic_store(&launches_with_counter_set_count, 0);
	atomic_store(&counted_launch_count, 0);
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See count_kernels.h. The tool library asks for each launch, on the thread that launches: the
 * filter (kernel_filter.h) answers, then the agent's set of counters, made when its first kernel
 * comes. Launches with a set and without values in the end were not counted: the difference is
 * told.
 */
#include "libkymo-gpu/count_kernels.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rocprofiler-sdk/rocprofiler.h>

#include "libkymo-gpu/counter_choice.h"
#include "libkymo-gpu/counter_records.h"
#include "libkymo-gpu/file.h"
#include "libkymo-gpu/kernel_filter.h"
#include "libkymo-gpu/names.h"

#define BUFFER_BYTES     (8u << 20)
#define BUFFER_WATERMARK (1u << 20)
#define AGENTS_MAX       64
#define KERNELS_ROOM     256u
#define VALUES_AT_ONCE   1024u

static const char *names;
static rocprofiler_context_id_t context;
static rocprofiler_buffer_id_t buffer;
static struct kernel_filter *filter;
static bool is_on;
static _Atomic uint64_t asked, answered;

/* Sets by agent and launches by kernel. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	uint64_t agent;
	rocprofiler_counter_config_id_t config;
} sets[AGENTS_MAX];
static size_t set_count;
static struct launched {
	uint64_t kernel; /* id; 0: free */
	uint64_t launches;
	bool is_taken; /* by its name */
} * kernels;
static size_t kernel_count, kernel_room;

/* ---- which ---- */

static struct launched *place_of(struct launched *table, size_t room, uint64_t kernel)
{
	size_t i = (size_t)(kernel * UINT64_C(0x9e3779b97f4a7c15) % room);

	while (table[i].kernel != 0 && table[i].kernel != kernel)
		i = (i + 1) % room;
	return &table[i];
}

static bool grow(void)
{
	size_t room = kernel_room != 0 ? kernel_room * 2 : KERNELS_ROOM;
	struct launched *larger = calloc(room, sizeof(*larger));

	if (larger == NULL)
		return false;
	for (size_t i = 0; i < kernel_room; i++) {
		if (kernels[i].kernel != 0)
			*place_of(larger, room, kernels[i].kernel) = kernels[i];
	}
	free(kernels);
	kernels = larger;
	kernel_room = room;
	return true;
}

static bool passes_filter(uint64_t kernel)
{
	struct launched *launched;

	if (kernel_count * 2 >= kernel_room && !grow())
		return false;
	launched = place_of(kernels, kernel_room, kernel);
	if (launched->kernel == 0) {
		char name[512];

		names_kernel(kernel, name, sizeof(name));
		launched->kernel = kernel;
		launched->is_taken = kernel_filter_takes_name(filter, name);
		kernel_count++;
	}
	launched->launches++;
	return launched->is_taken && kernel_filter_takes_launch(filter, launched->launches);
}

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
	if (passes_filter(data.dispatch_info.kernel_id))
		*config = set_of(data.dispatch_info.agent_id);
	else
		gpu_file_filtered(1);
	pthread_mutex_unlock(&lock);
	if (config->handle != 0)
		atomic_fetch_add_explicit(&asked, 1, memory_order_relaxed);
}

/* ---- what came of it ---- */

static bool is_value(const rocprofiler_record_header_t *header)
{
	return header->category == ROCPROFILER_BUFFER_CATEGORY_COUNTERS &&
	       header->kind == ROCPROFILER_COUNTER_RECORD_VALUE;
}

/* The header is in front of its values, which know the thread. */
static void take_header(rocprofiler_record_header_t *const *headers, size_t left)
{
	const rocprofiler_counter_record_t *first =
		left > 1 && is_value(headers[1]) ? headers[1]->payload : NULL;

	counter_records_kernel(headers[0]->payload,
			       first != NULL ? (uint32_t)first->user_data.value : 0);
	atomic_fetch_add_explicit(&answered, 1, memory_order_relaxed);
}

static void take_records(rocprofiler_context_id_t of_context, rocprofiler_buffer_id_t of_buffer,
			 rocprofiler_record_header_t **headers, size_t count, void *data,
			 uint64_t dropped)
{
	const rocprofiler_counter_record_t *values[VALUES_AT_ONCE];
	size_t i = 0;

	(void)of_context;
	(void)of_buffer;
	(void)data;
	gpu_file_lock();
	while (i < count) {
		size_t taken = 0;

		while (i < count && taken < VALUES_AT_ONCE && is_value(headers[i]))
			values[taken++] = headers[i++]->payload;
		counter_records_values(values, taken, 0, 0);
		if (i < count && !is_value(headers[i])) {
			if (headers[i]->category == ROCPROFILER_BUFFER_CATEGORY_COUNTERS)
				take_header(headers + i, count - i);
			i++;
		}
	}
	gpu_file_unlock();
	gpu_file_lost(GPU_LOSS_BUFFER, dropped);
}

/* ---- life ---- */

static void tell(const char *what, rocprofiler_status_t status)
{
	const char *why = rocprofiler_get_status_string(status);
	char text[256];

	snprintf(text, sizeof(text), "kernels are not counted: %s: %s", what,
		 why != NULL ? why : "unknown status");
	gpu_file_notice(text);
}

void count_kernels_configure(void)
{
	rocprofiler_status_t status;

	names = getenv("KYMO_COUNTERS");
	if (names == NULL || *names == '\0')
		return;
	filter = kernel_filter_create(getenv("KYMO_KERNEL_INCLUDE"), getenv("KYMO_KERNEL_EXCLUDE"),
				      getenv("KYMO_KERNEL_RANGE"));
	if (filter == NULL)
		return;
	status = rocprofiler_create_context(&context);
	if (status == ROCPROFILER_STATUS_SUCCESS)
		status = rocprofiler_create_buffer(context, BUFFER_BYTES, BUFFER_WATERMARK,
						   ROCPROFILER_BUFFER_POLICY_LOSSLESS, take_records,
						   NULL, &buffer);
	if (status == ROCPROFILER_STATUS_SUCCESS)
		status = rocprofiler_configure_buffer_dispatch_counting_service(context, buffer,
										choose, NULL);
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

void count_kernels_flush(void)
{
	if (is_on)
		rocprofiler_flush_buffer(buffer);
}

void count_kernels_end(void)
{
	uint64_t launched = atomic_load(&asked), counted;

	if (!is_on)
		return;
	rocprofiler_flush_buffer(buffer);
	counted = atomic_load(&answered);
	if (launched > counted)
		gpu_file_lost(GPU_LOSS_NOT_COUNTED, launched - counted);
}

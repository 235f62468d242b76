/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A range of the program's (roctx, NVTX), pushed and popped on one thread, counted as a kernel of
 * the host: what that thread did within it, inner ranges included. Tools for devices expect no
 * kernels of processors, so it is asked for (KYMO_COUNT_REGIONS).
 *
 * A range that is still open when its thread or the process ends is reported as not counted: nobody
 * waits for it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "device/host/host.h"
#include "device/host/process_span.h"
#include "device/kernel_serializer.h"

#define REGION_NAMES_MAX 4096u

enum { REGION_OPEN, REGION_ENDED };

struct host_region {
	struct host_region *outer_region;         /* of its thread */
	struct host_region *next, **link_to_this; /* all of them */
	device_handle handle; /* DEVICE_HANDLE_NONE: it is not counted, only open */
	struct thread_counting_span *counting_span; /* NULL: no set was chosen for it */
	uint64_t start;
	unsigned generation;
	_Atomic int state;
	_Atomic int reference_count; /* its thread, and the list of all */
};

struct region_name_entry {
	struct region_name_entry *next;
	device_handle symbol;
	char text[];
};

static pthread_key_t innermost_region_key;
static pthread_once_t thread_key_once_control = PTHREAD_ONCE_INIT;
static pthread_mutex_t regions_lock = PTHREAD_MUTEX_INITIALIZER; /* around the list, and names */
static struct host_region *open_region_list;
static struct region_name_entry *region_name_list_head;
static _Atomic device_handle handle_of_reported_region_program;
static unsigned region_name_count;
static _Atomic unsigned fork_generation; /* of processes */
static bool region_counting_enabled_flag, thread_key_created_flag;

static void handle_thread_end(void *data);

static void read_setting_and_create_thread_key(void)
{
	const char *asked = secure_getenv("KYMO_COUNT_REGIONS");

	region_counting_enabled_flag =
		asked != NULL && (strcasecmp(asked, "on") == 0 || strcmp(asked, "1") == 0 ||
				  strcasecmp(asked, "true") == 0 || strcasecmp(asked, "yes") == 0);
	thread_key_created_flag = region_counting_enabled_flag &&
				  pthread_key_create(&innermost_region_key, handle_thread_end) == 0;
}

/* ---- names ---- */

static device_handle find_region_symbol_by_name(const char *text)
{
	const struct region_name_entry *at = region_name_list_head;

	while (at != NULL && strcmp(at->text, text) != 0)
		at = at->next;
	return at != NULL ? at->symbol : DEVICE_HANDLE_NONE;
}

/* Without the lock: tools hear of it. */
static device_handle report_region_as_kernel_symbol(const struct device_sink *sink,
						    const char *text)
{
	struct device_program told = {.agent = host_get_first_agent(), .uri = "host://ranges"};
	struct device_symbol symbol = {.name = text,
				       .program = atomic_load(&handle_of_reported_region_program)};
	device_handle handle, none = DEVICE_HANDLE_NONE;

	if (symbol.program == DEVICE_HANDLE_NONE) {
		symbol.program = sink->program_load(&told);
		atomic_compare_exchange_strong(&handle_of_reported_region_program, &none,
					       symbol.program);
	}
	handle = sink->kernel_symbol(&symbol);
	serializer_add_kernel_name(handle, text);
	return handle;
}

/* Past so many different ones (a number in each, say) all further have one. */
static device_handle find_or_add_region_symbol_by_name(const struct device_sink *sink,
						       const char *text)
{
	struct region_name_entry *fresh;
	device_handle symbol;

	pthread_mutex_lock(&regions_lock);
	if (region_name_count >= REGION_NAMES_MAX &&
	    find_region_symbol_by_name(text) == DEVICE_HANDLE_NONE)
		text = "(another range)";
	symbol = find_region_symbol_by_name(text);
	pthread_mutex_unlock(&regions_lock);
	fresh = symbol == DEVICE_HANDLE_NONE ? malloc(sizeof(*fresh) + strlen(text) + 1) : NULL;
	if (fresh == NULL)
		return symbol;
	strcpy(fresh->text, text);
	symbol = fresh->symbol = report_region_as_kernel_symbol(sink, text);
	pthread_mutex_lock(&regions_lock);
	fresh->next = region_name_list_head;
	region_name_list_head = fresh;
	region_name_count++;
	pthread_mutex_unlock(&regions_lock);
	return symbol;
}

/* ---- one range ---- */

static void release_region_references(struct host_region *region, int references)
{
	if (atomic_fetch_sub(&region->reference_count, references) == references)
		free(region);
}

static void link_open_region(struct host_region *region)
{
	pthread_mutex_lock(&regions_lock);
	region->next = open_region_list;
	region->link_to_this = &open_region_list;
	if (open_region_list != NULL)
		open_region_list->link_to_this = &region->next;
	open_region_list = region;
	pthread_mutex_unlock(&regions_lock);
}

static void unlink_region(struct host_region *region)
{
	pthread_mutex_lock(&regions_lock);
	*region->link_to_this = region->next;
	if (region->next != NULL)
		region->next->link_to_this = region->link_to_this;
	pthread_mutex_unlock(&regions_lock);
}

static void begin_counted_region(struct host_region *region, const struct device_sink *sink,
				 const char *name)
{
	struct device_kernel_launch kernel = {.agent = host_get_first_agent(),
					      .group_threads = {1, 1, 1},
					      .grid_threads = {1, 1, 1}};
	struct counting_problem problem = {""};
	enum counting_status status;
	const void *set;

	kernel.symbol = find_or_add_region_symbol_by_name(sink, name);
	region->handle = sink->kernel_enqueue(&kernel);
	if (region->handle == DEVICE_HANDLE_NONE)
		return;
	set = sink->counting->dispatch_select_set(region->handle, &kernel);
	sink->kernel_submitted(region->handle, false);
	link_open_region(region);
	region->start = sink->now();
	if (set == NULL)
		return;
	status = thread_counting_span_begin(host_get_process_counter_set(set),
					    &region->counting_span, &problem);
	if (status != COUNTING_OK)
		sink->counting->dispatch_not_counted(region->handle, status, problem.text);
}

/* Who ends it, tells it. */
static void end_counted_region(struct host_region *region, const char *why_not)
{
	const struct device_sink *sink = device_get_sink();
	struct counting_problem problem = {""};
	enum counting_status status = COUNTING_NOT_FINISHED;
	uint64_t now = sink->now();
	double *values = NULL;
	size_t count = 0;

	if (region->counting_span != NULL && why_not == NULL)
		status = thread_counting_span_end(region->counting_span, &values, &count, &problem);
	if (region->counting_span != NULL && status == COUNTING_OK)
		sink->counting->dispatch_counted(region->handle, values, count, region->start, now);
	else if (region->counting_span != NULL)
		sink->counting->dispatch_not_counted(region->handle, status,
						     why_not != NULL ? why_not : problem.text);
	if (region->counting_span != NULL)
		thread_counting_span_free(region->counting_span);
	sink->kernel_complete(region->handle, NULL, region->start, now);
}

/* By its own thread. What a child of fork finds open is the parent's. */
static void end_region_on_own_thread(struct host_region *region, const char *why_not)
{
	int references = 1;

	if (region->handle == DEVICE_HANDLE_NONE ||
	    region->generation != atomic_load(&fork_generation)) {
		free(region);
		return;
	}
	if (atomic_exchange(&region->state, REGION_ENDED) == REGION_OPEN) {
		unlink_region(region);
		end_counted_region(region, why_not);
		references = 2;
	}
	release_region_references(region, references);
}

static void handle_thread_end(void *data)
{
	struct host_region *region = data, *outer;

	for (; region != NULL; region = outer) {
		outer = region->outer_region;
		end_region_on_own_thread(region, "its thread ended within it");
	}
}

void device_host_region_push(const char *name)
{
	const struct device_sink *sink = device_get_sink();
	struct host_region *outer, *region;
	bool counts;

	pthread_once(&thread_key_once_control, read_setting_and_create_thread_key);
	if (!thread_key_created_flag || sink == NULL || sink->counting == NULL)
		return;
	outer = pthread_getspecific(innermost_region_key);
	counts = host_get_first_agent() != DEVICE_HANDLE_NONE &&
		 sink->counting->counts_kernels(host_get_first_agent());
	if (!counts && outer == NULL)
		return;
	region = calloc(1, sizeof(*region));
	if (region == NULL)
		return;
	region->outer_region = outer;
	region->generation = atomic_load(&fork_generation);
	region->reference_count = 2;
	if (pthread_setspecific(innermost_region_key, region) != 0) {
		free(region);
		return;
	}
	if (counts)
		begin_counted_region(region, sink, name != NULL ? name : "");
}

void device_host_region_pop(void)
{
	struct host_region *region;

	if (!thread_key_created_flag)
		return;
	region = pthread_getspecific(innermost_region_key);
	if (region == NULL)
		return;
	pthread_setspecific(innermost_region_key, region->outer_region);
	end_region_on_own_thread(region, NULL);
}

/* ---- the end ---- */

void host_regions_end_all(void)
{
	struct host_region *region;

	do {
		pthread_mutex_lock(&regions_lock);
		for (region = open_region_list; region != NULL; region = region->next) {
			if (atomic_exchange(&region->state, REGION_ENDED) == REGION_OPEN)
				break;
		}
		pthread_mutex_unlock(&regions_lock);
		if (region != NULL) {
			unlink_region(region);
			end_counted_region(region, "it was still open when the process ended");
			release_region_references(region, 1);
		}
	} while (region != NULL);
}

void host_regions_reset_forked(void)
{
	atomic_fetch_add(&fork_generation, 1);
	pthread_mutex_init(&regions_lock, NULL);
	open_region_list = NULL;
}

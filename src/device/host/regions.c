/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A range of the program's (roctx, NVTX), pushed and popped on one thread, counted as a kernel of
 * the host: what that thread did within it, inner ranges included. Tools for devices expect no
 * kernels of processors, so it is asked for (KYMO_COUNT_REGIONS).
 *
 * A range that is still open when its thread or the process ends is told as not counted: nobody
 * waits for it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "device/host/host.h"
#include "device/host/process_span.h"
#include "device/turns.h"

#define NAMES_MAX 4096u

enum { REGION_OPEN, REGION_ENDED };

struct region {
	struct region *outer;         /* of its thread */
	struct region *next, **to_it; /* all of them */
	device_handle handle;         /* DEVICE_NONE: it is not counted, only open */
	struct process_span *span;    /* NULL: no set was chosen for it */
	uint64_t start;
	unsigned generation;
	_Atomic int state;
	_Atomic int references; /* its thread, and the list of all */
};

struct name {
	struct name *next;
	device_handle symbol;
	char text[];
};

static pthread_key_t key;
static pthread_once_t made = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* around the list, and names */
static struct region *all;
static struct name *names;
static _Atomic device_handle program;
static unsigned name_count;
static _Atomic unsigned generation; /* of processes */
static bool is_asked_for, has_key;

static void thread_ends(void *data);

static void make(void)
{
	const char *asked = getenv("KYMO_COUNT_REGIONS");

	is_asked_for =
		asked != NULL && (strcasecmp(asked, "on") == 0 || strcmp(asked, "1") == 0 ||
				  strcasecmp(asked, "true") == 0 || strcasecmp(asked, "yes") == 0);
	has_key = is_asked_for && pthread_key_create(&key, thread_ends) == 0;
}

/* ---- names ---- */

static device_handle find(const char *text)
{
	const struct name *at = names;

	while (at != NULL && strcmp(at->text, text) != 0)
		at = at->next;
	return at != NULL ? at->symbol : DEVICE_NONE;
}

/* Without the lock: tools hear of it. */
static device_handle new_symbol(const struct device_sink *sink, const char *text)
{
	struct device_program told = {.agent = host_first_agent(), .uri = "host://ranges"};
	struct device_symbol symbol = {.name = text, .program = atomic_load(&program)};
	device_handle handle, none = DEVICE_NONE;

	if (symbol.program == DEVICE_NONE) {
		symbol.program = sink->program_load(&told);
		atomic_compare_exchange_strong(&program, &none, symbol.program);
	}
	handle = sink->kernel_symbol(&symbol);
	turn_kernel_named(handle, text);
	return handle;
}

/* Past so many different ones (a number in each, say) all further have one. */
static device_handle symbol_of(const struct device_sink *sink, const char *text)
{
	struct name *fresh;
	device_handle symbol;

	pthread_mutex_lock(&lock);
	if (name_count >= NAMES_MAX && find(text) == DEVICE_NONE)
		text = "(another range)";
	symbol = find(text);
	pthread_mutex_unlock(&lock);
	fresh = symbol == DEVICE_NONE ? malloc(sizeof(*fresh) + strlen(text) + 1) : NULL;
	if (fresh == NULL)
		return symbol;
	strcpy(fresh->text, text);
	symbol = fresh->symbol = new_symbol(sink, text);
	pthread_mutex_lock(&lock);
	fresh->next = names;
	names = fresh;
	name_count++;
	pthread_mutex_unlock(&lock);
	return symbol;
}

/* ---- one range ---- */

static void drop(struct region *region, int references)
{
	if (atomic_fetch_sub(&region->references, references) == references)
		free(region);
}

static void list(struct region *region)
{
	pthread_mutex_lock(&lock);
	region->next = all;
	region->to_it = &all;
	if (all != NULL)
		all->to_it = &region->next;
	all = region;
	pthread_mutex_unlock(&lock);
}

static void unlist(struct region *region)
{
	pthread_mutex_lock(&lock);
	*region->to_it = region->next;
	if (region->next != NULL)
		region->next->to_it = region->to_it;
	pthread_mutex_unlock(&lock);
}

static void begin(struct region *region, const struct device_sink *sink, const char *name)
{
	struct device_kernel kernel = {
		.agent = host_first_agent(), .group = {1, 1, 1}, .grid = {1, 1, 1}};
	struct counting_problem problem = {""};
	enum counting_status status;
	const void *set;

	kernel.symbol = symbol_of(sink, name);
	region->handle = sink->kernel_enqueue(&kernel);
	if (region->handle == DEVICE_NONE)
		return;
	set = sink->counting->dispatch_select(region->handle, &kernel);
	sink->kernel_submitted(region->handle, false);
	list(region);
	region->start = sink->now();
	if (set == NULL)
		return;
	status = process_span_begin(host_set_process(set), &region->span, &problem);
	if (status != COUNTING_OK)
		sink->counting->dispatch_not_counted(region->handle, status, problem.text);
}

/* Who ends it, tells it. */
static void end(struct region *region, const char *why_not)
{
	const struct device_sink *sink = device_sink();
	struct counting_problem problem = {""};
	enum counting_status status = COUNTING_NOT_FINISHED;
	uint64_t now = sink->now();
	double *values = NULL;
	size_t count = 0;

	if (region->span != NULL && why_not == NULL)
		status = process_span_end(region->span, &values, &count, &problem);
	if (region->span != NULL && status == COUNTING_OK)
		sink->counting->dispatch_counted(region->handle, values, count, region->start, now);
	else if (region->span != NULL)
		sink->counting->dispatch_not_counted(region->handle, status,
						     why_not != NULL ? why_not : problem.text);
	if (region->span != NULL)
		process_span_free(region->span);
	sink->kernel_complete(region->handle, NULL, region->start, now);
}

/* By its own thread. What a child of fork finds open is the parent's. */
static void leave(struct region *region, const char *why_not)
{
	int references = 1;

	if (region->handle == DEVICE_NONE || region->generation != atomic_load(&generation)) {
		free(region);
		return;
	}
	if (atomic_exchange(&region->state, REGION_ENDED) == REGION_OPEN) {
		unlist(region);
		end(region, why_not);
		references = 2;
	}
	drop(region, references);
}

static void thread_ends(void *data)
{
	struct region *region = data, *outer;

	for (; region != NULL; region = outer) {
		outer = region->outer;
		leave(region, "its thread ended within it");
	}
}

void device_region_push(const char *name)
{
	const struct device_sink *sink = device_sink();
	struct region *outer, *region;
	bool counts;

	pthread_once(&made, make);
	if (!has_key || sink == NULL || sink->counting == NULL)
		return;
	outer = pthread_getspecific(key);
	counts = host_first_agent() != DEVICE_NONE &&
		 sink->counting->counts_kernels(host_first_agent());
	if (!counts && outer == NULL)
		return;
	region = calloc(1, sizeof(*region));
	if (region == NULL)
		return;
	region->outer = outer;
	region->generation = atomic_load(&generation);
	region->references = 2;
	if (pthread_setspecific(key, region) != 0) {
		free(region);
		return;
	}
	if (counts)
		begin(region, sink, name != NULL ? name : "");
}

void device_region_pop(void)
{
	struct region *region;

	if (!has_key)
		return;
	region = pthread_getspecific(key);
	if (region == NULL)
		return;
	pthread_setspecific(key, region->outer);
	leave(region, NULL);
}

/* ---- the end ---- */

void host_regions_give_up(void)
{
	struct region *region;

	do {
		pthread_mutex_lock(&lock);
		for (region = all; region != NULL; region = region->next) {
			if (atomic_exchange(&region->state, REGION_ENDED) == REGION_OPEN)
				break;
		}
		pthread_mutex_unlock(&lock);
		if (region != NULL) {
			unlist(region);
			end(region, "it was open when the process ended");
			drop(region, 1);
		}
	} while (region != NULL);
}

void host_regions_forked(void)
{
	atomic_fetch_add(&generation, 1);
	pthread_mutex_init(&lock, NULL);
	all = NULL;
}

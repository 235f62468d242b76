/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which events there are: the names of perf(1), in three blocks; see process_set.h.
 */
#include "device/host/process_events.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EVENTS_MAX  128
#define NAME_LENGTH 64

static const char *const caches[] = {"L1-dcache-loads",       "L1-dcache-load-misses",
				     "L1-icache-load-misses", "LLC-loads",
				     "LLC-load-misses",       "dTLB-loads",
				     "dTLB-load-misses",      "iTLB-load-misses"};

static struct known {
	struct counting_event event;
	bool is_system;
	char name[NAME_LENGTH];
} known[EVENTS_MAX];
static unsigned known_count;
static pthread_once_t listed = PTHREAD_ONCE_INIT;

/* Texts of raw events that somebody asked for; they stay. */
struct text {
	struct text *next;
	char text[];
};
static struct text *_Atomic texts;

int process_perf_open(const struct perf_event_name *event, int thread, int cpu, int leader,
		      bool inherit)
{
	struct perf_event_attr attributes = {
		.type = event->type,
		.size = sizeof(attributes),
		.config = event->config,
		.config1 = event->config1,
		.config2 = event->config2,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.inherit = inherit,
		.exclude_hv = 1,
	};
	long opened = syscall(SYS_perf_event_open, &attributes, thread, cpu, leader,
			      PERF_FLAG_FD_CLOEXEC);

	if (opened < 0 && (errno == EACCES || errno == EPERM)) {
		attributes.exclude_kernel = 1;
		opened = syscall(SYS_perf_event_open, &attributes, thread, cpu, leader,
				 PERF_FLAG_FD_CLOEXEC);
	}
	return opened < 0 ? -errno : (int)opened;
}

/* Not permitted is there: who asks for it is told so. */
static bool is_there(const struct perf_event_name *perf, bool is_system)
{
	int opened = process_perf_open(perf, is_system ? -1 : 0, is_system ? 0 : -1, -1, false);

	if (opened >= 0)
		close(opened);
	return opened >= 0 || opened == -EACCES || opened == -EPERM;
}

static enum process_source source_of(const struct perf_event_name *perf)
{
	if (perf->type != PERF_TYPE_SOFTWARE)
		return PROCESS_PERF;
	switch (perf->config) {
	case PERF_COUNT_SW_TASK_CLOCK:
		return PROCESS_CPU_TIME;
	case PERF_COUNT_SW_PAGE_FAULTS:
		return PROCESS_FAULTS;
	case PERF_COUNT_SW_PAGE_FAULTS_MIN:
		return PROCESS_MINOR_FAULTS;
	case PERF_COUNT_SW_PAGE_FAULTS_MAJ:
		return PROCESS_MAJOR_FAULTS;
	case PERF_COUNT_SW_CONTEXT_SWITCHES:
		return PROCESS_SWITCHES;
	default:
		return PROCESS_PERF;
	}
}

static void add(const char *event, const char *description, bool is_system)
{
	struct known *fresh = &known[known_count];
	struct perf_event_name perf = {0};
	size_t length = 0;

	if (known_count == EVENTS_MAX || perf_event_find(event, strlen(event), &perf) != 0)
		return;
	if ((is_system || source_of(&perf) == PROCESS_PERF) && !is_there(&perf, is_system))
		return;
	snprintf(fresh->name, sizeof(fresh->name), "%s%s", is_system ? "system_" : "", event);
	for (; fresh->name[length] != '\0'; length++) {
		if (fresh->name[length] == '-')
			fresh->name[length] = '_';
	}
	fresh->is_system = is_system;
	fresh->event = (struct counting_event){
		.name = fresh->name,
		.block = is_system                         ? "SYSTEM"
			 : perf.type == PERF_TYPE_SOFTWARE ? "SW"
							   : "CORE",
		.event = event,
		.description = description,
		.extents_count = 1,
		.extents = {{COUNTING_DIMENSION_INSTANCE, 1}},
		.ways = COUNTING_BY_DEVICE | (is_system ? 0 : COUNTING_BY_DISPATCH),
	};
	known_count++;
}

static void list(void)
{
	for (unsigned is_system = 0; is_system < 2; is_system++) {
		const char *description, *event;

		for (unsigned i = 0; (event = perf_event_listed(i, &description)) != NULL; i++)
			add(event, description, is_system != 0);
		for (unsigned i = 0; i < sizeof(caches) / sizeof(caches[0]); i++)
			add(caches[i], "accesses of a cache, or misses", is_system != 0);
	}
}

bool process_has_block(const char *block)
{
	return strcmp(block, "SW") == 0 || strcmp(block, "CORE") == 0 ||
	       strcmp(block, "SYSTEM") == 0;
}

enum counting_status process_events(const struct process_cpus *cpus,
				    bool (*each)(void *context, const struct counting_event *event),
				    void *context)
{
	pthread_once(&listed, list);
	for (unsigned i = 0; i < known_count; i++) {
		struct counting_event event = known[i].event;

		if (known[i].is_system && cpus->count == 0)
			continue;
		if (known[i].is_system)
			event.extents[0].size = cpus->count;
		if (!each(context, &event))
			break;
	}
	return COUNTING_OK;
}

/* "config=0x1a8" and what perf_event_find() knows: names, rNNN. */
static bool find_perf(const char *event, struct perf_event_name *perf)
{
	char *end;

	if (strncmp(event, "config=", 7) == 0) {
		*perf = (struct perf_event_name){.type = PERF_TYPE_RAW,
						 .config = strtoull(event + 7, &end, 0)};
		return end != event + 7 && *end == '\0';
	}
	return perf_event_find(event, strlen(event), perf) == 0;
}

enum counting_status process_event_origin(const struct process_cpus *cpus, const char *block,
					  const char *event, struct process_origin *origin)
{
	bool is_system = strcmp(block, "SYSTEM") == 0;
	bool is_software;

	*origin = (struct process_origin){.source = PROCESS_PERF};
	if (!process_has_block(block) || !find_perf(event, &origin->perf) ||
	    (is_system && cpus->count == 0))
		return COUNTING_NO_SUCH_EVENT;
	is_software = origin->perf.type == PERF_TYPE_SOFTWARE;
	if (!is_system && is_software != (strcmp(block, "SW") == 0))
		return COUNTING_NO_SUCH_EVENT;
	origin->source = is_system ? PROCESS_PERF_SYSTEM : source_of(&origin->perf);
	if (origin->source >= PROCESS_PERF && !is_there(&origin->perf, is_system))
		return COUNTING_NO_SUCH_EVENT;
	return COUNTING_OK;
}

static const char *keep(const char *text)
{
	struct text *first = atomic_load(&texts), *fresh;

	for (struct text *at = first; at != NULL; at = at->next) {
		if (strcmp(at->text, text) == 0)
			return at->text;
	}
	fresh = malloc(sizeof(*fresh) + strlen(text) + 1);
	if (fresh == NULL)
		return "";
	strcpy(fresh->text, text);
	do {
		fresh->next = first;
	} while (!atomic_compare_exchange_weak(&texts, &first, fresh));
	return fresh->text;
}

struct search {
	const char *block, *event;
	struct counting_event *told;
	bool found;
};

static bool is_it(void *context, const struct counting_event *event)
{
	struct search *search = context;

	search->found = strcmp(event->block, search->block) == 0 &&
			strcmp(event->event, search->event) == 0;
	if (search->found)
		*search->told = *event;
	return !search->found;
}

enum counting_status process_event(const struct process_cpus *cpus, const char *block,
				   const char *event, struct counting_event *told)
{
	struct search search = {block, event, told, false};
	struct process_origin origin;
	enum counting_status status;
	bool is_system = strcmp(block, "SYSTEM") == 0;

	process_events(cpus, is_it, &search);
	if (search.found)
		return COUNTING_OK;
	status = process_event_origin(cpus, block, event, &origin);
	if (status != COUNTING_OK)
		return status;
	*told = (struct counting_event){
		.name = "",
		.block = keep(block),
		.event = keep(event),
		.description = "",
		.extents_count = 1,
		.extents = {{COUNTING_DIMENSION_INSTANCE, is_system ? cpus->count : 1}},
		.ways = COUNTING_BY_DEVICE | (is_system ? 0 : COUNTING_BY_DISPATCH),
	};
	return COUNTING_OK;
}

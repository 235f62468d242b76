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

#include "common/array.h"

#define EVENTS_MAX       128
#define EVENT_NAME_BYTES 64

static const char *const cpu_cache_event_names[] = {
	"L1-dcache-loads",  "L1-dcache-load-misses", "L1-icache-load-misses",
	"LLC-loads",        "LLC-load-misses",       "dTLB-loads",
	"dTLB-load-misses", "iTLB-load-misses"};

static struct known_event {
	struct counting_event_info event;
	bool is_system_wide;
	char name[EVENT_NAME_BYTES];
} known_events[EVENTS_MAX];
static unsigned known_event_count;
static pthread_once_t known_events_once = PTHREAD_ONCE_INIT;

/* Texts of raw events that somebody asked for; they stay. */
struct interned_text {
	struct interned_text *next;
	char text[];
};
static struct interned_text *_Atomic interned_texts;

int process_perf_event_open(const struct perf_event_code *event, int thread, int cpu, int leader,
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

/* Not permitted is there: the answer to who asks for it says so. */
static bool event_is_countable(const struct perf_event_code *perf, bool is_system)
{
	int opened =
		process_perf_event_open(perf, is_system ? -1 : 0, is_system ? 0 : -1, -1, false);

	if (opened >= 0)
		close(opened);
	return opened >= 0 || opened == -EACCES || opened == -EPERM;
}

static enum process_counter_source
perf_event_to_process_counter_source(const struct perf_event_code *perf)
{
	if (perf->type != PERF_TYPE_SOFTWARE)
		return PROCESS_COUNTER_PERF_OF_THREADS;
	switch (perf->config) {
	case PERF_COUNT_SW_TASK_CLOCK:
		return PROCESS_COUNTER_CPU_TIME;
	case PERF_COUNT_SW_PAGE_FAULTS:
		return PROCESS_COUNTER_PAGE_FAULTS;
	case PERF_COUNT_SW_PAGE_FAULTS_MIN:
		return PROCESS_COUNTER_MINOR_FAULTS;
	case PERF_COUNT_SW_PAGE_FAULTS_MAJ:
		return PROCESS_COUNTER_MAJOR_FAULTS;
	case PERF_COUNT_SW_CONTEXT_SWITCHES:
		return PROCESS_COUNTER_CONTEXT_SWITCHES;
	default:
		return PROCESS_COUNTER_PERF_OF_THREADS;
	}
}

static void add_known_event_if_countable(const char *event, const char *description, bool is_system)
{
	struct known_event *fresh = &known_events[known_event_count];
	struct perf_event_code perf = {0};
	size_t length = 0;

	if (known_event_count == EVENTS_MAX ||
	    perf_event_find_by_name(event, strlen(event), &perf) != 0)
		return;
	if ((is_system ||
	     perf_event_to_process_counter_source(&perf) == PROCESS_COUNTER_PERF_OF_THREADS) &&
	    !event_is_countable(&perf, is_system))
		return;
	snprintf(fresh->name, sizeof(fresh->name), "%s%s", is_system ? "system_" : "", event);
	for (; fresh->name[length] != '\0'; length++) {
		if (fresh->name[length] == '-')
			fresh->name[length] = '_';
	}
	fresh->is_system_wide = is_system;
	fresh->event = (struct counting_event_info){
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
	known_event_count++;
}

static void fill_known_events(void)
{
	for (unsigned is_system = 0; is_system < 2; is_system++) {
		const char *description, *event;

		for (unsigned i = 0;
		     (event = perf_event_get_name_by_index(i, &description)) != NULL; i++)
			add_known_event_if_countable(event, description, is_system != 0);
		for (unsigned i = 0; i < ARRAY_SIZE(cpu_cache_event_names); i++)
			add_known_event_if_countable(cpu_cache_event_names[i],
						     "accesses of a cache, or misses",
						     is_system != 0);
	}
}

bool process_is_event_block_name(const char *block)
{
	return strcmp(block, "SW") == 0 || strcmp(block, "CORE") == 0 ||
	       strcmp(block, "SYSTEM") == 0;
}

enum counting_status process_for_each_countable_event(
	const struct system_counting_cpu_list *cpus,
	bool (*each)(void *context, const struct counting_event_info *event), void *context)
{
	pthread_once(&known_events_once, fill_known_events);
	for (unsigned i = 0; i < known_event_count; i++) {
		struct counting_event_info event = known_events[i].event;

		if (known_events[i].is_system_wide && cpus->count == 0)
			continue;
		if (known_events[i].is_system_wide)
			event.extents[0].size = cpus->count;
		if (!each(context, &event))
			break;
	}
	return COUNTING_OK;
}

/* "config=0x1a8" and what perf_event_find_by_name() knows: names, rNNN. */
static bool parse_perf_event(const char *event, struct perf_event_code *perf)
{
	char *end;

	if (strncmp(event, "config=", 7) == 0) {
		*perf = (struct perf_event_code){.type = PERF_TYPE_RAW,
						 .config = strtoull(event + 7, &end, 0)};
		return end != event + 7 && *end == '\0';
	}
	return perf_event_find_by_name(event, strlen(event), perf) == 0;
}

enum counting_status
process_find_counter_origin_by_event_name(const struct system_counting_cpu_list *cpus,
					  const char *block, const char *event,
					  struct process_counter_origin *origin)
{
	bool is_system = strcmp(block, "SYSTEM") == 0;
	bool is_software;

	*origin = (struct process_counter_origin){.source = PROCESS_COUNTER_PERF_OF_THREADS};
	if (!process_is_event_block_name(block) || !parse_perf_event(event, &origin->perf_code) ||
	    (is_system && cpus->count == 0))
		return COUNTING_NO_SUCH_EVENT;
	is_software = origin->perf_code.type == PERF_TYPE_SOFTWARE;
	if (!is_system && is_software != (strcmp(block, "SW") == 0))
		return COUNTING_NO_SUCH_EVENT;
	origin->source = is_system ? PROCESS_COUNTER_PERF_OF_CPUS
				   : perf_event_to_process_counter_source(&origin->perf_code);
	if (origin->source >= PROCESS_COUNTER_PERF_OF_THREADS &&
	    !event_is_countable(&origin->perf_code, is_system))
		return COUNTING_NOT_SUPPORTED;
	return COUNTING_OK;
}

static const char *intern_text(const char *text)
{
	struct interned_text *first = atomic_load(&interned_texts), *fresh;

	for (struct interned_text *at = first; at != NULL; at = at->next) {
		if (strcmp(at->text, text) == 0)
			return at->text;
	}
	fresh = malloc(sizeof(*fresh) + strlen(text) + 1);
	if (fresh == NULL)
		return "";
	strcpy(fresh->text, text);
	do {
		fresh->next = first;
	} while (!atomic_compare_exchange_weak(&interned_texts, &first, fresh));
	return fresh->text;
}

struct event_search_state {
	const char *block, *event_name;
	struct counting_event_info *told;
	bool found;
};

static bool match_searched_event(void *context, const struct counting_event_info *event)
{
	struct event_search_state *search = context;

	search->found = strcmp(event->block, search->block) == 0 &&
			strcmp(event->event, search->event_name) == 0;
	if (search->found)
		*search->told = *event;
	return !search->found;
}

enum counting_status process_find_event(const struct system_counting_cpu_list *cpus,
					const char *block, const char *event,
					struct counting_event_info *told)
{
	struct event_search_state search = {block, event, told, false};
	struct process_counter_origin origin;
	enum counting_status status;
	bool is_system = strcmp(block, "SYSTEM") == 0;

	process_for_each_countable_event(cpus, match_searched_event, &search);
	if (search.found)
		return COUNTING_OK;
	status = process_find_counter_origin_by_event_name(cpus, block, event, &origin);
	if (status != COUNTING_OK)
		return status;
	*told = (struct counting_event_info){
		.name = "",
		.block = intern_text(block),
		.event = intern_text(event),
		.description = "",
		.extents_count = 1,
		.extents = {{COUNTING_DIMENSION_INSTANCE, is_system ? cpus->count : 1}},
		.ways = COUNTING_BY_DEVICE | (is_system ? 0 : COUNTING_BY_DISPATCH),
	};
	return COUNTING_OK;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Names of perf events, as perf(1) spells them, with their perf_event_attr type and config.
 *
 *   event := name            from the table below: cpu-cycles, page-faults, …
 *          | cache-operation L1-dcache-load-misses, LLC-loads, …: perf_event_open(2), HW_CACHE
 *          | 'r' hex         a raw event of the CPU: r01c2
 *
 * The PERF_COUNT_ spelling of the kernel's header is taken as well, with or without perf:: in
 * front, since the peer's settings use it. Header-only; no state, no allocation, no libc.
 */
#ifndef KYMO_COMMON_EVENT_NAMES_H
#define KYMO_COMMON_EVENT_NAMES_H

#include <linux/perf_event.h>

#include "common/settings_value.h"

struct event_name {
	const char *name;
	const char *kernel_name; /* behind PERF_COUNT_; NULL for a second spelling */
	uint32_t type;
	uint64_t config;
};

static const struct event_name event_names[] = {
	{"cpu-cycles", "HW_CPU_CYCLES", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"cycles", NULL, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"instructions", "HW_INSTRUCTIONS", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
	{"cache-references", "HW_CACHE_REFERENCES", PERF_TYPE_HARDWARE,
	 PERF_COUNT_HW_CACHE_REFERENCES},
	{"cache-misses", "HW_CACHE_MISSES", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
	{"branch-instructions", "HW_BRANCH_INSTRUCTIONS", PERF_TYPE_HARDWARE,
	 PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{"branches", NULL, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{"branch-misses", "HW_BRANCH_MISSES", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
	{"bus-cycles", "HW_BUS_CYCLES", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES},
	{"stalled-cycles-frontend", "HW_STALLED_CYCLES_FRONTEND", PERF_TYPE_HARDWARE,
	 PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
	{"stalled-cycles-backend", "HW_STALLED_CYCLES_BACKEND", PERF_TYPE_HARDWARE,
	 PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
	{"ref-cycles", "HW_REF_CPU_CYCLES", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES},
	{"cpu-clock", "SW_CPU_CLOCK", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
	{"task-clock", "SW_TASK_CLOCK", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
	{"page-faults", "SW_PAGE_FAULTS", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
	{"faults", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
	{"minor-faults", "SW_PAGE_FAULTS_MIN", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
	{"major-faults", "SW_PAGE_FAULTS_MAJ", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
	{"context-switches", "SW_CONTEXT_SWITCHES", PERF_TYPE_SOFTWARE,
	 PERF_COUNT_SW_CONTEXT_SWITCHES},
	{"cpu-migrations", "SW_CPU_MIGRATIONS", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
	{"alignment-faults", "SW_ALIGNMENT_FAULTS", PERF_TYPE_SOFTWARE,
	 PERF_COUNT_SW_ALIGNMENT_FAULTS},
	{"emulation-faults", "SW_EMULATION_FAULTS", PERF_TYPE_SOFTWARE,
	 PERF_COUNT_SW_EMULATION_FAULTS},
};

enum { EVENT_NAME_COUNT = sizeof(event_names) / sizeof(event_names[0]) };

/* True where `slice` begins with `word` (any case, `-` for `_`); the word is taken off. */
static inline bool event_take(struct setting_slice *slice, const char *word)
{
	struct setting_slice front = setting_slice(word);

	if (slice->length < front.length)
		return false;
	front.text = slice->text;
	if (!setting_slice_is(front, word))
		return false;
	slice->text += front.length;
	slice->length -= front.length;
	return true;
}

static inline bool event_parse_raw(struct setting_slice digits, uint64_t *ret)
{
	uint64_t value = 0;

	if (!digits.length || digits.length > 16)
		return false;
	for (size_t i = 0; i < digits.length; i++) {
		char c = setting_lower(digits.text[i]);

		if (!setting_is_digit(c) && (c < 'a' || c > 'f'))
			return false;
		value = value << 4 | (uint64_t)(setting_is_digit(c) ? c - '0' : c - 'a' + 10);
	}
	*ret = value;
	return true;
}

/* <cache>-<operation>s or <cache>-<operation>-misses. */
static inline bool event_parse_cache(struct setting_slice slice, uint64_t *ret)
{
	static const char *const caches[] = {"L1-dcache", "L1-icache", "LLC", "dTLB",
					     "iTLB",      "branch",    "node"};
	static const char *const operations[] = {"load", "store", "prefetch"};
	bool misses;

	for (unsigned cache = 0; cache < 7; cache++) {
		struct setting_slice rest = slice;

		if (!event_take(&rest, caches[cache]) || !event_take(&rest, "-"))
			continue;
		for (unsigned operation = 0; operation < 3; operation++) {
			struct setting_slice end = rest;

			if (!event_take(&end, operations[operation]))
				continue;
			misses = setting_slice_is(end, "-misses");
			if (!misses && !setting_slice_is(end, "s") && !setting_slice_is(end, "es"))
				continue;
			*ret = cache | operation << 8 | (uint64_t)misses << 16;
			return true;
		}
	}
	return false;
}

/* False when the name is not known. */
static inline bool event_parse(struct setting_slice name, uint32_t *type, uint64_t *config)
{
	bool kernel_spelling;
	struct setting_slice raw;

	name = setting_trim(name);
	event_take(&name, "perf::");
	kernel_spelling = event_take(&name, "PERF_COUNT_");
	for (unsigned i = 0; i < EVENT_NAME_COUNT; i++) {
		const struct event_name *event = &event_names[i];

		if (kernel_spelling
			    ? event->kernel_name && setting_slice_is(name, event->kernel_name)
			    : setting_slice_is(name, event->name)) {
			*type = event->type;
			*config = event->config;
			return true;
		}
	}
	raw = name;
	if (!kernel_spelling && event_parse_cache(name, config)) {
		*type = PERF_TYPE_HW_CACHE;
		return true;
	}
	if (!kernel_spelling && event_take(&raw, "r") && event_parse_raw(raw, config)) {
		*type = PERF_TYPE_RAW;
		return true;
	}
	return false;
}

#endif

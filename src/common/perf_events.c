/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See perf_events.h. Numbers: linux/perf_event.h (perf_event_open(2)).
 */
#include "common/perf_events.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <string.h>

#include "common/array.h"

static const struct {
	const char *name, *alias;
	uint32_t type;
	uint64_t config;
	bool is_clock;
	const char *description;
} generic_perf_events[] = {
	{"task-clock", "PERF_COUNT_SW_TASK_CLOCK", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK,
	 true, "CPU time of the thread"},
	{"cpu-clock", "PERF_COUNT_SW_CPU_CLOCK", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, true,
	 "CPU time by the high-resolution timer"},
	{"page-faults", "PERF_COUNT_SW_PAGE_FAULTS", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS,
	 false, "page faults"},
	{"minor-faults", "PERF_COUNT_SW_PAGE_FAULTS_MIN", PERF_TYPE_SOFTWARE,
	 PERF_COUNT_SW_PAGE_FAULTS_MIN, false, "page faults without I/O"},
	{"major-faults", "PERF_COUNT_SW_PAGE_FAULTS_MAJ", PERF_TYPE_SOFTWARE,
	 PERF_COUNT_SW_PAGE_FAULTS_MAJ, false, "page faults with I/O"},
	{"context-switches", "PERF_COUNT_SW_CONTEXT_SWITCHES", PERF_TYPE_SOFTWARE,
	 PERF_COUNT_SW_CONTEXT_SWITCHES, false, "switches to another thread"},
	{"cpu-migrations", "PERF_COUNT_SW_CPU_MIGRATIONS", PERF_TYPE_SOFTWARE,
	 PERF_COUNT_SW_CPU_MIGRATIONS, false, "moves to another CPU"},
	{"alignment-faults", "PERF_COUNT_SW_ALIGNMENT_FAULTS", PERF_TYPE_SOFTWARE,
	 PERF_COUNT_SW_ALIGNMENT_FAULTS, false, "unaligned accesses that the kernel fixed up"},
	{"emulation-faults", "PERF_COUNT_SW_EMULATION_FAULTS", PERF_TYPE_SOFTWARE,
	 PERF_COUNT_SW_EMULATION_FAULTS, false, "instructions that the kernel emulated"},
	{"cycles", "PERF_COUNT_HW_CPU_CYCLES", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false,
	 "CPU cycles"},
	{"instructions", "PERF_COUNT_HW_INSTRUCTIONS", PERF_TYPE_HARDWARE,
	 PERF_COUNT_HW_INSTRUCTIONS, false, "retired instructions"},
	{"cache-references", "PERF_COUNT_HW_CACHE_REFERENCES", PERF_TYPE_HARDWARE,
	 PERF_COUNT_HW_CACHE_REFERENCES, false, "last-level cache accesses"},
	{"cache-misses", "PERF_COUNT_HW_CACHE_MISSES", PERF_TYPE_HARDWARE,
	 PERF_COUNT_HW_CACHE_MISSES, false, "last-level cache misses"},
	{"branches", "PERF_COUNT_HW_BRANCH_INSTRUCTIONS", PERF_TYPE_HARDWARE,
	 PERF_COUNT_HW_BRANCH_INSTRUCTIONS, false, "retired branches"},
	{"branch-misses", "PERF_COUNT_HW_BRANCH_MISSES", PERF_TYPE_HARDWARE,
	 PERF_COUNT_HW_BRANCH_MISSES, false, "mispredicted branches"},
	{"bus-cycles", "PERF_COUNT_HW_BUS_CYCLES", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES,
	 false, "bus cycles"},
	{"stalled-cycles-frontend", "PERF_COUNT_HW_STALLED_CYCLES_FRONTEND", PERF_TYPE_HARDWARE,
	 PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, false, "cycles without issue"},
	{"stalled-cycles-backend", "PERF_COUNT_HW_STALLED_CYCLES_BACKEND", PERF_TYPE_HARDWARE,
	 PERF_COUNT_HW_STALLED_CYCLES_BACKEND, false, "cycles without retirement"},
	{"ref-cycles", "PERF_COUNT_HW_REF_CPU_CYCLES", PERF_TYPE_HARDWARE,
	 PERF_COUNT_HW_REF_CPU_CYCLES, false, "cycles at the nominal frequency"},
};

static const struct {
	const char *name;
	uint64_t id;
} cache_event_caches[] = {{"L1-dcache", PERF_COUNT_HW_CACHE_L1D},
			  {"L1-icache", PERF_COUNT_HW_CACHE_L1I},
			  {"LLC", PERF_COUNT_HW_CACHE_LL},
			  {"dTLB", PERF_COUNT_HW_CACHE_DTLB},
			  {"iTLB", PERF_COUNT_HW_CACHE_ITLB},
			  {"branch", PERF_COUNT_HW_CACHE_BPU},
			  {"node", PERF_COUNT_HW_CACHE_NODE}},
  cache_event_operations[] = {{"-load", PERF_COUNT_HW_CACHE_OP_READ},
			      {"-store", PERF_COUNT_HW_CACHE_OP_WRITE},
			      {"-prefetch", PERF_COUNT_HW_CACHE_OP_PREFETCH}},
  cache_event_results[] = {{"-misses", PERF_COUNT_HW_CACHE_RESULT_MISS},
			   {"es", PERF_COUNT_HW_CACHE_RESULT_ACCESS}, /* prefetches */
			   {"s", PERF_COUNT_HW_CACHE_RESULT_ACCESS}};

static char to_lower_case(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool equal_ignoring_case(const char *a, const char *b, uint64_t length)
{
	for (uint64_t i = 0; i < length; i++) {
		if (to_lower_case(a[i]) != to_lower_case(b[i]))
			return false;
	}
	return true;
}

static bool equals_word(const char *name, uint64_t length, const char *word)
{
	return strlen(word) == length && equal_ignoring_case(name, word, length);
}

static bool skip_prefix_if_present(const char **name, uint64_t *length, const char *word)
{
	uint64_t size = strlen(word);

	if (*length < size || !equal_ignoring_case(*name, word, size))
		return false;
	*name += size;
	*length -= size;
	return true;
}

static int parse_cache_event(const char *name, uint64_t length, struct perf_event_code *ret)
{
	for (unsigned i = 0; i < ARRAY_SIZE(cache_event_caches); i++) {
		const char *rest = name;
		uint64_t left = length;
		if (!skip_prefix_if_present(&rest, &left, cache_event_caches[i].name))
			continue;
		for (unsigned j = 0; j < ARRAY_SIZE(cache_event_operations); j++) {
			const char *tail = rest;
			uint64_t tail_length = left;
			if (!skip_prefix_if_present(&tail, &tail_length,
						    cache_event_operations[j].name))
				continue;
			for (unsigned k = 0; k < ARRAY_SIZE(cache_event_results); k++) {
				if (!equals_word(tail, tail_length, cache_event_results[k].name))
					continue;
				ret->type = PERF_TYPE_HW_CACHE;
				ret->config = cache_event_caches[i].id |
					      cache_event_operations[j].id << 8 |
					      cache_event_results[k].id << 16;
				return 0;
			}
		}
	}
	return -ENOENT;
}

/* Takes hexadecimal digits off the front; how many. */
static uint64_t read_hex_digits(const char **text, uint64_t *length, uint64_t *ret)
{
	uint64_t taken = 0;

	for (*ret = 0; *length; taken++, ++*text, --*length) {
		char c = to_lower_case(**text);
		int digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
						   : -1;
		if (digit < 0)
			break;
		*ret = *ret << 4 | (unsigned)digit;
	}
	return taken;
}

static int parse_raw_event(const char *name, uint64_t length, struct perf_event_code *ret)
{
	if (length < 2 || length > 17 || name[0] != 'r')
		return -ENOENT;
	name++;
	length--;
	ret->type = PERF_TYPE_RAW;
	read_hex_digits(&name, &length, &ret->config);
	return length ? -ENOENT : 0;
}

int perf_event_find_by_name(const char *name, uint64_t length, struct perf_event_code *ret)
{
	skip_prefix_if_present(&name, &length, "perf::");
	*ret = (struct perf_event_code){0};
	for (unsigned i = 0; i < ARRAY_SIZE(generic_perf_events); i++) {
		if (!equals_word(name, length, generic_perf_events[i].name) &&
		    !equals_word(name, length, generic_perf_events[i].alias))
			continue;
		ret->type = generic_perf_events[i].type;
		ret->config = generic_perf_events[i].config;
		ret->is_clock = generic_perf_events[i].is_clock;
		return 0;
	}
	if (!parse_cache_event(name, length, ret))
		return 0;
	return parse_raw_event(name, length, ret);
}

int perf_event_parse_code(const char *text, uint64_t length, struct perf_event_code *ret)
{
	uint64_t type = 0, *fields[] = {&type, &ret->config, &ret->config1, &ret->config2};
	unsigned count = 0;

	*ret = (struct perf_event_code){0};
	for (;;) {
		uint64_t digits = read_hex_digits(&text, &length, fields[count]);
		if (!digits || digits > 16)
			return -EINVAL;
		if (++count == ARRAY_SIZE(fields) || !length || *text != ':')
			break;
		text++;
		length--;
	}
	if (count < 2 || length || type > UINT32_MAX)
		return -EINVAL;
	ret->type = (uint32_t)type;
	ret->is_clock = type == PERF_TYPE_SOFTWARE && (ret->config == PERF_COUNT_SW_TASK_CLOCK ||
						       ret->config == PERF_COUNT_SW_CPU_CLOCK);
	return 0;
}

const char *perf_event_get_name_by_index(unsigned index, const char **ret_description)
{
	if (index >= ARRAY_SIZE(generic_perf_events))
		return NULL;
	*ret_description = generic_perf_events[index].description;
	return generic_perf_events[index].name;
}

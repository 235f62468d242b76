/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See components.h. Quotients and counts of calls have no verbs: they are computed outside the
 * process from what the others recorded.
 */
#include "regions/components.h"

#include <string.h>
#include <sys/resource.h>

#include "common/leb128.h"
#include "common/settings_value.h"
#include "common/syscalls.h"
#include "common/time_units.h"
#include "core/base/ticks.h"
#include "core/threads.h"
#include "regions/state.h"

#define COMPONENT_NAME_SIZE 128u

static bool thread_usage_needed_flag; /* by a component: of the thread */

static void read_resource_usage(int who, uint64_t *values)
{
	struct rusage usage;

	if (is_calling_thread_in_own_filter() || sys_call2(SYS_getrusage, who, (long)&usage))
		return;
	values[COMPONENT_USAGE_USER_NS] = timeval_to_ns(&usage.ru_utime);
	values[COMPONENT_USAGE_SYSTEM_NS] = timeval_to_ns(&usage.ru_stime);
	values[COMPONENT_USAGE_CPU_NS] =
		values[COMPONENT_USAGE_USER_NS] + values[COMPONENT_USAGE_SYSTEM_NS];
	values[COMPONENT_USAGE_PEAK_RSS] = (uint64_t)usage.ru_maxrss * 1024;
	values[COMPONENT_USAGE_MINOR_FAULTS] = (uint64_t)usage.ru_minflt;
	values[COMPONENT_USAGE_MAJOR_FAULTS] = (uint64_t)usage.ru_majflt;
	values[COMPONENT_USAGE_VOLUNTARY_SWITCHES] = (uint64_t)usage.ru_nvcsw;
	values[COMPONENT_USAGE_INVOLUNTARY_SWITCHES] = (uint64_t)usage.ru_nivcsw;
}

/* Has the source been read at this moment? Notes that it has now. */
static bool mark_source_read_if_first(struct component_readings_at_moment *moment,
				      enum component_source source)
{
	bool first = !(moment->read_source_bits & 1u << source);

	moment->read_source_bits |= 1u << source;
	return first;
}

/* Waiting for the probe makes the thread give way: what RUSAGE_THREAD counts of it is kymo's own.
 */
static void read_by_probe(struct probe_reading_request *request, uint32_t what)
{
	uint64_t before[8] = {0}, after[8] = {0};

	if (thread_usage_needed_flag)
		read_resource_usage(RUSAGE_THREAD, before);
	if (what & PROBE_READ_EVENTS)
		probe_read_thread_event_counts(request);
	else
		probe_request_and_wait(request, what);
	if (!thread_usage_needed_flag)
		return;
	read_resource_usage(RUSAGE_THREAD, after);
	for (int i = COMPONENT_USAGE_MINOR_FAULTS; i <= COMPONENT_USAGE_INVOLUNTARY_SWITCHES; i++)
		request->usage[i] += after[i] - before[i];
}

static uint64_t read_component_value(const struct bundle_component *self,
				     struct component_readings_at_moment *moment)
{
	enum component_source source =
		self->description ? self->description->source : COMPONENT_SOURCE_PERF_EVENT;
	struct probe_reading_request *request = &moment->thread->request;

	switch (source) {
	case COMPONENT_SOURCE_TICKS:
		return moment->ticks;
	case COMPONENT_SOURCE_CLOCK:
		return read_posix_clock_ns((int)self->source_field_index);
	case COMPONENT_SOURCE_THREAD_USAGE:
		if (mark_source_read_if_first(moment, source)) {
			read_resource_usage(RUSAGE_THREAD, moment->thread_resource_usage);
			for (int i = COMPONENT_USAGE_MINOR_FAULTS;
			     i <= COMPONENT_USAGE_INVOLUNTARY_SWITCHES; i++)
				moment->thread_resource_usage[i] -= request->usage[i];
		}
		return moment->thread_resource_usage[self->source_field_index];
	case COMPONENT_SOURCE_PROCESS_USAGE:
		if (mark_source_read_if_first(moment, source))
			read_resource_usage(RUSAGE_SELF, moment->process_resource_usage);
		return moment->process_resource_usage[self->source_field_index];
	case COMPONENT_SOURCE_MEMORY:
		if (mark_source_read_if_first(moment, source))
			read_by_probe(request, PROBE_READ_MEMORY);
		return request->memory_bytes[self->source_field_index];
	case COMPONENT_SOURCE_IO:
		if (mark_source_read_if_first(moment, source))
			read_by_probe(request, PROBE_READ_IO);
		return request->io_bytes[self->source_field_index];
	case COMPONENT_SOURCE_PERF_EVENT:
		if (mark_source_read_if_first(moment, source))
			read_by_probe(request, PROBE_READ_EVENTS);
		return request->events[self->source_field_index];
	default:
		return 0;
	}
}

static void read_phase_component_start_value(const struct bundle_component *self, uint64_t *data,
					     struct component_readings_at_moment *moment)
{
	*data = read_component_value(self, moment);
}

/* Clocks of the kernel are not always monotonic to the last digit. */
static void compute_phase_component_difference(const struct bundle_component *self, uint64_t *data,
					       struct component_readings_at_moment *moment)
{
	uint64_t now = read_component_value(self, moment);

	*data = now > *data ? now - *data : 0;
}

static void read_level_component_value(const struct bundle_component *self, uint64_t *data,
				       struct component_readings_at_moment *moment)
{
	*data = read_component_value(self, moment);
}

static struct bundle_component build_component(const struct component_description *description)
{
	struct bundle_component component = {.name = description->name,
					     .description = description,
					     .source_field_index = description->field};

	if (description->kind == SPOOL_COMPONENT_PHASE) {
		component.start = read_phase_component_start_value;
		component.stop = compute_phase_component_difference;
	} else if (description->kind == SPOOL_COMPONENT_LEVEL) {
		component.stop = read_level_component_value;
		component.sample = read_level_component_value;
	}
	return component;
}

static int find_component_in_bundle(const struct component_bundle *bundle, const char *name,
				    size_t length)
{
	for (uint32_t i = 0; i < bundle->count; i++) {
		if (strlen(bundle->components[i].name) == length &&
		    !memcmp(bundle->components[i].name, name, length))
			return (int)i;
	}
	return -1;
}

static void add_component(struct component_bundle *bundle,
			  const struct component_description *description)
{
	struct bundle_component component = build_component(description);

	if (find_component_in_bundle(bundle, description->name, strlen(description->name)) >= 0)
		return;
	if (description->source == COMPONENT_SOURCE_QUOTIENT) {
		add_component(bundle, &component_table[description->field >> 8]);
		add_component(bundle, &component_table[description->field & 255]);
	}
	component_bundle_add(bundle, &component);
}

/* What is not in the table is a perf event; the command has checked the names. */
static void add_perf_event_component(struct component_bundle *bundle, struct text_slice name,
				     uint32_t *events)
{
	static char names[PERF_EVENT_COMPONENTS_PER_PROFILE_MAX][COMPONENT_NAME_SIZE];
	struct bundle_component component = {.start = read_phase_component_start_value,
					     .stop = compute_phase_component_difference};
	size_t length = name.length < COMPONENT_NAME_SIZE ? name.length : COMPONENT_NAME_SIZE - 1;

	if (*events == PERF_EVENT_COMPONENTS_PER_PROFILE_MAX ||
	    find_component_in_bundle(bundle, name.text, name.length) >= 0)
		return;
	memcpy(names[*events], name.text, length);
	names[*events][length] = 0;
	component.name = names[*events];
	component.source_field_index = (*events)++;
	component_bundle_add(bundle, &component);
}

static const struct component_description *find_component_description(struct text_slice name)
{
	for (uint32_t i = 0; i < COMPONENT_ID_COUNT; i++) {
		if (setting_slice_equals_word(name, component_table[i].name))
			return &component_table[i];
	}
	return NULL;
}

void components_fill_bundle(struct component_bundle *bundle, const char *list, bool *ret_probes)
{
	struct text_slice rest = setting_slice_from_text(list), name;
	uint32_t events = 0;

	memset(bundle, 0, sizeof(*bundle));
	while (setting_next_list_word(&rest, &name)) {
		const struct component_description *description = find_component_description(name);

		if (description)
			add_component(bundle, description);
		else
			add_perf_event_component(bundle, name, &events);
	}
	*ret_probes = events > 0;
	thread_usage_needed_flag = false;
	for (uint32_t i = 0; i < bundle->count; i++) {
		const struct component_description *description = bundle->components[i].description;
		thread_usage_needed_flag |=
			description && description->source == COMPONENT_SOURCE_THREAD_USAGE;
		if (description && (description->source == COMPONENT_SOURCE_MEMORY ||
				    description->source == COMPONENT_SOURCE_IO))
			*ret_probes = true;
	}
}

static uint8_t *encode_text_with_length(uint8_t *at, const char *text)
{
	size_t length = strlen(text);

	at = leb128_write(at, length);
	memcpy(at, text, length);
	return at + length;
}

static uint32_t encode_component_scale_or_quotient(const struct component_bundle *bundle,
						   const struct component_description *description)
{
	const char *of, *by;

	if (description->source == COMPONENT_SOURCE_TICKS)
		return 0;
	if (description->source != COMPONENT_SOURCE_QUOTIENT)
		return 1;
	of = component_table[description->field >> 8].name;
	by = component_table[description->field & 255].name;
	return (uint32_t)find_component_in_bundle(bundle, of, strlen(of)) << 8 |
	       (uint32_t)find_component_in_bundle(bundle, by, strlen(by));
}

uint32_t components_encode_descriptions(const struct component_bundle *bundle, uint8_t *record,
					uint32_t size)
{
	static const struct component_description event = {.unit = "count",
							   .help = "perf event",
							   .kind = SPOOL_COMPONENT_PHASE,
							   .source = COMPONENT_SOURCE_PERF_EVENT};
	uint8_t *at = leb128_write(record, bundle->count);

	for (uint32_t i = 0; i < bundle->count; i++) {
		const struct bundle_component *component = &bundle->components[i];
		const struct component_description *description =
			component->description ? component->description : &event;

		if ((size_t)(at - record) + 3 * COMPONENT_NAME_SIZE > size)
			return 0;
		at = encode_text_with_length(at, component->name);
		at = encode_text_with_length(at, description->unit);
		at = encode_text_with_length(at, description->help);
		at = leb128_write(at, description->kind);
		at = leb128_write(at, encode_component_scale_or_quotient(bundle, description));
	}
	return (uint32_t)(at - record);
}

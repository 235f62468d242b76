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
#include "core/ticks.h"
#include "regions/state.h"

#define NAME_SIZE 128u

static bool usage_wanted; /* by a component: of the thread */

static uint64_t nanoseconds(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_usec * 1000u;
}

static void read_usage(int who, uint64_t *values)
{
	struct rusage usage;

	if (sys_call2(SYS_getrusage, who, (long)&usage))
		return;
	values[COMPONENT_USAGE_USER_NS] = nanoseconds(&usage.ru_utime);
	values[COMPONENT_USAGE_SYSTEM_NS] = nanoseconds(&usage.ru_stime);
	values[COMPONENT_USAGE_CPU_NS] =
		values[COMPONENT_USAGE_USER_NS] + values[COMPONENT_USAGE_SYSTEM_NS];
	values[COMPONENT_USAGE_PEAK_RSS] = (uint64_t)usage.ru_maxrss * 1024;
	values[COMPONENT_USAGE_MINOR] = (uint64_t)usage.ru_minflt;
	values[COMPONENT_USAGE_MAJOR] = (uint64_t)usage.ru_majflt;
	values[COMPONENT_USAGE_VOLUNTARY] = (uint64_t)usage.ru_nvcsw;
	values[COMPONENT_USAGE_INVOLUNTARY] = (uint64_t)usage.ru_nivcsw;
}

/* Has the source been read at this moment? Notes that it has now. */
static bool first_reading(struct moment *moment, enum component_source source)
{
	bool first = !(moment->have & 1u << source);

	moment->have |= 1u << source;
	return first;
}

/* Waiting for the probe makes the thread give way: what RUSAGE_THREAD counts of it is kymo's own.
 */
static void ask(struct probe_request *request, uint32_t what)
{
	uint64_t before[8] = {0}, after[8] = {0};

	if (usage_wanted)
		read_usage(RUSAGE_THREAD, before);
	if (what & PROBE_EVENTS)
		probe_read_events(request);
	else
		probe_read(request, what);
	if (!usage_wanted)
		return;
	read_usage(RUSAGE_THREAD, after);
	for (int i = COMPONENT_USAGE_MINOR; i <= COMPONENT_USAGE_INVOLUNTARY; i++)
		request->usage[i] += after[i] - before[i];
}

static uint64_t read_value(const struct component *self, struct moment *moment)
{
	enum component_source source =
		self->description ? self->description->source : COMPONENT_EVENT;
	struct probe_request *request = &moment->thread->request;

	switch (source) {
	case COMPONENT_TICKS:
		return moment->ticks;
	case COMPONENT_CLOCK:
		return ticks_clock_ns((int)self->field);
	case COMPONENT_THREAD_USAGE:
		if (first_reading(moment, source)) {
			read_usage(RUSAGE_THREAD, moment->thread_usage);
			for (int i = COMPONENT_USAGE_MINOR; i <= COMPONENT_USAGE_INVOLUNTARY; i++)
				moment->thread_usage[i] -= request->usage[i];
		}
		return moment->thread_usage[self->field];
	case COMPONENT_PROCESS_USAGE:
		if (first_reading(moment, source))
			read_usage(RUSAGE_SELF, moment->process_usage);
		return moment->process_usage[self->field];
	case COMPONENT_MEMORY:
		if (first_reading(moment, source))
			ask(request, PROBE_MEMORY);
		return request->memory[self->field];
	case COMPONENT_IO:
		if (first_reading(moment, source))
			ask(request, PROBE_IO);
		return request->io[self->field];
	case COMPONENT_EVENT:
		if (first_reading(moment, source))
			ask(request, PROBE_EVENTS);
		return request->events[self->field];
	default:
		return 0;
	}
}

static void phase_start(const struct component *self, uint64_t *data, struct moment *moment)
{
	*data = read_value(self, moment);
}

/* Clocks of the kernel are not always monotonic to the last digit. */
static void phase_stop(const struct component *self, uint64_t *data, struct moment *moment)
{
	uint64_t now = read_value(self, moment);

	*data = now > *data ? now - *data : 0;
}

static void level_sample(const struct component *self, uint64_t *data, struct moment *moment)
{
	*data = read_value(self, moment);
}

static struct component make(const struct component_description *description)
{
	struct component component = {
		.name = description->name, .description = description, .field = description->field};

	if (description->kind == SPOOL_COMPONENT_PHASE) {
		component.start = phase_start;
		component.stop = phase_stop;
	} else if (description->kind == SPOOL_COMPONENT_LEVEL) {
		component.stop = level_sample;
		component.sample = level_sample;
	}
	return component;
}

static int find(const struct bundle *bundle, const char *name, size_t length)
{
	for (uint32_t i = 0; i < bundle->count; i++) {
		if (strlen(bundle->components[i].name) == length &&
		    !memcmp(bundle->components[i].name, name, length))
			return (int)i;
	}
	return -1;
}

static void add(struct bundle *bundle, const struct component_description *description)
{
	struct component component = make(description);

	if (find(bundle, description->name, strlen(description->name)) >= 0)
		return;
	if (description->source == COMPONENT_QUOTIENT) {
		add(bundle, &component_table[description->field >> 8]);
		add(bundle, &component_table[description->field & 255]);
	}
	bundle_add(bundle, &component);
}

/* What is not in the table is a perf event; the command has checked the names. */
static void add_event(struct bundle *bundle, struct setting_slice name, uint32_t *events)
{
	static char names[COMPONENT_EVENTS_MAX][NAME_SIZE];
	struct component component = {.start = phase_start, .stop = phase_stop};
	size_t length = name.length < NAME_SIZE ? name.length : NAME_SIZE - 1;

	if (*events == COMPONENT_EVENTS_MAX || find(bundle, name.text, name.length) >= 0)
		return;
	memcpy(names[*events], name.text, length);
	names[*events][length] = 0;
	component.name = names[*events];
	component.field = (*events)++;
	bundle_add(bundle, &component);
}

static const struct component_description *find_description(struct setting_slice name)
{
	for (uint32_t i = 0; i < COMPONENT_ID_COUNT; i++) {
		if (setting_slice_is(name, component_table[i].name))
			return &component_table[i];
	}
	return NULL;
}

void components_choose(struct bundle *bundle, const char *list, bool *ret_probes)
{
	struct setting_slice rest = setting_slice(list), name;
	uint32_t events = 0;

	memset(bundle, 0, sizeof(*bundle));
	while (setting_list_next(&rest, &name)) {
		const struct component_description *description = find_description(name);

		if (description)
			add(bundle, description);
		else
			add_event(bundle, name, &events);
	}
	*ret_probes = events > 0;
	usage_wanted = false;
	for (uint32_t i = 0; i < bundle->count; i++) {
		const struct component_description *description = bundle->components[i].description;
		usage_wanted |= description && description->source == COMPONENT_THREAD_USAGE;
		if (description && (description->source == COMPONENT_MEMORY ||
				    description->source == COMPONENT_IO))
			*ret_probes = true;
	}
}

static uint8_t *put(uint8_t *at, const char *text)
{
	size_t length = strlen(text);

	at = leb128_put(at, length);
	memcpy(at, text, length);
	return at + length;
}

static uint32_t scale(const struct bundle *bundle, const struct component_description *description)
{
	const char *of, *by;

	if (description->source == COMPONENT_TICKS)
		return 0;
	if (description->source != COMPONENT_QUOTIENT)
		return 1;
	of = component_table[description->field >> 8].name;
	by = component_table[description->field & 255].name;
	return (uint32_t)find(bundle, of, strlen(of)) << 8 | (uint32_t)find(bundle, by, strlen(by));
}

uint32_t components_describe(const struct bundle *bundle, uint8_t *record, uint32_t size)
{
	static const struct component_description event = {.unit = "count",
							   .help = "perf event",
							   .kind = SPOOL_COMPONENT_PHASE,
							   .source = COMPONENT_EVENT};
	uint8_t *at = leb128_put(record, bundle->count);

	for (uint32_t i = 0; i < bundle->count; i++) {
		const struct component *component = &bundle->components[i];
		const struct component_description *description =
			component->description ? component->description : &event;

		if ((size_t)(at - record) + 3 * NAME_SIZE > size)
			return 0;
		at = put(at, component->name);
		at = put(at, description->unit);
		at = put(at, description->help);
		at = leb128_put(at, description->kind);
		at = leb128_put(at, scale(bundle, description));
	}
	return (uint32_t)(at - record);
}

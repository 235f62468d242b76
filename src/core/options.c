/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Environment to options, through the settings table.
 */
#include "core/options.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#include "common/settings.h"
#include "common/settings_periods.h"
#include "common/settings_value.h"

#define SECOND_NS 1000000000.0

static const char *find_variable(char *const *environment, const char *prefix, const char *name)
{
	size_t prefix_length = strlen(prefix), name_length = strlen(name);

	for (; environment && *environment; environment++) {
		const char *entry = *environment;
		if (!strncmp(entry, prefix, prefix_length) &&
		    !strncmp(entry + prefix_length, name, name_length) &&
		    entry[prefix_length + name_length] == '=')
			return entry + prefix_length + name_length + 1;
	}
	return NULL;
}

/* The text that counts for a setting: environment, aliases, what it inherits from, default. */
static const char *setting_text(char *const *environment, enum setting_id id)
{
	const struct setting *setting = &settings_table[id];
	const char *text = find_variable(environment, "KYMO_", setting->name);

	if (!text && setting->alias)
		text = find_variable(environment, "ROCPROFSYS_", setting->name);
	if (!text && setting->alias)
		text = find_variable(environment, "OMNITRACE_", setting->name);
	if (text && *text)
		return text;
	for (unsigned i = 0; setting->inherits && i < SETTING_COUNT; i++) {
		if (!strcmp(settings_table[i].name, setting->inherits))
			return setting_text(environment, (enum setting_id)i);
	}
	return setting->default_value;
}

static bool get_bool(char *const *environment, enum setting_id id)
{
	bool value = false;

	if (setting_parse_bool(setting_slice(setting_text(environment, id)), &value))
		setting_parse_bool(setting_slice(settings_table[id].default_value), &value);
	return value;
}

/* Within the table's bounds: more than the most is the most, less than the least counts as unset.
 */
static double get_number(char *const *environment, enum setting_id id, double otherwise)
{
	const struct setting *setting = &settings_table[id];
	bool bounded = setting->minimum != 0 || setting->maximum != 0;
	double value;

	if (setting_parse_number(setting_slice(setting_text(environment, id)), &value) ||
	    (bounded && !(value >= setting->minimum)))
		return otherwise;
	return bounded && value > setting->maximum ? setting->maximum : value;
}

static int64_t get_duration(char *const *environment, enum setting_id id)
{
	int64_t value;

	return setting_parse_duration(setting_slice(setting_text(environment, id)), &value) ? 0
											    : value;
}

static void add_range(uint64_t first, uint64_t last, void *context)
{
	struct options_tids *tids = context;

	if (tids->count < OPTIONS_TID_RANGES) {
		tids->range[tids->count].first = first;
		tids->range[tids->count++].last = last;
	}
}

static void read_sampler(struct options_sampler *sampler, char *const *environment,
			 enum setting_id frequency, enum setting_id delay, enum setting_id duration,
			 enum setting_id tids)
{
	sampler->period = (uint64_t)(SECOND_NS / get_number(environment, frequency, 1000));
	sampler->window =
		(struct options_period){.clock = CLOCK_MONOTONIC,
					.delay_ns = get_duration(environment, delay),
					.duration_ns = get_duration(environment, duration),
					.cycles = 1};
	if (setting_parse_tids(setting_slice(setting_text(environment, tids)), add_range,
			       &sampler->tids))
		sampler->tids.count = 0;
}

static void read_periods(struct options *options, char *const *environment)
{
	struct setting_slice rest = setting_slice(setting_text(environment, SETTING_TRACE_PERIODS));
	struct setting_period defaults = {.clock = SETTING_CLOCK_REALTIME, .cycles = 1};
	struct setting_slice spec;
	struct setting_period period;
	enum setting_error error;
	int64_t delay = get_duration(environment, SETTING_TRACE_DELAY);
	int64_t duration = get_duration(environment, SETTING_TRACE_DURATION);

	setting_parse_clock(setting_slice(setting_text(environment, SETTING_TRACE_PERIOD_CLOCK_ID)),
			    &defaults.clock);
	if (delay > 0 || duration > 0) {
		struct options_period *first = &options->periods[options->period_count++];
		*first = (struct options_period){.clock = (int)defaults.clock,
						 .delay_ns = delay,
						 .duration_ns = duration,
						 .cycles = 1};
	}
	defaults.delay_ns = delay;
	defaults.duration_ns = duration;
	while (options->period_count < OPTIONS_PERIODS &&
	       setting_period_next(&rest, &defaults, &spec, &period, &error)) {
		if (error)
			continue;
		options->periods[options->period_count++] =
			(struct options_period){.clock = (int)period.clock,
						.delay_ns = period.delay_ns,
						.duration_ns = period.duration_ns,
						.cycles = period.cycles};
	}
}

static void copy_path(char *to, const char *from)
{
	size_t length = from ? strlen(from) : 0;

	if (length >= OPTIONS_PATH_SIZE)
		length = 0;
	memcpy(to, from ? from : "", length);
	to[length] = 0;
}

/* The user's cache directory by the XDG base directory specification. */
static void read_cache_directory(struct options *options, char *const *environment)
{
	const char *given = setting_text(environment, SETTING_UNWIND_CACHE);
	const char *base = find_variable(environment, "XDG_CACHE_HOME", ""), *middle = "";

	options->cache_directory[0] = 0;
	if (!strcmp(given, "none"))
		return;
	if (*given) {
		copy_path(options->cache_directory, given);
		return;
	}
	if (!base || base[0] != '/') {
		base = find_variable(environment, "HOME", "");
		middle = "/.cache";
	}
	if (!base || base[0] != '/' || strlen(base) + 32 >= OPTIONS_PATH_SIZE)
		return;
	copy_path(options->cache_directory, base);
	strcat(options->cache_directory, middle);
	strcat(options->cache_directory, "/kymo/unwind");
}

static int read_signal(const char *text)
{
	static const struct {
		const char *name;
		int number;
	} signals[] = {{"SIGURG", SIGURG},   {"SIGPROF", SIGPROF}, {"SIGIO", SIGIO},
		       {"SIGUSR1", SIGUSR1}, {"SIGUSR2", SIGUSR2}, {"SIGVTALRM", SIGVTALRM}};

	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		if (setting_slice_is(setting_slice(text), signals[i].name) ||
		    setting_slice_is(setting_slice(text), signals[i].name + 3))
			return signals[i].number;
	}
	return 0;
}

static void read_samplers(struct options *options, char *const *environment)
{
	const char *cputime = setting_text(environment, SETTING_SAMPLING_CPUTIME);
	bool cpu = false;

	read_sampler(&options->cpu, environment, SETTING_SAMPLING_CPUTIME_FREQ,
		     SETTING_SAMPLING_CPUTIME_DELAY, SETTING_SAMPLING_CPUTIME_DURATION,
		     SETTING_SAMPLING_CPUTIME_TIDS);
	read_sampler(&options->wall, environment, SETTING_SAMPLING_REALTIME_FREQ,
		     SETTING_SAMPLING_REALTIME_DELAY, SETTING_SAMPLING_REALTIME_DURATION,
		     SETTING_SAMPLING_REALTIME_TIDS);
	read_sampler(&options->overflow, environment, SETTING_SAMPLING_OVERFLOW_FREQ,
		     SETTING_SAMPLING_DELAY, SETTING_SAMPLING_DURATION,
		     SETTING_SAMPLING_OVERFLOW_TIDS);
	options->overflow.period =
		(uint64_t)get_number(environment, SETTING_SAMPLING_OVERFLOW_FREQ, 1000);
	options->wall.on = get_bool(environment, SETTING_SAMPLING_REALTIME);
	options->overflow.on = get_bool(environment, SETTING_SAMPLING_OVERFLOW);
	if (setting_parse_bool(setting_slice(cputime), &cpu))
		cpu = !options->wall.on && !options->overflow.on; /* auto */
	options->cpu.on = cpu;
	if (!get_bool(environment, SETTING_USE_SAMPLING))
		options->cpu.on = options->wall.on = options->overflow.on = false;
}

static void read_regions(struct options_regions *regions, char *const *environment)
{
	regions->trace = get_bool(environment, SETTING_TRACE);
	regions->profile = get_bool(environment, SETTING_PROFILE);
	regions->start = get_bool(environment, SETTING_INIT_ENABLED);
	regions->components = setting_text(environment, SETTING_COMPONENTS);
	regions->component_events = setting_text(environment, SETTING_COMPONENT_EVENTS);
	regions->selected = setting_text(environment, SETTING_SELECTED_REGIONS);
	regions->enable_categories = setting_text(environment, SETTING_ENABLE_CATEGORIES);
	regions->disable_categories = setting_text(environment, SETTING_DISABLE_CATEGORIES);
	regions->max_depth = (uint32_t)get_number(environment, SETTING_MAX_DEPTH, 65535);
	regions->profile_nodes =
		(uint32_t)get_number(environment, SETTING_PROFILE_MAX_NODES, 65536);
	regions->profile_threads =
		(uint32_t)get_number(environment, SETTING_PROFILE_MAX_THREADS, 1024);
	regions->throttle_count = (uint64_t)get_number(environment, SETTING_THROTTLE_COUNT, 0);
	regions->throttle_ns = (uint64_t)get_number(environment, SETTING_THROTTLE_VALUE, 10000);
	regions->control_signal = read_signal(setting_text(environment, SETTING_CONTROL_SIGNAL));
}

static void read_wrappers(struct options_wrappers *wrappers, char *const *environment)
{
	const struct {
		bool *to;
		enum setting_id id;
	} switches[] = {{&wrappers->on, SETTING_USE_WRAPPERS},
			{&wrappers->threads, SETTING_TRACE_THREADS},
			{&wrappers->locks, SETTING_TRACE_THREAD_LOCKS},
			{&wrappers->rw_locks, SETTING_TRACE_THREAD_RW_LOCKS},
			{&wrappers->spin_locks, SETTING_TRACE_THREAD_SPIN_LOCKS},
			{&wrappers->barriers, SETTING_TRACE_THREAD_BARRIERS},
			{&wrappers->join, SETTING_TRACE_THREAD_JOIN},
			{&wrappers->conditions, SETTING_TRACE_THREAD_CONDITIONS},
			{&wrappers->processes, SETTING_TRACE_PROCESSES},
			{&wrappers->sleep, SETTING_TRACE_SLEEP},
			{&wrappers->io, SETTING_TRACE_IO},
			{&wrappers->loader, SETTING_TRACE_LOADER},
			{&wrappers->memory, SETTING_TRACE_MEMORY},
			{&wrappers->mpi, SETTING_USE_MPIP},
			{&wrappers->nccl, SETTING_USE_NCCL},
			{&wrappers->ompt, SETTING_USE_OMPT},
			{&wrappers->kokkos, SETTING_USE_KOKKOSP},
			{&wrappers->kokkos_deep_copy, SETTING_KOKKOSP_DEEP_COPY}};

	for (unsigned i = 0; i < sizeof(switches) / sizeof(switches[0]); i++)
		*switches[i].to = get_bool(environment, switches[i].id);
	wrappers->memory_site_depth =
		(uint32_t)get_number(environment, SETTING_MEMORY_SITE_DEPTH, 8);
	wrappers->kokkos_name_length =
		(uint32_t)get_number(environment, SETTING_KOKKOSP_NAME_LENGTH_MAX, 0);
	wrappers->wrap = setting_text(environment, SETTING_WRAP);
	wrappers->mpi_permit = setting_text(environment, SETTING_MPIP_PERMIT_LIST);
	wrappers->mpi_reject = setting_text(environment, SETTING_MPIP_REJECT_LIST);
	wrappers->kokkos_prefix = setting_text(environment, SETTING_KOKKOSP_PREFIX);
}

/* "rate,ns" */
static void read_demotion(struct options_instrument *instrument, const char *text)
{
	struct setting_slice rest = setting_slice(text), item;
	double rate, ns;

	if (!setting_list_next(&rest, &item) || setting_parse_number(item, &rate) ||
	    !setting_list_next(&rest, &item) || setting_parse_number(item, &ns))
		return;
	instrument->demote_rate = rate > 0 ? (uint64_t)rate : 0;
	instrument->demote_ns = ns > 0 ? (uint64_t)ns : 0;
}

static void read_instrument(struct options_instrument *instrument, char *const *environment)
{
	instrument->socket = setting_text(environment, SETTING_INSTRUMENT);
	instrument->arguments = setting_text(environment, SETTING_INSTRUMENT_ARGUMENTS);
	read_demotion(instrument, setting_text(environment, SETTING_INSTRUMENT_DEMOTE));
}

void options_read(struct options *options, char *const *environment)
{
	const char *source = setting_text(environment, SETTING_SAMPLING_SOURCE);

	memset(options, 0, sizeof(*options));
	options->enabled = get_bool(environment, SETTING_ENABLED);
	options->follow_children = get_bool(environment, SETTING_FOLLOW_CHILDREN);
	options->metrics = get_bool(environment, SETTING_SAMPLING_METRICS);
	options->jitter = get_bool(environment, SETTING_SAMPLING_JITTER);
	options->ring = get_bool(environment, SETTING_SPOOL_RING);
	options->process_metrics = get_bool(environment, SETTING_USE_PROCESS_SAMPLING);
	options->cpu_frequency = get_bool(environment, SETTING_CPU_FREQ_ENABLED);
	options->verbose = (int)get_number(environment, SETTING_VERBOSE, 0);
	options->source = setting_slice_is(setting_slice(source), "perf")    ? OPTIONS_SOURCE_PERF
			  : setting_slice_is(setting_slice(source), "timer") ? OPTIONS_SOURCE_TIMER
									     : OPTIONS_SOURCE_AUTO;
	options->signal = read_signal(setting_text(environment, SETTING_SAMPLING_SIGNAL));
	options->max_depth = (uint32_t)get_number(environment, SETTING_SAMPLING_MAX_DEPTH, 512);
	options->threads_per_allocator =
		(uint32_t)get_number(environment, SETTING_SAMPLING_ALLOCATOR_SIZE, 8);
	options->overhead_limit = get_number(environment, SETTING_SAMPLING_OVERHEAD_LIMIT, 5) / 100;
	options->process_period_ns =
		(uint64_t)(SECOND_NS / get_number(environment, SETTING_PROCESS_SAMPLING_FREQ, 10));
	options->process_delay_ns = get_duration(environment, SETTING_PROCESS_SAMPLING_DELAY);
	options->process_duration_ns = get_duration(environment, SETTING_PROCESS_SAMPLING_DURATION);
	setting_parse_size(setting_slice(setting_text(environment, SETTING_SPOOL_LIMIT)),
			   &options->spool_limit);
	read_samplers(options, environment);
	read_periods(options, environment);
	read_regions(&options->regions, environment);
	read_wrappers(&options->wrappers, environment);
	read_instrument(&options->instrument, environment);
	options->overflow_event = setting_text(environment, SETTING_SAMPLING_OVERFLOW_EVENT);
	options->overflow_code = setting_text(environment, SETTING_SAMPLING_OVERFLOW_CODE);
	options->counters = setting_text(environment, SETTING_SAMPLING_COUNTERS);
	options->counter_events = setting_text(environment, SETTING_SAMPLING_COUNTER_EVENTS);
	copy_path(options->spool_directory, find_variable(environment, "KYMO_", "SPOOL_DIRECTORY"));
	read_cache_directory(options, environment);
}

bool options_tids_allow(const struct options_tids *tids, uint64_t sequent_id)
{
	for (uint32_t i = 0; i < tids->count; i++) {
		if (sequent_id >= tids->range[i].first && sequent_id <= tids->range[i].last)
			return true;
	}
	return tids->count == 0;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Environment to options, through the settings table.
 */
#include "core/base/options.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#include "common/array.h"
#include "common/settings.h"
#include "common/settings_periods.h"
#include "common/settings_value.h"

#define SECOND_NS 1000000000.0

#define VARIABLES_OF_INTEREST_MAX 255

static const char *find_environment_variable(char *const *environment, const char *prefix,
					     const char *name)
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

/* Variables that can be settings, and the two that say where a user's caches are. */
static bool is_variable_of_interest(const char *entry)
{
	static const char *const beginnings[] = {"KYMO_", "ROCPROFSYS_", "OMNITRACE_",
						 "HOME=", "XDG_CACHE_HOME="};

	for (unsigned i = 0; i < ARRAY_SIZE(beginnings); i++) {
		if (!strncmp(entry, beginnings[i], strlen(beginnings[i])))
			return true;
	}
	return false;
}

/* Each of some 200 settings is looked for: only among what can be one. False: too many. */
static bool select_variables_of_interest(char *const *environment,
					 char *selected[VARIABLES_OF_INTEREST_MAX + 1])
{
	unsigned count = 0;

	for (; environment && *environment; environment++) {
		if (!is_variable_of_interest(*environment))
			continue;
		if (count == VARIABLES_OF_INTEREST_MAX)
			return false;
		selected[count++] = *environment;
	}
	selected[count] = NULL;
	return true;
}

static bool is_setting_given(char *const *environment, enum setting_id id)
{
	return find_environment_variable(environment, "KYMO_", settings_table[id].name) != NULL;
}

/* The text that counts for a setting: environment, aliases, what it inherits from, default. */
static const char *find_setting_text_or_default(char *const *environment, enum setting_id id)
{
	const struct setting *setting = &settings_table[id];
	const char *text = find_environment_variable(environment, "KYMO_", setting->name);

	if (!text && setting->has_peer_aliases)
		text = find_environment_variable(environment, "ROCPROFSYS_", setting->name);
	if (!text && setting->has_peer_aliases)
		text = find_environment_variable(environment, "OMNITRACE_", setting->name);
	if (text && *text)
		return text;
	for (unsigned i = 0; setting->fallback_setting && i < SETTING_COUNT; i++) {
		if (!strcmp(settings_table[i].name, setting->fallback_setting))
			return find_setting_text_or_default(environment, (enum setting_id)i);
	}
	return setting->default_value;
}

static bool read_setting_bool(char *const *environment, enum setting_id id)
{
	bool value = false;

	if (setting_parse_bool(
		    setting_slice_from_text(find_setting_text_or_default(environment, id)), &value))
		setting_parse_bool(setting_slice_from_text(settings_table[id].default_value),
				   &value);
	return value;
}

static uint64_t read_setting_size(char *const *environment, enum setting_id id)
{
	uint64_t bytes = 0;

	if (setting_parse_size(
		    setting_slice_from_text(find_setting_text_or_default(environment, id)), &bytes))
		setting_parse_size(setting_slice_from_text(settings_table[id].default_value),
				   &bytes);
	return bytes;
}

/* Within the table's bounds: more than the most is the most, less than the least counts as unset.
 */
static double read_setting_number(char *const *environment, enum setting_id id, double otherwise)
{
	const struct setting *setting = &settings_table[id];
	bool bounded = setting->minimum != 0 || setting->maximum != 0;
	double value;

	if (setting_parse_number(
		    setting_slice_from_text(find_setting_text_or_default(environment, id)),
		    &value) ||
	    (bounded && !(value >= setting->minimum)))
		return otherwise;
	return bounded && value > setting->maximum ? setting->maximum : value;
}

static int64_t read_setting_duration(char *const *environment, enum setting_id id)
{
	int64_t value;

	return setting_parse_duration(
		       setting_slice_from_text(find_setting_text_or_default(environment, id)),
		       &value)
		       ? 0
		       : value;
}

static void add_thread_range(uint64_t first, uint64_t last, void *context)
{
	struct options_thread_filter *tids = context;

	if (tids->count < OPTIONS_THREAD_RANGES_MAX) {
		tids->range[tids->count].first = first;
		tids->range[tids->count++].last = last;
	}
}

static void read_sampler_options(struct sampling_options *sampler, char *const *environment,
				 enum setting_id frequency, enum setting_id delay,
				 enum setting_id duration, enum setting_id tids)
{
	sampler->period = (uint64_t)(SECOND_NS / read_setting_number(environment, frequency, 1000));
	sampler->window = (struct collection_period_setting){
		.clock = CLOCK_MONOTONIC,
		.delay_ns = read_setting_duration(environment, delay),
		.duration_ns = read_setting_duration(environment, duration),
		.repeat_count = 1};
	if (setting_for_each_tid_range(
		    setting_slice_from_text(find_setting_text_or_default(environment, tids)),
		    add_thread_range, &sampler->tids))
		sampler->tids.count = 0;
}

static void read_collection_periods(struct options *options, char *const *environment)
{
	struct text_slice rest = setting_slice_from_text(
		find_setting_text_or_default(environment, SETTING_TRACE_PERIODS));
	struct setting_collection_period_value defaults = {.clock = SETTING_CLOCK_REALTIME,
							   .cycles = 1};
	struct text_slice spec;
	struct setting_collection_period_value period;
	enum setting_error_kind error;
	int64_t delay = read_setting_duration(environment, SETTING_TRACE_DELAY);
	int64_t duration = read_setting_duration(environment, SETTING_TRACE_DURATION);

	setting_parse_clock(setting_slice_from_text(find_setting_text_or_default(
				    environment, SETTING_TRACE_PERIOD_CLOCK_ID)),
			    &defaults.clock);
	if (delay > 0 || duration > 0) {
		struct collection_period_setting *first =
			&options->collection_periods[options->collection_period_count++];
		*first = (struct collection_period_setting){.clock = (int)defaults.clock,
							    .delay_ns = delay,
							    .duration_ns = duration,
							    .repeat_count = 1};
	}
	defaults.delay_ns = delay;
	defaults.duration_ns = duration;
	while (options->collection_period_count < OPTIONS_COLLECTION_PERIODS_MAX &&
	       setting_parse_next_period(&rest, &defaults, &spec, &period, &error)) {
		if (error)
			continue;
		options->collection_periods[options->collection_period_count++] =
			(struct collection_period_setting){.clock = (int)period.clock,
							   .delay_ns = period.delay_ns,
							   .duration_ns = period.duration_ns,
							   .repeat_count = period.cycles};
	}
}

static void copy_path_unless_too_long(char *to, const char *from)
{
	size_t length = from ? strlen(from) : 0;

	if (length >= OPTIONS_PATH_SIZE)
		length = 0;
	memcpy(to, from ? from : "", length);
	to[length] = 0;
}

/* The user's cache directory by the XDG base directory specification. */
static void choose_unwind_cache_directory(struct options *options, char *const *environment)
{
	const char *given = find_setting_text_or_default(environment, SETTING_UNWIND_CACHE);
	const char *base = find_environment_variable(environment, "XDG_CACHE_HOME", ""),
		   *middle = "";

	options->cache_directory[0] = 0;
	if (!strcmp(given, "none"))
		return;
	if (*given) {
		copy_path_unless_too_long(options->cache_directory, given);
		return;
	}
	if (!base || base[0] != '/') {
		base = find_environment_variable(environment, "HOME", "");
		middle = "/.cache";
	}
	if (!base || base[0] != '/' || strlen(base) + 32 >= OPTIONS_PATH_SIZE)
		return;
	copy_path_unless_too_long(options->cache_directory, base);
	strcat(options->cache_directory, middle);
	strcat(options->cache_directory, "/kymo/unwind");
}

static int parse_signal_name(const char *text)
{
	static const struct {
		const char *name;
		int number;
	} signals[] = {{"SIGURG", SIGURG},   {"SIGPROF", SIGPROF}, {"SIGIO", SIGIO},
		       {"SIGUSR1", SIGUSR1}, {"SIGUSR2", SIGUSR2}, {"SIGVTALRM", SIGVTALRM}};

	for (unsigned i = 0; i < ARRAY_SIZE(signals); i++) {
		if (setting_slice_equals_word(setting_slice_from_text(text), signals[i].name) ||
		    setting_slice_equals_word(setting_slice_from_text(text), signals[i].name + 3))
			return signals[i].number;
	}
	return 0;
}

static void read_all_sampler_options(struct options *options, char *const *environment)
{
	const char *cputime = find_setting_text_or_default(environment, SETTING_SAMPLING_CPUTIME);
	bool cpu = false;

	read_sampler_options(&options->cpu, environment, SETTING_SAMPLING_CPUTIME_FREQ,
			     SETTING_SAMPLING_CPUTIME_DELAY, SETTING_SAMPLING_CPUTIME_DURATION,
			     SETTING_SAMPLING_CPUTIME_TIDS);
	read_sampler_options(&options->wall, environment, SETTING_SAMPLING_REALTIME_FREQ,
			     SETTING_SAMPLING_REALTIME_DELAY, SETTING_SAMPLING_REALTIME_DURATION,
			     SETTING_SAMPLING_REALTIME_TIDS);
	read_sampler_options(&options->overflow, environment, SETTING_SAMPLING_OVERFLOW_FREQ,
			     SETTING_SAMPLING_DELAY, SETTING_SAMPLING_DURATION,
			     SETTING_SAMPLING_OVERFLOW_TIDS);
	options->overflow.period =
		(uint64_t)read_setting_number(environment, SETTING_SAMPLING_OVERFLOW_FREQ, 1000);
	options->wall.on = read_setting_bool(environment, SETTING_SAMPLING_REALTIME);
	options->overflow.on = read_setting_bool(environment, SETTING_SAMPLING_OVERFLOW);
	if (setting_parse_bool(setting_slice_from_text(cputime), &cpu))
		cpu = !options->wall.on && !options->overflow.on; /* auto */
	options->cpu.on = cpu;
	if (!read_setting_bool(environment, SETTING_USE_SAMPLING))
		options->cpu.on = options->wall.on = options->overflow.on = false;
}

static void read_region_options(struct region_options *regions, char *const *environment)
{
	regions->trace = read_setting_bool(environment, SETTING_TRACE);
	regions->profile = read_setting_bool(environment, SETTING_PROFILE);
	regions->start = read_setting_bool(environment, SETTING_INIT_ENABLED);
	regions->components = find_setting_text_or_default(environment, SETTING_COMPONENTS);
	regions->component_event_codes =
		find_setting_text_or_default(environment, SETTING_COMPONENT_EVENTS);
	regions->selected = find_setting_text_or_default(environment, SETTING_SELECTED_REGIONS);
	regions->enabled_categories =
		find_setting_text_or_default(environment, SETTING_ENABLE_CATEGORIES);
	regions->disabled_categories =
		find_setting_text_or_default(environment, SETTING_DISABLE_CATEGORIES);
	regions->max_depth = (uint32_t)read_setting_number(environment, SETTING_MAX_DEPTH, 65535);
	regions->profile_nodes_max =
		(uint32_t)read_setting_number(environment, SETTING_PROFILE_MAX_NODES, 65536);
	regions->profile_threads_max =
		(uint32_t)read_setting_number(environment, SETTING_PROFILE_MAX_THREADS, 1024);
	regions->throttle_count =
		(uint64_t)read_setting_number(environment, SETTING_THROTTLE_COUNT, 0);
	regions->throttle_below_mean_call_ns =
		(uint64_t)read_setting_number(environment, SETTING_THROTTLE_VALUE, 10000);
	regions->control_signal = parse_signal_name(
		find_setting_text_or_default(environment, SETTING_CONTROL_SIGNAL));
}

static void read_wrapper_options(struct wrapper_options *wrappers, char *const *environment)
{
	const struct {
		bool *to;
		enum setting_id id;
	} switches[] = {{&wrappers->on, SETTING_USE_WRAPPERS},
			{&wrappers->wrap_threads, SETTING_TRACE_THREADS},
			{&wrappers->wrap_locks, SETTING_TRACE_THREAD_LOCKS},
			{&wrappers->wrap_rw_locks, SETTING_TRACE_THREAD_RW_LOCKS},
			{&wrappers->wrap_spin_locks, SETTING_TRACE_THREAD_SPIN_LOCKS},
			{&wrappers->wrap_barriers, SETTING_TRACE_THREAD_BARRIERS},
			{&wrappers->wrap_thread_joins, SETTING_TRACE_THREAD_JOIN},
			{&wrappers->wrap_condition_variables, SETTING_TRACE_THREAD_CONDITIONS},
			{&wrappers->wrap_processes, SETTING_TRACE_PROCESSES},
			{&wrappers->wrap_sleep, SETTING_TRACE_SLEEP},
			{&wrappers->wrap_io, SETTING_TRACE_IO},
			{&wrappers->wrap_loader, SETTING_TRACE_LOADER},
			{&wrappers->wrap_memory, SETTING_TRACE_MEMORY},
			{&wrappers->wrap_mpi, SETTING_USE_MPIP},
			{&wrappers->wrap_nccl, SETTING_USE_NCCL},
			{&wrappers->wrap_ompt, SETTING_USE_OMPT},
			{&wrappers->wrap_kokkos, SETTING_USE_KOKKOSP},
			{&wrappers->wrap_kokkos_deep_copies, SETTING_KOKKOSP_DEEP_COPY}};

	for (unsigned i = 0; i < ARRAY_SIZE(switches); i++) {
		*switches[i].to = read_setting_bool(environment, switches[i].id);
		wrappers->is_any_wrapper_requested |= switches[i].id != SETTING_USE_WRAPPERS &&
						      *switches[i].to &&
						      is_setting_given(environment, switches[i].id);
	}
	wrappers->allocation_site_depth_max =
		(uint32_t)read_setting_number(environment, SETTING_MEMORY_SITE_DEPTH, 32);
	wrappers->kokkos_name_length_max =
		(uint32_t)read_setting_number(environment, SETTING_KOKKOSP_NAME_LENGTH_MAX, 0);
	wrappers->wrapped_functions_spec = find_setting_text_or_default(environment, SETTING_WRAP);
	wrappers->mpi_permit_list =
		find_setting_text_or_default(environment, SETTING_MPIP_PERMIT_LIST);
	wrappers->mpi_reject_list =
		find_setting_text_or_default(environment, SETTING_MPIP_REJECT_LIST);
	wrappers->kokkos_name_prefix =
		find_setting_text_or_default(environment, SETTING_KOKKOSP_PREFIX);
}

/* "rate,ns" */
static void parse_function_demotion_limits(struct instrument_options *instrument, const char *text)
{
	struct text_slice rest = setting_slice_from_text(text), item;
	double rate, ns;

	if (!setting_next_list_word(&rest, &item) || setting_parse_number(item, &rate) ||
	    !setting_next_list_word(&rest, &item) || setting_parse_number(item, &ns))
		return;
	instrument->demote_calls_per_second = rate > 0 ? (uint64_t)rate : 0;
	instrument->demote_below_mean_call_ns = ns > 0 ? (uint64_t)ns : 0;
}

static void read_instrument_options(struct instrument_options *instrument, char *const *environment)
{
	instrument->socket = find_setting_text_or_default(environment, SETTING_INSTRUMENT);
	instrument->arguments =
		find_setting_text_or_default(environment, SETTING_INSTRUMENT_ARGUMENTS);
	parse_function_demotion_limits(
		instrument, find_setting_text_or_default(environment, SETTING_INSTRUMENT_DEMOTE));
}

static void read_python_call_options(struct python_call_options *calls, char *const *environment)
{
	const struct {
		const char **to;
		enum setting_id id;
	} expressions[] = {{&calls->function_include, SETTING_REGEX_INCLUDE},
			   {&calls->function_exclude, SETTING_REGEX_EXCLUDE},
			   {&calls->function_restrict, SETTING_REGEX_RESTRICT},
			   {&calls->file_include, SETTING_REGEX_MODULE_INCLUDE},
			   {&calls->file_exclude, SETTING_REGEX_MODULE_EXCLUDE},
			   {&calls->file_restrict, SETTING_REGEX_MODULE_RESTRICT}};
	const char *coverage = find_setting_text_or_default(environment, SETTING_COVERAGE);
	struct text_slice label = setting_slice_from_text(
				  find_setting_text_or_default(environment, SETTING_PYTHON_LABEL)),
			  word;

	calls->on = read_setting_bool(environment, SETTING_PYTHON_CALLS);
	calls->records_builtins = read_setting_bool(environment, SETTING_PYTHON_BUILTINS);
	calls->has_sections = read_setting_bool(environment, SETTING_PYTHON_DECORATORS) ||
			      *find_setting_text_or_default(environment, SETTING_PYTHON_SETUP);
	calls->covers_lines = !strcmp(coverage, "basic_block");
	calls->covers_functions = calls->covers_lines || !strcmp(coverage, "function");
	calls->has_full_path = read_setting_bool(environment, SETTING_PYTHON_FULL_PATH);
	while (setting_next_list_word(&label, &word)) {
		calls->label_has_file |= setting_slice_equals_word(word, "file");
		calls->label_has_line |= setting_slice_equals_word(word, "line");
	}
	for (unsigned i = 0; i < ARRAY_SIZE(expressions); i++)
		*expressions[i].to = find_setting_text_or_default(environment, expressions[i].id);
}

static void read_all_options(struct options *options, char *const *environment)
{
	const char *source = find_setting_text_or_default(environment, SETTING_SAMPLING_SOURCE);

	memset(options, 0, sizeof(*options));
	options->enabled = read_setting_bool(environment, SETTING_ENABLED);
	options->follow_children = read_setting_bool(environment, SETTING_FOLLOW_CHILDREN);
	options->metrics = read_setting_bool(environment, SETTING_SAMPLING_METRICS);
	options->has_period_jitter = read_setting_bool(environment, SETTING_SAMPLING_JITTER);
	options->ring = read_setting_bool(environment, SETTING_SPOOL_RING);
	options->records_process_metrics =
		read_setting_bool(environment, SETTING_USE_PROCESS_SAMPLING);
	options->records_cpu_frequency = read_setting_bool(environment, SETTING_CPU_FREQ_ENABLED);
	options->verbosity_level = (int)read_setting_number(environment, SETTING_VERBOSE, 0);
	options->source = setting_slice_equals_word(setting_slice_from_text(source), "perf")
				  ? OPTIONS_SOURCE_PERF
			  : setting_slice_equals_word(setting_slice_from_text(source), "timer")
				  ? OPTIONS_SOURCE_TIMER
				  : OPTIONS_SOURCE_AUTO;
	options->signal = parse_signal_name(
		find_setting_text_or_default(environment, SETTING_SAMPLING_SIGNAL));
	options->max_depth =
		(uint32_t)read_setting_number(environment, SETTING_SAMPLING_MAX_DEPTH, 512);
	options->task_name_maximum =
		(uint32_t)read_setting_number(environment, SETTING_SAMPLING_TASK_NAMES, 1000);
	options->threads_per_allocator =
		(uint32_t)read_setting_number(environment, SETTING_SAMPLING_ALLOCATOR_SIZE, 8);
	options->overhead_limit_fraction =
		read_setting_number(environment, SETTING_SAMPLING_OVERHEAD_LIMIT, 5) / 100;
	options->process_metrics_period_ns =
		(uint64_t)(SECOND_NS /
			   read_setting_number(environment, SETTING_PROCESS_SAMPLING_FREQ, 10));
	options->process_metrics_delay_ns =
		read_setting_duration(environment, SETTING_PROCESS_SAMPLING_DELAY);
	options->process_metrics_duration_ns =
		read_setting_duration(environment, SETTING_PROCESS_SAMPLING_DURATION);
	options->spool_limit_bytes = read_setting_size(environment, SETTING_SPOOL_LIMIT);
	read_all_sampler_options(options, environment);
	read_collection_periods(options, environment);
	read_region_options(&options->regions, environment);
	read_wrapper_options(&options->wrappers, environment);
	read_instrument_options(&options->instrument, environment);
	read_python_call_options(&options->python_calls, environment);
	options->overflow_event_name =
		find_setting_text_or_default(environment, SETTING_SAMPLING_OVERFLOW_EVENT);
	options->overflow_event_code =
		find_setting_text_or_default(environment, SETTING_SAMPLING_OVERFLOW_CODE);
	options->counters = find_setting_text_or_default(environment, SETTING_SAMPLING_COUNTERS);
	options->counter_event_codes =
		find_setting_text_or_default(environment, SETTING_SAMPLING_COUNTER_EVENTS);
	copy_path_unless_too_long(
		options->spool_directory,
		find_environment_variable(environment, "KYMO_", "SPOOL_DIRECTORY"));
	choose_unwind_cache_directory(options, environment);
}

void options_read_environment(struct options *options, char *const *environment)
{
	char *selected[VARIABLES_OF_INTEREST_MAX + 1];

	read_all_options(options, select_variables_of_interest(environment, selected)
					  ? selected
					  : environment);
}

bool options_thread_filter_allows(const struct options_thread_filter *tids, uint64_t sequent_id)
{
	for (uint32_t i = 0; i < tids->count; i++) {
		if (sequent_id >= tids->range[i].first && sequent_id <= tids->range[i].last)
			return true;
	}
	return tids->count == 0;
}

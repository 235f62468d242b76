/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See instrument_request.h.
 */
#include "cmd/instrument_request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/result_path.h"
#include "common/settings_value.h"

static const enum setting_id request_expressions[SELECTION_EXPRESSIONS] = {
	[SELECTION_INCLUDE] = SETTING_REGEX_INCLUDE,
	[SELECTION_EXCLUDE] = SETTING_REGEX_EXCLUDE,
	[SELECTION_RESTRICT] = SETTING_REGEX_RESTRICT,
	[SELECTION_CALLER_INCLUDE] = SETTING_REGEX_CALLER_INCLUDE,
	[SELECTION_MODULE_INCLUDE] = SETTING_REGEX_MODULE_INCLUDE,
	[SELECTION_MODULE_EXCLUDE] = SETTING_REGEX_MODULE_EXCLUDE,
	[SELECTION_MODULE_RESTRICT] = SETTING_REGEX_MODULE_RESTRICT,
	[SELECTION_INTERNAL_INCLUDE] = SETTING_REGEX_INTERNAL_INCLUDE,
	[SELECTION_MODULE_INTERNAL_INCLUDE] = SETTING_REGEX_MODULE_INTERNAL_INCLUDE,
	[SELECTION_INSTRUCTION_EXCLUDE] = SETTING_REGEX_INSTRUCTION_EXCLUDE,
	[SELECTION_COUNT_ONLY] = SETTING_INSTRUMENT_COUNT,
	[SELECTION_ARGUMENTS] = SETTING_INSTRUMENT_ARGUMENTS,
};

/* A number of the settings, or `otherwise` where it is not given. */
static uint64_t request_number(const struct resolved *settings, enum setting_id id,
			       uint64_t otherwise)
{
	return *resolved_text(settings, id) ? (uint64_t)resolved_integer(settings, id) : otherwise;
}

/* Who gives only one of the two limits means only that one; functions with loops have the limits of
 * all functions, where given, and else none: however small, they may take long. */
static void request_sizes(const struct resolved *settings, struct selection_request *ret)
{
	bool instructions = !resolved_is_default(settings, SETTING_MIN_INSTRUCTIONS);
	bool range = *resolved_text(settings, SETTING_MIN_ADDRESS_RANGE);
	bool covering = strcmp(resolved_text(settings, SETTING_COVERAGE), "none") != 0;

	ret->minimum_range = request_number(settings, SETTING_MIN_ADDRESS_RANGE, 0);
	ret->minimum_range_loop =
		request_number(settings, SETTING_MIN_ADDRESS_RANGE_LOOP, ret->minimum_range);
	if (instructions || (!range && !covering))
		ret->minimum_instructions = request_number(settings, SETTING_MIN_INSTRUCTIONS, 0);
	ret->minimum_instructions_loop =
		request_number(settings, SETTING_MIN_INSTRUCTIONS_LOOP,
			       instructions ? ret->minimum_instructions : 0);
}

/* The words of a list as bits of their place among the choices of the setting, from `first` on. */
static uint32_t request_bits(const struct resolved *settings, enum setting_id id,
			     const char *const *words, unsigned count)
{
	struct setting_slice rest = setting_slice(resolved_text(settings, id)), word;
	uint32_t bits = 0;

	while (setting_list_next(&rest, &word)) {
		for (unsigned i = 0; i < count; i++) {
			if (setting_slice_is(word, words[i]))
				bits |= 1u << i;
		}
	}
	return bits;
}

static void request_kinds(const struct resolved *settings, struct selection_request *ret)
{
	static const char *const labels[] = {"args", "file", "line"};
	const char *linkages[LINKAGE_UNIQUE + 1], *visibilities[VISIBILITY_PROTECTED + 1];

	for (unsigned i = 0; i <= LINKAGE_UNIQUE; i++)
		linkages[i] = selection_linkage_word(i);
	for (unsigned i = 0; i <= VISIBILITY_PROTECTED; i++)
		visibilities[i] = selection_visibility_word(i);
	ret->linkages = request_bits(settings, SETTING_LINKAGE, linkages, LINKAGE_UNIQUE + 1);
	ret->visibilities =
		request_bits(settings, SETTING_VISIBILITY, visibilities, VISIBILITY_PROTECTED + 1);
	ret->labels = request_bits(settings, SETTING_FUNCTION_LABEL, labels, 3);
}

static void request_selection(const struct resolved *settings, struct selection_request *ret)
{
	for (unsigned i = 0; i < SELECTION_EXPRESSIONS; i++) {
		enum setting_id id = request_expressions[i];

		ret->expressions[i] = resolved_text(settings, id);
		ret->sources[i] = settings->values[id].source ? settings->values[id].source
							      : settings_table[id].name;
	}
	request_sizes(settings, ret);
	request_kinds(settings, ret);
	ret->main_function = resolved_text(settings, SETTING_MAIN_FUNCTION);
	ret->internal_append = resolved_text(settings, SETTING_INTERNAL_LIBRARY_APPEND);
	ret->internal_remove = resolved_text(settings, SETTING_INTERNAL_LIBRARY_REMOVE);
	ret->list_files = resolved_text(settings, SETTING_INSTRUMENT_LISTS);
	ret->dynamic_callsites = resolved_bool(settings, SETTING_DYNAMIC_CALLSITES);
	ret->allow_overlapping = resolved_bool(settings, SETTING_ALLOW_OVERLAPPING);
	ret->count_all = strcmp(resolved_text(settings, SETTING_COVERAGE), "none") != 0;
}

/* ---- modes ---- */

/* What -M and --sample mean for sampling, unless the user says so as well. */
static int request_sampling(struct resolved *settings, bool on, const char *source,
			    struct problem *problem)
{
	if (!resolved_is_default(settings, SETTING_USE_SAMPLING))
		return 0;
	return resolved_set(settings, SETTING_USE_SAMPLING, on ? "on" : "off", ORIGIN_OPTION,
			    source, problem);
}

/* "^name$" with what is special in expressions taken literally. */
static void request_only(const char *name, char *ret, size_t size)
{
	size_t at = 0;

	ret[at++] = '^';
	for (; *name && at + 4 < size; name++) {
		if (strchr("\\^$.[]|()*+?{}", *name))
			ret[at++] = '\\';
		ret[at++] = *name;
	}
	ret[at++] = '$';
	ret[at] = '\0';
}

static int request_mode(struct instrument_request *request, struct resolved *settings,
			const struct instrument_options *options, struct problem *problem)
{
	const char *mode = options->mode ? options->mode : "trace";
	bool sampled = options->sample ||
		       !resolved_is_default(settings, SETTING_SAMPLING_CPUTIME) ||
		       !resolved_is_default(settings, SETTING_SAMPLING_REALTIME) ||
		       !resolved_is_default(settings, SETTING_SAMPLING_OVERFLOW);

	if (!strcmp(mode, "sampling")) {
		request_only(resolved_text(settings, SETTING_MAIN_FUNCTION), request->mode_restrict,
			     sizeof(request->mode_restrict));
		return request_sampling(settings, true, "-M sampling", problem);
	}
	if (!strcmp(mode, "coverage")) {
		if (!strcmp(resolved_text(settings, SETTING_COVERAGE), "none") &&
		    resolved_set(settings, SETTING_COVERAGE, "function", ORIGIN_OPTION,
				 "-M coverage", problem))
			return -EINVAL;
	} else if (strcmp(mode, "trace") != 0) {
		return problem_set(problem, -EINVAL,
				   "-M: '%.100s' is no mode (one of: trace,sampling,coverage)",
				   mode);
	}
	return request_sampling(settings, sampled, "kymo instrument", problem);
}

/* ---- the cache ---- */

/* As libkymo finds that of unwind tables (core/options.c). */
static void request_cache(struct instrument_request *request, const struct resolved *settings)
{
	const char *given = resolved_text(settings, SETTING_PLAN_CACHE);
	const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	if (!strcmp(given, "none"))
		return;
	if (*given)
		snprintf(request->cache, sizeof(request->cache), "%s", given);
	else if (base && base[0] == '/')
		snprintf(request->cache, sizeof(request->cache), "%s/kymo/plans", base);
	else if (home && home[0] == '/')
		snprintf(request->cache, sizeof(request->cache), "%s/.cache/kymo/plans", home);
	else
		return;
	if (!result_make_directories(request->cache))
		request->setup.cache = request->cache;
}

/* ---- */

int instrument_request_init(struct instrument_request *ret, struct resolved *settings,
			    const struct instrument_options *options, struct problem *problem)
{
	struct selection_request selection = {0};
	const char *coverage;
	int error;

	memset(ret, 0, sizeof(*ret));
	error = request_mode(ret, settings, options, problem);
	if (error)
		return error;
	request_selection(settings, &selection);
	if (ret->mode_restrict[0])
		selection.expressions[SELECTION_RESTRICT] = ret->mode_restrict;
	error = selection_rules_create(&selection, &ret->rules, problem);
	if (error)
		return error;
	coverage = resolved_text(settings, SETTING_COVERAGE);
	ret->setup.rules = ret->rules;
	ret->labels = ret->setup.labels = selection.labels;
	ret->setup.plan.loops = resolved_bool(settings, SETTING_INSTRUMENT_LOOPS);
	ret->setup.plan.blocks = !strcmp(coverage, "basic_block");
	ret->setup.debug_path = resolved_text(settings, SETTING_DEBUG_PATH);
	request_cache(ret, settings);
	return 0;
}

void instrument_request_deinit(struct instrument_request *request)
{
	selection_rules_destroy(request->rules);
	request->rules = NULL;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See instrument_request.h.
 */
#include "planning/instrument_request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/settings_value.h"
#include "common/trusted_path.h"
#include "console/message.h"

static const enum setting_id expression_setting_ids[SELECTION_RULE_KIND_COUNT] = {
	[SELECTION_RULE_INCLUDE] = SETTING_REGEX_INCLUDE,
	[SELECTION_RULE_EXCLUDE] = SETTING_REGEX_EXCLUDE,
	[SELECTION_RULE_RESTRICT] = SETTING_REGEX_RESTRICT,
	[SELECTION_RULE_CALLER_INCLUDE] = SETTING_REGEX_CALLER_INCLUDE,
	[SELECTION_RULE_MODULE_INCLUDE] = SETTING_REGEX_MODULE_INCLUDE,
	[SELECTION_RULE_MODULE_EXCLUDE] = SETTING_REGEX_MODULE_EXCLUDE,
	[SELECTION_RULE_MODULE_RESTRICT] = SETTING_REGEX_MODULE_RESTRICT,
	[SELECTION_RULE_INTERNAL_INCLUDE] = SETTING_REGEX_INTERNAL_INCLUDE,
	[SELECTION_RULE_MODULE_INTERNAL_INCLUDE] = SETTING_REGEX_MODULE_INTERNAL_INCLUDE,
	[SELECTION_RULE_INSTRUCTION_EXCLUDE] = SETTING_REGEX_INSTRUCTION_EXCLUDE,
	[SELECTION_RULE_COUNT_CALLS_ONLY] = SETTING_INSTRUMENT_COUNT,
	[SELECTION_RULE_RECORD_ARGUMENTS] = SETTING_INSTRUMENT_ARGUMENTS,
};

/* A number of the settings, or `otherwise` where it is not given. */
static uint64_t read_setting_number_or_default(const struct effective_settings *settings,
					       enum setting_id id, uint64_t otherwise)
{
	return *effective_setting_text(settings, id)
		       ? (uint64_t)effective_setting_integer(settings, id)
		       : otherwise;
}

/* Who gives only one of the two limits means only that one; functions with loops have the limits of
 * all functions, where given, and else none: however small, they may take long. */
static void read_size_limits(const struct effective_settings *settings,
			     struct selection_request *ret)
{
	bool instructions = !effective_setting_is_default(settings, SETTING_MIN_INSTRUCTIONS);
	bool range = *effective_setting_text(settings, SETTING_MIN_ADDRESS_RANGE);
	bool covering = strcmp(effective_setting_text(settings, SETTING_COVERAGE), "none") != 0;

	ret->minimum_range_bytes =
		read_setting_number_or_default(settings, SETTING_MIN_ADDRESS_RANGE, 0);
	ret->minimum_range_bytes_with_loops = read_setting_number_or_default(
		settings, SETTING_MIN_ADDRESS_RANGE_LOOP, ret->minimum_range_bytes);
	if (instructions || (!range && !covering))
		ret->minimum_instructions =
			read_setting_number_or_default(settings, SETTING_MIN_INSTRUCTIONS, 0);
	ret->minimum_instructions_with_loops =
		read_setting_number_or_default(settings, SETTING_MIN_INSTRUCTIONS_LOOP,
					       instructions ? ret->minimum_instructions : 0);
}

/* The words of a list as bits of their place among the choices of the setting, from `first` on. */
static uint32_t list_words_to_bits(const struct effective_settings *settings, enum setting_id id,
				   const char *const *words, unsigned count)
{
	struct text_slice rest = setting_slice_from_text(effective_setting_text(settings, id)),
			  word;
	uint32_t bits = 0;

	while (setting_next_list_word(&rest, &word)) {
		for (unsigned i = 0; i < count; i++) {
			if (setting_slice_equals_word(word, words[i]))
				bits |= 1u << i;
		}
	}
	return bits;
}

static void read_symbol_kinds(const struct effective_settings *settings,
			      struct selection_request *ret)
{
	static const char *const labels[] = {"args", "file", "line"};
	const char *linkages[LINKAGE_UNIQUE + 1], *visibilities[VISIBILITY_PROTECTED + 1];

	for (unsigned i = 0; i <= LINKAGE_UNIQUE; i++)
		linkages[i] = selection_linkage_to_word(i);
	for (unsigned i = 0; i <= VISIBILITY_PROTECTED; i++)
		visibilities[i] = selection_visibility_to_word(i);
	ret->linkage_bits =
		list_words_to_bits(settings, SETTING_LINKAGE, linkages, LINKAGE_UNIQUE + 1);
	ret->visibility_bits = list_words_to_bits(settings, SETTING_VISIBILITY, visibilities,
						  VISIBILITY_PROTECTED + 1);
	ret->labels = list_words_to_bits(settings, SETTING_FUNCTION_LABEL, labels, 3);
}

static void read_selection_request(const struct effective_settings *settings,
				   struct selection_request *ret)
{
	for (unsigned i = 0; i < SELECTION_RULE_KIND_COUNT; i++) {
		enum setting_id id = expression_setting_ids[i];

		ret->rule_expressions[i] = effective_setting_text(settings, id);
		ret->sources[i] = settings->values[id].source ? settings->values[id].source
							      : settings_table[id].name;
	}
	read_size_limits(settings, ret);
	read_symbol_kinds(settings, ret);
	ret->main_function_name = effective_setting_text(settings, SETTING_MAIN_FUNCTION);
	ret->internal_libraries_added =
		effective_setting_text(settings, SETTING_INTERNAL_LIBRARY_APPEND);
	ret->internal_libraries_removed =
		effective_setting_text(settings, SETTING_INTERNAL_LIBRARY_REMOVE);
	ret->list_file_paths = effective_setting_text(settings, SETTING_INSTRUMENT_LISTS);
	ret->selects_dynamic_callsites =
		effective_setting_bool(settings, SETTING_DYNAMIC_CALLSITES);
	ret->allows_overlapping = effective_setting_bool(settings, SETTING_ALLOW_OVERLAPPING);
	ret->is_count_only =
		strcmp(effective_setting_text(settings, SETTING_COVERAGE), "none") != 0;
}

/* ---- modes ---- */

/* What -M and --sample mean for sampling, unless the user says so as well. */
static int set_use_sampling_unless_given(struct effective_settings *settings, bool on,
					 const char *source, struct problem *problem)
{
	if (!effective_setting_is_default(settings, SETTING_USE_SAMPLING))
		return 0;
	return effective_set_if_not_overridden(settings, SETTING_USE_SAMPLING, on ? "on" : "off",
					       ORIGIN_OPTION, source, problem);
}

/* "^name$" with what is special in expressions taken literally. */
static void format_exact_name_pattern(const char *name, char *ret, size_t size)
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

static int apply_instrument_mode(struct instrumentation_request *request,
				 struct effective_settings *settings,
				 const struct instrument_command_options *options,
				 struct problem *problem)
{
	const char *mode = options->mode ? options->mode : "trace";
	bool sampled = options->sample ||
		       !effective_setting_is_default(settings, SETTING_SAMPLING_CPUTIME) ||
		       !effective_setting_is_default(settings, SETTING_SAMPLING_REALTIME) ||
		       !effective_setting_is_default(settings, SETTING_SAMPLING_OVERFLOW);

	if (!strcmp(mode, "sampling")) {
		format_exact_name_pattern(effective_setting_text(settings, SETTING_MAIN_FUNCTION),
					  request->mode_restrict_pattern,
					  sizeof(request->mode_restrict_pattern));
		return set_use_sampling_unless_given(settings, true, "-M sampling", problem);
	}
	if (!strcmp(mode, "coverage")) {
		if (!strcmp(effective_setting_text(settings, SETTING_COVERAGE), "none") &&
		    effective_set_if_not_overridden(settings, SETTING_COVERAGE, "function",
						    ORIGIN_OPTION, "-M coverage", problem))
			return -EINVAL;
	} else if (strcmp(mode, "trace") != 0) {
		return problem_set(problem, -EINVAL,
				   "-M: '%.100s' is not a mode (one of: trace,sampling,coverage)",
				   mode);
	}
	return set_use_sampling_unless_given(settings, sampled, "kymo instrument", problem);
}

/* ---- the cache ---- */

/* As libkymo finds that of unwind tables (core/base/options.c). One that somebody else can change
 * is not used. */
static void find_or_make_plan_cache_directory(struct instrumentation_request *request,
					      const struct effective_settings *settings)
{
	const char *given = effective_setting_text(settings, SETTING_PLAN_CACHE);
	const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char resolved[PATH_MAX], why[PATH_MAX + 64];
	struct untrusted_path_part_info doubt;
	int error;

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
	error = trusted_path_make_directories(request->cache, 0755, resolved, &doubt);
	if (!error)
		request->setup.cache = request->cache;
	else if (error == -EPERM)
		message_warning("no cache of patch plans: %s, and what is kept there becomes code "
				"of the program",
				trusted_path_describe_untrusted_part(&doubt, why, sizeof(why)));
}

/* ---- */

int instrument_request_init(struct instrumentation_request *ret,
			    struct effective_settings *settings,
			    const struct instrument_command_options *options,
			    struct problem *problem)
{
	struct selection_request selection = {0};
	const char *coverage;
	int error;

	memset(ret, 0, sizeof(*ret));
	error = apply_instrument_mode(ret, settings, options, problem);
	if (error)
		return error;
	read_selection_request(settings, &selection);
	if (ret->mode_restrict_pattern[0])
		selection.rule_expressions[SELECTION_RULE_RESTRICT] = ret->mode_restrict_pattern;
	error = selection_rules_create(&selection, &ret->rules, problem);
	if (error)
		return error;
	coverage = effective_setting_text(settings, SETTING_COVERAGE);
	ret->setup.rules = ret->rules;
	ret->signature_part_flags = ret->setup.signature_part_flags = selection.labels;
	ret->setup.plan.has_loop_places =
		effective_setting_bool(settings, SETTING_INSTRUMENT_LOOPS);
	ret->setup.plan.has_block_places = !strcmp(coverage, "basic_block");
	ret->setup.debug_search_path = effective_setting_text(settings, SETTING_DEBUG_PATH);
	find_or_make_plan_cache_directory(ret, settings);
	return 0;
}

void instrument_request_deinit(struct instrumentation_request *request)
{
	selection_rules_destroy(request->rules);
	request->rules = NULL;
}

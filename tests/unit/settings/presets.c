/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Presets: what they may hold, and what counts before them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "common/settings_value.h"
#include "settings/presets.h"

static struct effective_settings settings;
static struct problem problem;

static int setup(void **state)
{
	(void)state;
	return effective_init(&settings, &problem);
}

static int teardown(void **state)
{
	(void)state;
	effective_deinit(&settings);
	return 0;
}

static void set(enum setting_id id, const char *text, enum effective_origin origin)
{
	assert_int_equal(
		effective_set_if_not_overridden(&settings, id, text, origin, "test", &problem), 0);
}

static void choices_are_the_presets(void **state)
{
	struct text_slice rest = setting_slice_from_text(settings_table[SETTING_PRESET].choices);
	struct text_slice word;
	size_t count = 0;

	(void)state;
	for (; setting_next_list_word(&rest, &word); count++) {
		assert_in_range(count, 0, preset_count - 1);
		assert_true(setting_slice_equals_word(word, presets[count].name));
	}
	assert_int_equal(count, preset_count);
}

static void values_are_valid_and_end(void **state)
{
	(void)state;
	for (size_t i = 0; i < preset_count; i++) {
		size_t count = 0;
		while (count < PRESET_VALUES_MAX && presets[i].values[count].value != NULL) {
			const struct preset_value *value = &presets[i].values[count++];
			assert_int_not_equal(value->id, SETTING_PRESET);
			assert_int_not_equal(settings_table[value->id].visibility,
					     SETTING_INTERNAL);
			set(value->id, value->value, ORIGIN_PRESET);
		}
		assert_in_range(count, 1, PRESET_VALUES_MAX - 1);
	}
}

static void what_is_set_counts_before_them(void **state)
{
	(void)state;
	set(SETTING_PRESET, "server", ORIGIN_OPTION);
	set(SETTING_SAMPLING_FREQ, "77", ORIGIN_CONFIG);
	set(SETTING_TRACE_IO, "off", ORIGIN_ALIAS);
	set(SETTING_SAMPLING_REALTIME, "off", ORIGIN_OPTION);
	assert_int_equal(presets_apply(&settings, NULL, &problem), 0);
	assert_string_equal(effective_setting_text(&settings, SETTING_SAMPLING_FREQ), "77");
	assert_false(effective_setting_bool(&settings, SETTING_TRACE_IO));
	assert_false(effective_setting_bool(&settings, SETTING_SAMPLING_REALTIME));
	assert_true(effective_setting_bool(&settings, SETTING_TRACE_THREAD_LOCKS));
	assert_int_equal(settings.values[SETTING_TRACE_THREAD_LOCKS].origin, ORIGIN_PRESET);
	assert_string_equal(settings.values[SETTING_TRACE_THREAD_LOCKS].source, "server");
	assert_true(presets_have_value(&settings, SETTING_SAMPLING_FREQ));
	assert_false(presets_have_value(&settings, SETTING_GPU_CALLS));
}

static void the_last_of_several_counts(void **state)
{
	(void)state;
	set(SETTING_PRESET, "light,server", ORIGIN_ENVIRONMENT);
	assert_int_equal(presets_apply(&settings, NULL, &problem), 0);
	assert_string_equal(effective_setting_text(&settings, SETTING_SAMPLING_FREQ), "200");
	assert_false(effective_setting_bool(&settings, SETTING_USE_WRAPPERS));
	assert_true(effective_setting_bool(&settings, SETTING_TRACE_IO));
}

static bool is_no_python_setting(enum setting_id id)
{
	return id != SETTING_PYTHON_CALLS;
}

static void a_command_has_its_own_settings_only(void **state)
{
	(void)state;
	set(SETTING_PRESET, "python", ORIGIN_OPTION);
	assert_int_equal(presets_apply(&settings, is_no_python_setting, &problem), 0);
	assert_false(effective_setting_bool(&settings, SETTING_PYTHON_CALLS));
	assert_true(effective_setting_bool(&settings, SETTING_SAMPLING_REALTIME));
}

static void unknown_names_are_refused(void **state)
{
	(void)state;
	assert_int_equal(effective_set_if_not_overridden(&settings, SETTING_PRESET, "gpu,sever",
							 ORIGIN_OPTION, "--preset", &problem),
			 -EINVAL);
	assert_non_null(strstr(problem.text, "'sever' is not valid; did you mean 'server'?"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(choices_are_the_presets, setup, teardown),
		cmocka_unit_test_setup_teardown(values_are_valid_and_end, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_set_counts_before_them, setup, teardown),
		cmocka_unit_test_setup_teardown(the_last_of_several_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(a_command_has_its_own_settings_only, setup,
						teardown),
		cmocka_unit_test_setup_teardown(unknown_names_are_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

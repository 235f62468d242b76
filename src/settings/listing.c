/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Listings; see listing.h.
 */
#include "settings/listing.h"

#include <string.h>

#include "common/array.h"
#include "output/format.h"

static const char *get_setting_metavar(const struct setting *setting)
{
	static const char *const by_type[] = {
		[SETTING_BOOL] = "on|off",  [SETTING_INTEGER] = "N",  [SETTING_NUMBER] = "N",
		[SETTING_SIZE] = "SIZE",    [SETTING_DURATION] = "S", [SETTING_STRING] = "TEXT",
		[SETTING_CHOICE] = NULL,    [SETTING_LIST] = "LIST",  [SETTING_TIDS] = "LIST",
		[SETTING_PERIODS] = "SPEC", [SETTING_PATH] = "PATH",  [SETTING_PATTERN] = "REGEX",
	};

	if (setting->metavar)
		return setting->metavar;
	return setting->type == SETTING_CHOICE ? "WORD" : by_type[setting->type];
}

/* A letter of the command's own is not the table's. */
static void find_option_letters(const struct options_grammar *grammar, enum setting_id id,
				char ret[4])
{
	char letter = settings_table[id].short_option;

	for (size_t i = 0; i < grammar->extra_option_count; i++) {
		if (grammar->extra_options[i].letter == letter)
			letter = '\0';
	}
	ret[0] = letter;
	ret[1] = '\0';
	for (size_t i = 0; i < grammar->short_option_count; i++) {
		const struct short_option_entry *own = &grammar->short_options[i];

		if (own->id == id) {
			memcpy(ret, own->letters, sizeof(own->letters));
			return;
		}
		if (own->letters[0] == letter && !own->letters[1])
			ret[0] = '\0';
	}
}

void listing_for_each_option(const struct options_grammar *grammar,
			     void (*each)(const struct listing_option *option, void *context),
			     void *context)
{
	for (size_t i = 0; i < grammar->extra_option_count; i++) {
		const struct extra_option *extra = &grammar->extra_options[i];
		struct listing_option option = {
			.letters = {extra->letter},
			.metavar = extra->argument == OPTION_ARGUMENT_NONE ? NULL : extra->metavar,
			.is_value_optional = extra->argument != OPTION_ARGUMENT_REQUIRED,
			.attached = extra->argument == OPTION_ARGUMENT_ATTACHED,
			.help = extra->help,
			.choices = extra->choices,
			.id = SETTING_COUNT,
			.category = "options",
			.visibility = extra->advanced ? SETTING_ADVANCED : SETTING_BASIC,
		};

		snprintf(option.name, sizeof(option.name), "%s", extra->name);
		each(&option, context);
	}
	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		const struct setting *setting = &settings_table[id];
		struct listing_option option = {
			.metavar = get_setting_metavar(setting),
			.is_value_optional = setting->type == SETTING_BOOL,
			.has_negated_form = setting->type == SETTING_BOOL,
			.help = setting->help,
			.choices = setting->choices,
			.id = (enum setting_id)id,
			.category = setting->category,
			.visibility = setting->visibility,
		};

		if (!grammar->accepts_setting((enum setting_id)id) || id == SETTING_VERBOSE)
			continue; /* --verbose is one of the command's own */
		effective_format_option_name((enum setting_id)id, option.name, sizeof(option.name));
		find_option_letters(grammar, (enum setting_id)id, option.letters);
		each(&option, context);
	}
}

const char *listing_make_usage_text_of_option(const struct listing_option *option, char *text,
					      size_t size)
{
	char letter[8] = "";

	if (option->letters[0])
		snprintf(letter, sizeof(letter), "-%.3s, ", option->letters);
	if (option->has_negated_form)
		snprintf(text, size, "%s--[no-]%s", letter, option->name);
	else if (!option->metavar)
		snprintf(text, size, "%s--%s", letter, option->name);
	else if (option->attached)
		snprintf(text, size, "%s--%s[=%s]", letter, option->name, option->metavar);
	else
		snprintf(text, size, option->is_value_optional ? "%s--%s [%s]" : "%s--%s %s",
			 letter, option->name, option->metavar);
	return text;
}

const char *listing_get_type_name(enum setting_type type)
{
	static const char *const names[] = {
		[SETTING_BOOL] = "boolean",      [SETTING_INTEGER] = "integer",
		[SETTING_NUMBER] = "number",     [SETTING_SIZE] = "size",
		[SETTING_DURATION] = "duration", [SETTING_STRING] = "string",
		[SETTING_CHOICE] = "choice",     [SETTING_LIST] = "list",
		[SETTING_TIDS] = "thread list",  [SETTING_PERIODS] = "windows",
		[SETTING_PATH] = "path",         [SETTING_PATTERN] = "expression",
	};

	return names[type];
}

/* Columns of UTF-8 text: bytes that start a character. */
static size_t count_utf8_columns(const char *text, size_t bytes)
{
	size_t columns = 0;

	for (size_t i = 0; i < bytes; i++)
		columns += ((unsigned char)text[i] & 0xc0) != 0x80;
	return columns;
}

size_t listing_print_sanitized_text(FILE *out, const char *text)
{
	return format_write_printable_text(out, text, strlen(text));
}

void listing_print_wrapped(FILE *out, const char *text, size_t column, size_t indent, size_t width)
{
	while (*text) {
		size_t bytes = strcspn(text, " \n"), columns = count_utf8_columns(text, bytes);

		if (column > indent && column + 1 + columns > width) {
			fprintf(out, "\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			fputc(' ', out);
			column++;
		}
		column += format_write_printable_text(out, text, bytes);
		text += bytes;
		if (!strncmp(text, "\n\n", 2)) {
			fprintf(out, "\n\n%*s", (int)indent, "");
			column = indent;
		}
		text += strspn(text, " \n");
	}
	fputc('\n', out);
}

const char *listing_get_category_title(const char *category)
{
	static const char *const titles[][2] = {
		{"options", "Options"},
		{"general", "General"},
		{"output", "Results"},
		{"windows", "Collection windows"},
		{"sampling", "Call-stack sampling"},
		{"regions", "Regions"},
		{"wrappers", "Wrapped functions"},
		{"counters", "Counters of devices"},
		{"instrument", "Instrumented functions"},
		{"causal", "Causal profiling"},
		{"process", "Process metrics"},
		{"memory", "Memory and files"},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(titles); i++) {
		if (!strcmp(titles[i][0], category))
			return titles[i][1];
	}
	return category;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Rows of options and settings as help, manual pages, completion and documentation show them. One
 * walk over a command's options, so that all of these list the same things.
 */
#ifndef KYMO_SETTINGS_LISTING_H
#define KYMO_SETTINGS_LISTING_H

#include <stdio.h>

#include "settings/options.h"

/* One option of a command. */
struct listing_option {
	char name[64];          /* without dashes */
	char letters[4];        /* short name, mostly one letter; empty: none */
	const char *metavar;    /* NULL: takes no value */
	bool is_value_optional; /* the value may be left out */
	bool attached;          /* and is given as --NAME=VALUE only */
	bool has_negated_form;  /* --no-NAME exists */
	const char *help;
	const char *choices;  /* or NULL */
	enum setting_id id;   /* SETTING_COUNT: no setting */
	const char *category; /* "options" for those that are no settings */
	enum setting_visibility visibility;
};

/* Calls `each` for every option: the command's own first, then settings in the table's order. */
void listing_for_each_option(const struct options_grammar *grammar,
			     void (*each)(const struct listing_option *option, void *context),
			     void *context);
/* "-f, --freq HZ", "--[no-]trace". */
const char *listing_make_usage_text_of_option(const struct listing_option *option, char *text,
					      size_t size);
/* What a type is called: "boolean", "number", … */
const char *listing_get_type_name(enum setting_type type);
/* Prints text that may come from anywhere, as a terminal may have it
 * (utf8_next_printable_character). Returns the columns. */
size_t listing_print_sanitized_text(FILE *out, const char *text);
/* Prints text as listing_print_sanitized_text() does, wrapped to `width` columns, every line but
 * the first behind `indent` blanks; the caller has printed `column` characters of the first. */
void listing_print_wrapped(FILE *out, const char *text, size_t column, size_t indent, size_t width);
/* The heading of a category. */
const char *listing_get_category_title(const char *category);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Conditions of --fail-if: NAME>+CHANGE, where NAME may have such signs itself.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/settings_value.h"
#include "output/diff/diff.h"
#include "output/format.h"

#define CONDITION_FORM "such as 'total>+3%', 'any>+10%' or 'parse>+5ms'"

static const char *find_last_comparison(const char *text)
{
	const char *above = strrchr(text, '>'), *below = strrchr(text, '<');

	return above > below ? above : below;
}

static int parse_limit(const char *text, struct diff_condition *condition)
{
	char *end;
	double number;
	int64_t ns;

	while (isspace((unsigned char)*text) || *text == '=')
		text++;
	number = strtod(text, &end);
	if (end == text || !isfinite(number))
		return -EINVAL;
	while (isspace((unsigned char)*end))
		end++;
	if (*end == '%' && end[1] == '\0') {
		condition->is_relative = true;
		condition->limit = number / 100;
		return 0;
	}
	if (number == 0 && *end == '\0')
		return 0;
	/* A time has a unit; its sign is ours. */
	text += *text == '+' || *text == '-';
	if (*end == '\0' ||
	    setting_parse_duration(setting_slice_from_text(text), &ns) != SETTING_VALID)
		return -EINVAL;
	condition->limit = number < 0 ? -(double)ns : (double)ns;
	return 0;
}

int diff_condition_parse(const char *text, struct diff_condition *ret, struct problem *problem)
{
	const char *comparison = find_last_comparison(text);
	size_t length;

	*ret = (struct diff_condition){0};
	while (isspace((unsigned char)*text))
		text++;
	if (!comparison || comparison <= text || parse_limit(comparison + 1, ret) < 0)
		return problem_set(problem, -EINVAL, "--fail-if: '%s' is no condition %s", text,
				   CONDITION_FORM);
	ret->is_below = *comparison == '<';
	length = (size_t)(comparison - text);
	while (length && isspace((unsigned char)text[length - 1]))
		length--;
	if (length == 0 || length >= sizeof(ret->name))
		return problem_set(problem, -EINVAL, "--fail-if: '%s' names nothing; write it %s",
				   text, CONDITION_FORM);
	memcpy(ret->name, text, length);
	return 0;
}

static bool row_fulfils(const struct diff_condition *condition, const struct diff_row *row)
{
	double change = row->after - row->before;

	if (condition->is_relative)
		change = row->before > 0 ? change / row->before : row->after > 0 ? INFINITY : 0;
	return condition->is_below ? row->verdict == DIFF_LOWER && change < condition->limit
				   : row->verdict == DIFF_HIGHER && change > condition->limit;
}

static void describe_row(const struct diff *diff, const struct diff_row *row, char *text,
			 size_t size)
{
	int used = snprintf(text, size, "'%s' went from %s to %s", row->name,
			    diff_quantity(diff, row->before).text,
			    diff_quantity(diff, row->after).text);

	if (row->before > 0 && used > 0 && (size_t)used < size)
		snprintf(text + used, size - (size_t)used, " (%+.1f %%)",
			 100 * (row->after / row->before - 1));
}

/* "parse" for "parse (libparser)" as well: modules are kymo's addition. */
static bool row_has_name(const struct diff_row *row, const char *name)
{
	size_t length = strlen(name);

	return strncmp(row->name, name, length) == 0 &&
	       (row->name[length] == '\0' || strncmp(row->name + length, " (", 2) == 0);
}

int diff_condition_check(const struct diff_condition *condition, const struct diff *diff,
			 char *text, size_t size, struct problem *problem)
{
	bool is_any = strcmp(condition->name, "any") == 0, is_known = is_any;

	if (strcmp(condition->name, "total") == 0) {
		describe_row(diff, &diff->total, text, size);
		return row_fulfils(condition, &diff->total);
	}
	for (size_t i = 0; i < diff->row_count; i++) {
		if (!is_any && !row_has_name(&diff->rows[i], condition->name))
			continue;
		is_known = true;
		if (row_fulfils(condition, &diff->rows[i])) {
			describe_row(diff, &diff->rows[i], text, size);
			return 1;
		}
	}
	return is_known ? 0
			: problem_set(
				  problem, -EINVAL,
				  "--fail-if: no row of these results is called '%s' (nor total, "
				  "nor any)",
				  condition->name);
}

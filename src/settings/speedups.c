/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See speedups.h.
 */
#include "settings/speedups.h"

#include <errno.h>
#include <string.h>

#include "common/settings_value.h"

static const double default_speedup_step_percent = 5;

/* One item: N, A-B or A-B:STEP. NULL, or what is wrong with it. */
static const char *parse_speedup_item(struct text_slice item, double *first, double *last,
				      double *step)
{
	const char *dash = memchr(item.text, '-', item.length);
	const char *colon = memchr(item.text, ':', item.length);
	const char *end = item.text + item.length;
	const char *from_end = dash ? dash : colon ? colon : end;
	enum setting_error_kind error;

	if (colon && (!dash || dash > colon))
		return "is not a range such as 10-50:20";
	*step = default_speedup_step_percent;
	error = setting_parse_number((struct text_slice){item.text, (size_t)(from_end - item.text)},
				     first);
	*last = *first;
	if (!error && dash)
		error = setting_parse_number(
			(struct text_slice){dash + 1, (size_t)((colon ? colon : end) - dash - 1)},
			last);
	if (!error && colon)
		error = setting_parse_number(
			(struct text_slice){colon + 1, (size_t)(end - colon - 1)}, step);
	if (error)
		return "is not a number of percent";
	if (!(*first >= 0 && *first <= 100 && *last >= 0 && *last <= 100))
		return "is not from 0 to 100 percent";
	if (*last < *first)
		return "ends before it begins";
	return *step >= 1 && *step <= 100 ? NULL : "has a step that is not from 1 to 100";
}

static void add_speedup(struct causal_speedups *list, double percent)
{
	uint32_t permille = (uint32_t)(percent * 10 + 0.5);
	size_t at = 0;

	if (!permille) {
		list->has_baseline = true;
		return;
	}
	while (at < list->count && list->permille[at] < permille)
		at++;
	if ((at < list->count && list->permille[at] == permille) ||
	    list->count == CAUSAL_SPEEDUPS_MAX)
		return;
	memmove(list->permille + at + 1, list->permille + at,
		(list->count - at) * sizeof(*list->permille));
	list->permille[at] = permille;
	list->count++;
}

int causal_speedups_parse(const char *text, const char *source, struct causal_speedups *ret,
			  struct problem *problem)
{
	struct text_slice rest = setting_slice_from_text(text), item;
	size_t count = 0;

	memset(ret, 0, sizeof(*ret));
	for (; setting_next_list_word(&rest, &item); count++) {
		double first = 0, last = 0, step = 0;
		const char *wrong = parse_speedup_item(item, &first, &last, &step);

		if (wrong)
			return problem_set(problem, -EINVAL,
					   "%s: '%.*s' %s (CAUSAL_FIXED_SPEEDUP takes percents and "
					   "ranges, such as 0,10,30-50:5)",
					   source, (int)(item.length < 100 ? item.length : 100),
					   item.text, wrong);
		for (unsigned i = 0; first + i * step <= last + 1e-9; i++)
			add_speedup(ret, first + i * step);
	}
	if (!count && *text)
		return problem_set(problem, -EINVAL,
				   "%s: '%.100s' has no speedup (CAUSAL_FIXED_SPEEDUP takes "
				   "percents and ranges, such as 0,10,30-50:5)",
				   source, text);
	return 0;
}

bool causal_speedups_is_list_item(const char *word)
{
	return *word && strspn(word, "0123456789.,:-") == strlen(word) && *word != '-';
}

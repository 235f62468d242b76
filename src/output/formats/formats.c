/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See formats.h. Each output is in its writer's file; the list says which there are.
 */
#include "output/formats/formats.h"

#include <string.h>

#include "common/array.h"
#include "common/output_formats.h"

#define DECLARE_OUTPUT_FORMAT(name, word, when)                                                    \
	extern const struct output_format output_format_##name;
#define OUTPUT_FORMAT_POINTER_ROW(name, word, when) &output_format_##name,

OUTPUT_FORMAT_LIST(DECLARE_OUTPUT_FORMAT)

const struct output_format *const output_formats[] = {
	OUTPUT_FORMAT_LIST(OUTPUT_FORMAT_POINTER_ROW)};
/* An array of pointers. NOLINTNEXTLINE(bugprone-sizeof-expression) */
const size_t output_format_count = ARRAY_SIZE(output_formats);

const struct output_format *output_find_format(const char *name)
{
	for (size_t i = 0; i < output_format_count; i++) {
		if (strcmp(output_formats[i]->name, name) == 0)
			return output_formats[i];
	}
	return NULL;
}

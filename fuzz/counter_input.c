/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Files that say what to count, from anybody: the first byte chooses text, YAML or JSON, the
 * rest is the file. What is accepted has runs with counters.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "console/message.h"
#include "counting/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"a.txt", "a.yaml", "a.txt", "a.json"};
	struct counter_input_file input;
	struct problem problem;
	char *text;

	message_set_verbosity(-1);
	if (!size)
		return 0;
	text = malloc(size); /* no more than the text, so that reading on is seen */
	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	if (!counter_input_file_parse(names[data[0] % 4], text, size - 1, &input, &problem)) {
		for (size_t i = 0; i < input.count; i++) {
			if (!input.passes[i].counters || !*input.passes[i].counters)
				abort();
		}
		counter_input_file_deinit(&input);
	}
	free(text);
	return 0;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What kymo makes of experiments, for tests that read it with other tools:
 * causal_write EXPERIMENTS.ndjson DIRECTORY writes all files there and the summary to stdout.
 */
#include <stdio.h>

#include "output/causal.h"

int main(int argc, char **argv)
{
	struct causal_fit_options options = {.bootstrap = 500, .seed = 1};
	struct causal_data data = {0};
	struct causal_result result = {0};
	struct problem problem = {""};

	if (argc != 3)
		return 2;
	if (causal_data_read(&data, argv[1], &problem) < 0 ||
	    causal_fit(&data, &options, &result) < 0 ||
	    causal_write_all(&data, &result, argv[2], &problem) < 0) {
		fprintf(stderr, "%s\n", problem.text);
		return 1;
	}
	causal_print_summary(&data, &result, stdout, false);
	causal_result_deinit(&result);
	causal_data_deinit(&data);
	return 0;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What kymo makes of experiments, for tests that read it with other tools:
 * causal_write EXPERIMENTS.ndjson DIRECTORY writes all files there and the summary to stdout.
 */
#include <stdio.h>

#include "output/causal/causal.h"

int main(int argc, char **argv)
{
	struct causal_fit_options options = {.bootstrap = 500, .seed = 1};
	struct causal_data data = {0};
	struct causal_fit_result result = {0};
	struct problem problem = {""};

	if (argc != 3)
		return 2;
	if (causal_data_read_file(&data, argv[1], &problem) < 0 ||
	    causal_compute_predictions(&data, &options, &result) < 0 ||
	    causal_write_all_files(&data, &result, argv[2], &problem) < 0) {
		fprintf(stderr, "%s\n", problem.text);
		return 1;
	}
	causal_print_summary(&data, &result, stdout, false);
	causal_fit_result_deinit(&result);
	causal_data_deinit(&data);
	return 0;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * profile.txt.
 */
#include "output/writers.h"

int output_text(struct session *session, const struct output_options *options, FILE *stream,
		struct problem *problem)
{
	(void)options;
	(void)problem;
	fprintf(stream, "%s\n", session->command_line);
	return 0;
}

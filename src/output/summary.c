/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The summary at exit.
 */
#include "output/output.h"

int output_summary(struct session *session, const struct output_options *options, FILE *stream,
		   bool colour, struct problem *problem)
{
	(void)options;
	(void)colour;
	(void)problem;
	fprintf(stream, "%s\n", session->command_line);
	return 0;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * profile.json: the call tree and everything that its nodes refer to.
 */
#include "output/json_writer.h"
#include "output/writers.h"

int output_json(struct session *session, const struct output_options *options, FILE *stream,
		struct problem *problem)
{
	struct json_writer json;

	(void)options;
	json_writer_init(&json, stream);
	json_object_begin(&json, NULL);
	json_text(&json, "schema", "kymo.profile/1");
	json_text(&json, "command_line", session->command_line);
	json_object_end(&json);
	return json_writer_finish(&json, problem);
}

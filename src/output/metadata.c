/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * metadata.json: what ran, where, with which settings, what was recorded and what was lost.
 */
#include "output/json_writer.h"
#include "output/output.h"

int output_metadata(struct session *session, FILE *stream, struct problem *problem)
{
	struct json_writer json;

	json_writer_init(&json, stream);
	json_object_begin(&json, NULL);
	json_text(&json, "schema", "kymo.metadata/1");
	json_text(&json, "command_line", session->command_line);
	json_object_end(&json);
	return json_writer_finish(&json, problem);
}

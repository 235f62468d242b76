/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * metadata.json: what ran, where, with which settings, what was recorded and what was lost.
 */
#include "output/json/metadata.h"

#include "output/calls.h"
#include "output/json/parts.h"
#include "output/json/regions.h"
#include "output/output.h"

static void json_put_settings(struct json_writer *json, const struct session *session)
{
	json_object_begin(json, "settings");
	for (uint32_t i = 0; i < session->launch.setting_count; i++) {
		const struct model_setting *setting = &session->launch.settings[i];

		json_object_begin(json, setting->name);
		json_put_text(json, "value", setting->value);
		json_put_text(json, "origin", setting->origin);
		json_object_end(json);
	}
	json_object_end(json);
}

static void json_put_clocks(struct json_writer *json, const struct session *session)
{
	json_object_begin(json, "clocks");
	json_put_text(json, "time_base", "CLOCK_BOOTTIME");
	json_put_signed_integer(json, "realtime_minus_boottime_ns",
				session->realtime_minus_boottime_ns);
	json_object_end(json);
}

static void json_put_session_losses(struct json_writer *json, const struct session *session)
{
	uint64_t torn_bytes = 0, torn_chunks = 0, unknown_records = 0;

	json_object_begin(json, "losses");
	for (int loss = 0; loss < SPOOL_LOSS_COUNT; loss++) {
		uint64_t count = 0;

		for (uint32_t i = 0; i < session->process_count; i++)
			count += session->processes[i].losses[loss];
		if (loss <= SPOOL_LOSS_RING_OVERWRITE || count)
			json_put_count(json, spool_loss_name((enum spool_loss)loss), count);
	}
	for (uint32_t i = 0; i < session->process_count; i++) {
		torn_bytes += session->processes[i].torn_bytes;
		torn_chunks += session->processes[i].torn_chunks;
		unknown_records += session->processes[i].unknown_records;
	}
	json_put_count(json, "torn_bytes", torn_bytes);
	json_put_count(json, "torn_chunks", torn_chunks);
	json_put_count(json, "unknown_records", unknown_records);
	json_put_count(json, "unreadable_files", session->unreadable_file_count);
	json_object_end(json);
}

int output_write_metadata_json(struct session *session, FILE *stream, struct problem *problem)
{
	struct json_writer json;
	uint64_t samples = 0;

	for (uint32_t i = 0; i < session->process_count; i++)
		samples += session->processes[i].samples;
	json_writer_init(&json, stream);
	json_object_begin(&json, NULL);
	json_put_text(&json, "schema", "kymo.metadata/1");
	json_put_run(&json, session);
	json_put_count(&json, "samples", samples);
	json_put_session_region_counts(&json, session);
	json_put_region_component_descriptions(&json, session);
	calls_put_json_instrumentation(&json, session);
	json_put_clocks(&json, session);
	json_put_session_losses(&json, session);
	json_array_begin(&json, "problems");
	for (size_t i = 0; i < session->problem_count; i++)
		json_put_text(&json, NULL, session->problems[i]);
	json_array_end(&json);
	json_put_settings(&json, session);
	json_put_own_cost(&json, session);
	json_put_session_processes(&json, session);
	json_object_end(&json);
	return json_writer_finish(&json, problem);
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * launch.json, what the kymo command knows of the run: the command, the settings and where each
 * came from, and how the program ended. It is written by another process that may have been killed,
 * so every part of it is optional.
 */
#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "analysis/session_private.h"
#include "common/foreign_file.h"

#define LAUNCH_SCHEMA_NAME "kymo.launch/1"

static const char *copy_json_text(struct arena *arena, const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_string(value) ? arena_copy_bytes(arena, json_string_value(value),
							json_string_length(value))
				     : "";
}

static uint64_t read_json_count(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_integer(value) && json_integer_value(value) > 0
		       ? (uint64_t)json_integer_value(value)
		       : 0;
}

static int read_command_line(struct session *session, const json_t *root)
{
	struct arena *arena = &session_get_private(session)->arena;
	struct model_program_launch *launch = &session->launch;
	const json_t *command = json_object_get(root, "command");
	size_t count = json_array_size(command);
	const char **words = arena_allocate(arena, (count + 1) * sizeof(*words));

	if (!words)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const char *word = json_string_value(json_array_get(command, i));

		words[i] = arena_copy_bytes(arena, word ? word : "", word ? strlen(word) : 0);
		if (!words[i])
			return -ENOMEM;
	}
	launch->command = words;
	launch->command_argument_count = (uint32_t)count;
	session->command_line =
		session_quote_arguments(arena, words, launch->command_argument_count);
	return session->command_line ? 0 : -ENOMEM;
}

static int read_settings(struct session *session, json_t *root)
{
	struct arena *arena = &session_get_private(session)->arena;
	struct model_program_launch *launch = &session->launch;
	json_t *settings = json_object_get(root, "settings"), *entry;
	struct model_setting *list =
		arena_allocate(arena, (json_object_size(settings) + 1) * sizeof(*list));
	const char *name;

	if (!list)
		return -ENOMEM;
	json_object_foreach(settings, name, entry)
	{
		struct model_setting *setting = &list[launch->setting_count++];

		setting->name = arena_copy_bytes(arena, name, strlen(name));
		setting->value = copy_json_text(arena, entry, "value");
		setting->origin = copy_json_text(arena, entry, "origin");
		if (!setting->name || !setting->value || !setting->origin)
			return -ENOMEM;
	}
	launch->settings = list;
	return 0;
}

static int read_launch_object(struct session *session, json_t *root)
{
	struct arena *arena = &session_get_private(session)->arena;
	struct model_program_launch *launch = &session->launch;
	const json_t *wait_status = json_object_get(root, "wait_status");

	launch->known = true;
	launch->pid = (uint32_t)read_json_count(root, "pid");
	launch->user_ns = read_json_count(root, "user_ns");
	launch->system_ns = read_json_count(root, "system_ns");
	launch->load_ns = read_json_count(root, "kymo_load_ns");
	launch->fork_ns = read_json_count(root, "kymo_fork_ns");
	launch->signal_ns = read_json_count(root, "kymo_signal_ns");
	launch->start_realtime_ns = read_json_count(root, "start_realtime_ns");
	launch->end_realtime_ns = read_json_count(root, "end_realtime_ns");
	launch->attached = json_is_true(json_object_get(root, "attached"));
	launch->is_wait_status_known = json_is_integer(wait_status);
	launch->wait_status = (int)json_integer_value(wait_status);
	launch->kymo_version = copy_json_text(arena, root, "kymo_version");
	launch->host = copy_json_text(arena, root, "host");
	launch->working_directory = copy_json_text(arena, root, "working_directory");
	if (!launch->kymo_version || !launch->host || !launch->working_directory)
		return -ENOMEM;
	if (read_command_line(session, root) < 0)
		return -ENOMEM;
	return read_settings(session, root);
}

static int read_launch_file(struct session *session, const char *path)
{
	json_error_t error;
	json_t *root;
	FILE *stream;
	const char *schema;
	int result;

	if (access(path, F_OK) != 0)
		return session_add_problem_line(
			session,
			"%s is missing: settings and the program's exit status are "
			"not known",
			path);
	stream = foreign_open_stream(&foreign_policy_of_result_files, path);
	if (!stream)
		return session_add_problem_line(session,
						"cannot read %s: %s; settings are not known", path,
						foreign_error_to_text(errno));
	root = json_loadf(stream, 0, &error);
	fclose(stream);
	if (!root)
		return session_add_problem_line(session, "%s:%d:%d: %s; settings are not known",
						path, error.line, error.column, error.text);
	schema = json_string_value(json_object_get(root, "schema"));
	if (schema && strcmp(schema, LAUNCH_SCHEMA_NAME) == 0)
		result = read_launch_object(session, root);
	else
		result = session_add_problem_line(session, "%s: not of schema %s; ignored", path,
						  LAUNCH_SCHEMA_NAME);
	json_decref(root);
	return result;
}

int session_read_launch(struct session *session, struct problem *problem)
{
	struct model_program_launch *launch = &session->launch;
	char *path = arena_format_text(&session_get_private(session)->arena, "%s/launch.json",
				       session->directory);

	launch->kymo_version = launch->host = launch->working_directory = "";
	if (!path || read_launch_file(session, path) < 0)
		return session_set_out_of_memory_problem(problem);
	return 0;
}

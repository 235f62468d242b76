/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * launch.json: what was run and with which settings, beside the spool, for the reader. Written
 * before the program starts and again after its end, to a temporary name and renamed.
 */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/launch.h"

/* Strings of the system need not be UTF-8; JSON must be. */
static json_t *launch_text(const char *text)
{
	json_t *string = json_string(text);
	char *copy;

	if (string)
		return string;
	copy = strdup(text);
	if (!copy)
		return NULL;
	for (char *c = copy; *c; c++) {
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	}
	string = json_string(copy);
	free(copy);
	return string;
}

static json_int_t launch_ns(const struct timespec *time)
{
	return (json_int_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

static json_t *launch_settings(const struct resolved *settings)
{
	json_t *object = json_object();

	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		const struct resolved_value *value = &settings->values[id];
		json_t *entry;

		if (settings_table[id].visibility == SETTING_INTERNAL)
			continue;
		entry = json_object();
		json_object_set_new(entry, "value", launch_text(value->text));
		json_object_set_new(entry, "origin",
				    json_string(resolved_origin_name(value->origin)));
		if (value->source)
			json_object_set_new(entry, "source", launch_text(value->source));
		json_object_set_new(object, settings_table[id].name, entry);
	}
	return object;
}

static void launch_add_end(json_t *root, const struct supervised *end)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	json_object_set_new(root, "pid", json_integer(end->pid));
	if (end->wait_status >= 0)
		json_object_set_new(root, "wait_status", json_integer(end->wait_status));
	json_object_set_new(root, "user_ns", json_integer(end->user_ns));
	json_object_set_new(root, "system_ns", json_integer(end->system_ns));
	json_object_set_new(root, "end_realtime_ns", json_integer(launch_ns(&now)));
}

static json_t *launch_describe(const struct launch *launch)
{
	json_t *root = json_object(), *command = json_array();
	char host[256] = "", directory[PATH_MAX];

	gethostname(host, sizeof(host) - 1);
	for (size_t i = 0; i < launch->argument_count; i++)
		json_array_append_new(command, launch_text(launch->arguments[i]));
	json_object_set_new(root, "schema", json_string("kymo.launch/1"));
	json_object_set_new(root, "kymo_version", json_string(KYMO_VERSION));
	json_object_set_new(root, "command", command);
	if (getcwd(directory, sizeof(directory)))
		json_object_set_new(root, "working_directory", launch_text(directory));
	json_object_set_new(root, "host", launch_text(host));
	json_object_set_new(root, "start_realtime_ns", json_integer(launch_ns(&launch->start)));
	json_object_set_new(root, "settings", launch_settings(launch->settings));
	return root;
}

static int launch_store(const json_t *root, const char *directory, struct problem *problem)
{
	char path[PATH_MAX], temporary[PATH_MAX];

	snprintf(path, sizeof(path), "%s/launch.json", directory);
	if (snprintf(temporary, sizeof(temporary), "%s/.launch.json.%ld", directory,
		     (long)getpid()) >= (int)sizeof(temporary))
		return problem_set(problem, -ENAMETOOLONG, "'%s' is too long a path", directory);
	errno = ENOMEM;
	if (json_dump_file(root, temporary, JSON_INDENT(2)) || rename(temporary, path)) {
		int error = errno;

		unlink(temporary);
		return problem_set(problem, -error, "cannot write '%s': %s", path, strerror(error));
	}
	return 0;
}

int launch_write_json(const struct launch *launch, const struct supervised *end,
		      struct problem *problem)
{
	json_t *root = launch_describe(launch);
	int error;

	if (end)
		launch_add_end(root, end);
	error = launch_store(root, launch->session, problem);
	if (!error && launch->in_memory)
		error = launch_store(root, launch->result, problem);
	json_decref(root);
	return error;
}

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

#include "common/cleanup.h"
#include "files/atomic_file.h"
#include "launch/launch.h"

/* Strings of the system need not be UTF-8; JSON must be. */
static json_t *text_to_utf8_json(const char *text)
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

static json_int_t timespec_to_ns(const struct timespec *time)
{
	return (json_int_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

static json_t *launch_settings_to_json(const struct effective_settings *settings)
{
	json_t *object = json_object();

	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		const struct effective_value *value = &settings->values[id];
		json_t *entry;

		if (settings_table[id].visibility == SETTING_INTERNAL)
			continue;
		entry = json_object();
		json_object_set_new(entry, "value", text_to_utf8_json(value->text));
		json_object_set_new(entry, "origin",
				    json_string(effective_get_origin_name(value->origin)));
		if (value->source)
			json_object_set_new(entry, "source", text_to_utf8_json(value->source));
		json_object_set_new(object, settings_table[id].name, entry);
	}
	return object;
}

static void add_program_end_to_json(json_t *root, const struct supervised_program_end *end)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	json_object_set_new(root, "pid", json_integer(end->pid));
	if (end->wait_status >= 0)
		json_object_set_new(root, "wait_status", json_integer(end->wait_status));
	json_object_set_new(root, "user_ns", json_integer(end->user_ns));
	json_object_set_new(root, "system_ns", json_integer(end->system_ns));
	json_object_set_new(root, "end_realtime_ns", json_integer(timespec_to_ns(&now)));
}

static json_t *launch_to_json(const struct launch *launch)
{
	json_t *root = json_object(), *command = json_array();
	char host[256] = "", directory[PATH_MAX];

	gethostname(host, sizeof(host) - 1);
	for (size_t i = 0; i < launch->argument_count; i++)
		json_array_append_new(command, text_to_utf8_json(launch->arguments[i]));
	json_object_set_new(root, "schema", json_string("kymo.launch/1"));
	json_object_set_new(root, "kymo_version", json_string(KYMO_VERSION));
	json_object_set_new(root, "command", command);
	if (launch->attached)
		json_object_set_new(root, "attached", json_true());
	if (getcwd(directory, sizeof(directory)))
		json_object_set_new(root, "working_directory", text_to_utf8_json(directory));
	json_object_set_new(root, "host", text_to_utf8_json(host));
	json_object_set_new(root, "start_realtime_ns",
			    json_integer(timespec_to_ns(&launch->start)));
	if (launch->image_load_cost_ns)
		json_object_set_new(root, "kymo_load_ns",
				    json_integer((json_int_t)launch->image_load_cost_ns));
	if (launch->fork_cost_ns)
		json_object_set_new(root, "kymo_fork_ns",
				    json_integer((json_int_t)launch->fork_cost_ns));
	if (launch->signal_cost_ns)
		json_object_set_new(root, "kymo_signal_ns",
				    json_integer((json_int_t)launch->signal_cost_ns));
	json_object_set_new(root, "settings", launch_settings_to_json(launch->settings));
	return root;
}

static int write_launch_json_in_directory(const json_t *root, const char *directory,
					  struct problem *problem)
{
	char path[PATH_MAX];
	_cleanup_(cleanup_free) char *text = json_dumps(root, JSON_INDENT(2));
	int error = -ENOMEM;

	if (snprintf(path, sizeof(path), "%s/launch.json", directory) >= (int)sizeof(path))
		return problem_set(problem, -ENAMETOOLONG, "'%s' is too long a path", directory);
	if (text)
		error = atomic_file_write_parts(path, ATOMIC_FILE_MODE_BY_UMASK,
						&(struct atomic_file_part){text, strlen(text)}, 1);
	return error ? problem_set(problem, error, "cannot write '%s': %s", path, strerror(-error))
		     : 0;
}

int launch_write_json(const struct launch *launch, const struct supervised_program_end *end,
		      struct problem *problem)
{
	json_t *root = launch_to_json(launch);
	int error;

	if (end)
		add_program_end_to_json(root, end);
	error = write_launch_json_in_directory(root, launch->session, problem);
	if (!error && (launch->is_session_in_memory || launch->is_session_to_be_moved))
		error = write_launch_json_in_directory(root, launch->result, problem);
	json_decref(root);
	return error;
}

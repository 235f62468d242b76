/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Preparing a run; see launch.h. launch.json is in json.c.
 */
#include "launch/launch.h"
#include "launch/directory_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/array.h"
#include "console/message.h"
#include "launch/parts.h"
#include "launch/python_start.h"
#include "launch/result_path.h"
#include "settings/events.h"

/* A directory in /dev/shm that only this user can read. */
static int launch_create_memory_session_dir(struct launch *launch, struct problem *problem)
{
	char path[] = "/dev/shm/kymo-4294967295-XXXXXX";

	snprintf(path, sizeof(path), "/dev/shm/kymo-%u-XXXXXX", (unsigned)getuid());
	if (!mkdtemp(path))
		return problem_set(problem, -errno,
				   "cannot keep data in memory (/dev/shm: %s); use "
				   "--use-temporary-files=on",
				   strerror(errno));
	launch->session = strdup(path);
	launch->is_session_in_memory = true;
	return launch->session ? 0 : problem_set(problem, -ENOMEM, "out of memory");
}

/* Whoever can exchange the directory of the results could have the program write, and take code to
 * execute, where they like. Files whose names are passed to processes lie in a directory that only
 * this user can change, until they have ended. */
static int launch_create_private_session_dir(struct launch *launch, struct problem *problem)
{
	static const char *const places[] = {"/var/tmp", "/tmp", "/dev/shm"};
	char resolved[PATH_MAX], path[PATH_MAX], why[PATH_MAX + 64];

	for (unsigned i = 0; !launch->session && i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s/kymo-%u-XXXXXX", places[i], (unsigned)getuid());
		if (!trusted_path_resolve_and_check(places[i], resolved, NULL) && mkdtemp(path))
			launch->session = strdup(path);
	}
	if (!launch->session)
		return problem_set(
			problem, -EPERM,
			"%s, who could exchange what is written to '%s', and there is no "
			"other place for it; choose another directory with -o",
			trusted_path_describe_untrusted_part(&launch->place.untrusted_part, why,
							     sizeof(why)),
			launch->place.shown);
	launch->is_session_to_be_moved = true;
	message_note("%s: the data is kept in '%s' until the program ends",
		     trusted_path_describe_untrusted_part(&launch->place.untrusted_part, why,
							  sizeof(why)),
		     launch->session);
	return 0;
}

int launch_create_directories(struct launch *launch, struct problem *problem)
{
	struct result_key_values keys = {launch->arguments[0], launch->start, getpid()};
	char spool[PATH_MAX];
	struct stat status;
	int error = result_directory_create(launch->settings, &keys, &launch->place, problem);

	if (error)
		return error;
	launch->result = launch->place.path;
	message_set_path_alias(launch->place.path, launch->place.shown);
	if (!effective_setting_bool(launch->settings, SETTING_USE_TEMPORARY_FILES))
		error = launch_create_memory_session_dir(launch, problem);
	else if (launch->place.descriptor >= 0)
		error = launch_create_private_session_dir(launch, problem);
	else
		launch->session = strdup(launch->result);
	if (!error && !launch->session)
		error = problem_set(problem, -ENOMEM, "out of memory");
	if (error)
		return error;
	snprintf(spool, sizeof(spool), "%s/spool", launch->session);
	if ((mkdir(spool, 0700) && errno != EEXIST) || lstat(spool, &status))
		return problem_set(problem, -errno, "cannot make '%s': %s", spool, strerror(errno));
	if (!S_ISDIR(status.st_mode))
		return problem_set(problem, -ENOTDIR, "'%s' is not a directory", spool);
	return launch_write_json(launch, NULL, problem);
}

int launch_move_or_remove_session(struct launch *launch, bool keep, struct problem *problem)
{
	int error = 0;

	if (launch->is_session_to_be_moved && keep)
		error = directory_copy_tree(launch->session, launch->result, problem);
	if (!error && (launch->is_session_in_memory || launch->is_session_to_be_moved))
		directory_remove_tree(launch->session);
	return error;
}

void launch_remove_created_directories(struct launch *launch)
{
	char path[PATH_MAX];

	launch_move_or_remove_session(launch, false, NULL);
	snprintf(path, sizeof(path), "%s/launch.json", launch->result);
	unlink(path);
	snprintf(path, sizeof(path), "%s/spool", launch->result);
	rmdir(path);
	result_place_remove_if_empty(&launch->place);
}

/* ---- environment ---- */

static bool launch_is_setting_variable(const char *variable)
{
	const char *equals = strchr(variable, '=');

	if (strncmp(variable, "KYMO_", 5) || !equals)
		return false;
	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		size_t length = strlen(settings_table[id].name);

		if (length == (size_t)(equals - variable) - 5 &&
		    !strncmp(settings_table[id].name, variable + 5, length))
			return true;
	}
	return false;
}

/* LD_PRELOAD with the libraries in front, unless they are there already (kymo under kymo). libkymo
 * is first, so that its wrappers are found before anything else. */
static char *format_preload_variable(const char *library, const char *front, const char *opencl,
				     const char *before)
{
	char own[PATH_MAX * 2 + 2];

	char *text;

	snprintf(own, sizeof(own), "%s%s%s", front, front[0] && opencl[0] ? ":" : "", opencl);
	if (before && strstr(before, library))
		return asprintf(&text, "LD_PRELOAD=%s", before) < 0 ? NULL : text;
	if (asprintf(&text, "LD_PRELOAD=%s%s%s%s%s", library, own[0] ? ":" : "", own,
		     before && *before ? ":" : "", before ? before : "") < 0)
		return NULL;
	return text;
}

/* Everything that is not a default goes into the environment, except for what is decided outside of
 * the program (which functions to instrument, which experiments); so does a default that overrides
 * another tool's variable, which the library would read otherwise. */
/* Python functions are chosen in the process. */
static bool launch_is_python_setting(unsigned id)
{
	static const enum setting_id used[] = {SETTING_COVERAGE,
					       SETTING_PYTHON_CALLS,
					       SETTING_PYTHON_BUILTINS,
					       SETTING_PYTHON_LABEL,
					       SETTING_PYTHON_FULL_PATH,
					       SETTING_PYTHON_DECORATORS,
					       SETTING_PYTHON_SETUP,
					       SETTING_REGEX_INCLUDE,
					       SETTING_REGEX_EXCLUDE,
					       SETTING_REGEX_RESTRICT,
					       SETTING_REGEX_MODULE_INCLUDE,
					       SETTING_REGEX_MODULE_EXCLUDE,
					       SETTING_REGEX_MODULE_RESTRICT};

	for (unsigned i = 0; i < ARRAY_SIZE(used); i++) {
		if (used[i] == id)
			return true;
	}
	return false;
}

static bool launch_exports_setting(const struct launch *launch, unsigned id)
{
	bool python = effective_setting_bool(launch->settings, SETTING_PYTHON_CALLS);
	bool outside = !strcmp(settings_table[id].category, "causal") ||
		       (!strcmp(settings_table[id].category, "instrument") &&
			id != SETTING_INSTRUMENT_DEMOTE && id != SETTING_INSTRUMENT_ARGUMENTS &&
			!(python && launch_is_python_setting(id)));

	/* What a file or a preset says goes by itself. */
	return id != SETTING_CONFIG_FILE && id != SETTING_PRESET &&
	       settings_table[id].visibility != SETTING_INTERNAL && !outside &&
	       !effective_setting_is_default(launch->settings, (enum setting_id)id);
}

static bool append_environment_entry(char **list, size_t *count, char *entry)
{
	if (entry)
		list[(*count)++] = entry;
	return entry != NULL;
}

static bool launch_add_setting_variable(char **list, size_t *count, enum setting_id id,
					const char *text)
{
	char *entry;

	return asprintf(&entry, "KYMO_%s=%s", settings_table[id].name, text) >= 0 &&
	       append_environment_entry(list, count, entry);
}

/* Lists of events go as the process can split them, and with codes for names that only the command
 * can find. */
static const struct {
	enum setting_id names_setting, codes_setting;
} event_name_and_code_settings[] = {
	{SETTING_COMPONENTS, SETTING_COMPONENT_EVENTS},
	{SETTING_SAMPLING_COUNTERS, SETTING_SAMPLING_COUNTER_EVENTS},
	{SETTING_SAMPLING_OVERFLOW_EVENT, SETTING_SAMPLING_OVERFLOW_CODE}};

static bool launch_is_perf_event_setting(unsigned id)
{
	for (unsigned i = 0; i < ARRAY_SIZE(event_name_and_code_settings); i++) {
		if (event_name_and_code_settings[i].names_setting == id)
			return true;
	}
	return false;
}

static bool launch_add_perf_event_variables(const struct launch *launch, char **list, size_t *count)
{
	bool complete = true;

	for (unsigned i = 0; complete && i < ARRAY_SIZE(event_name_and_code_settings); i++) {
		enum setting_id names = event_name_and_code_settings[i].names_setting;
		char *plain, *codes;

		if (effective_setting_is_default(launch->settings, names))
			continue;
		plain = events_replace_commas_in_items(
			effective_setting_text(launch->settings, names));
		codes = events_format_code_list(effective_setting_text(launch->settings, names));
		complete =
			plain && codes && launch_add_setting_variable(list, count, names, plain) &&
			(!*codes || launch_add_setting_variable(
					    list, count,
					    event_name_and_code_settings[i].codes_setting, codes));
		free(plain);
		free(codes);
	}
	return complete;
}

static bool launch_add_setting_variables(const struct launch *launch, char **list, size_t *count)
{
	char *entry;

	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		if (launch_exports_setting(launch, id) && !launch_is_perf_event_setting(id) &&
		    !launch_add_setting_variable(list, count, (enum setting_id)id,
						 launch->settings->values[id].text))
			return false;
	}
	if (!launch_add_perf_event_variables(launch, list, count))
		return false;
	if (launch->plan_socket_path &&
	    !launch_add_setting_variable(list, count, SETTING_INSTRUMENT, launch->plan_socket_path))
		return false;
	if (launch->causal_directory &&
	    !launch_add_setting_variable(list, count, SETTING_CAUSAL, launch->causal_directory))
		return false;
	return asprintf(&entry, "KYMO_SPOOL_DIRECTORY=%s/spool", launch->session) >= 0 &&
	       append_environment_entry(list, count, entry);
}

static bool environment_has_variable(char *const *environment, const char *variable)
{
	size_t length = strlen(variable);

	for (; *environment; environment++) {
		if (!strncmp(*environment, variable, length) && (*environment)[length] == '=')
			return true;
	}
	return false;
}

static bool launch_add_named_variable(char **list, size_t *count, const char *variable,
				      const char *front)
{
	char *entry;

	return asprintf(&entry, "%s=%s", variable, front) >= 0 &&
	       append_environment_entry(list, count, entry);
}

/* libkymo-dl as the tool of OpenMP and Kokkos runtimes, unless the user has one of their own.
 * Kokkos before 3.7 knows KOKKOS_PROFILE_LIBRARY only; later ones warn on standard error about it,
 * and abort when both are set and differ (Kokkos_Profiling.cpp), so that one is left to the user.
 */
static bool launch_add_ompt_and_kokkos_variables(const struct launch *launch,
						 char *const *environment, const char *front,
						 char **list, size_t *count)
{
	if (!front[0])
		return true;
	if (effective_setting_bool(launch->settings, SETTING_USE_OMPT) &&
	    !environment_has_variable(environment, "OMP_TOOL_LIBRARIES") &&
	    !launch_add_named_variable(list, count, "OMP_TOOL_LIBRARIES", front))
		return false;
	return !effective_setting_bool(launch->settings, SETTING_USE_KOKKOSP) ||
	       environment_has_variable(environment, "KOKKOS_TOOLS_LIBS") ||
	       environment_has_variable(environment, "KOKKOS_PROFILE_LIBRARY") ||
	       launch_add_named_variable(list, count, "KOKKOS_TOOLS_LIBS", front);
}

int launch_find_libkymo_preload_path(char path[PATH_MAX], struct problem *problem)
{
	int error = part_find_path_or_set_problem(PART_LIBKYMO, path, problem);

	if (error || part_find_or_link_preload_path(PART_LIBKYMO, PATH_MAX, path))
		return error;
	part_find_path(PART_LIBKYMO, path);
	return problem_set(problem, -EINVAL,
			   "'%s' cannot be preloaded: LD_PRELOAD takes no path with blanks or "
			   "colons, and no link can be made in /var/tmp, /tmp or /dev/shm",
			   path);
}

int launch_environment_create(const struct launch *launch, const char *library, char **environment,
			      char ***ret, struct problem *problem)
{
	size_t inherited = 0, count = 0;
	const char *preload = NULL;
	bool complete = true;
	char *python_path = NULL;
	char front[PATH_MAX], opencl[PATH_MAX];
	char **list;

	if (launch_has_python_start(launch) &&
	    launch_format_python_path(environment, &python_path, problem))
		return -EINVAL;
	while (environment[inherited])
		inherited++;
	list = calloc(inherited + SETTING_COUNT + 12, sizeof(*list));
	if (!list) {
		free(python_path);
		return problem_set(problem, -ENOMEM, "out of memory");
	}
	if (python_path)
		append_environment_entry(list, &count, python_path);
	/* Where there is none, the program runs without user regions, OpenMP and Kokkos. */
	part_find_or_link_preload_path(PART_LIBKYMO_DL, PATH_MAX, front);
	if (!launch_find_tool_library_to_preload(launch, opencl))
		launch_find_opencl_library_to_preload(launch, opencl);
	for (size_t i = 0; complete && i < inherited; i++) {
		if (!strncmp(environment[i], "LD_PRELOAD=", 11))
			preload = environment[i] + 11;
		else if (python_path && !strncmp(environment[i], "PYTHONPATH=", 11))
			continue;
		else if (!launch_is_setting_variable(environment[i]) &&
			 !launch_is_device_runtime_variable(environment[i]))
			complete = append_environment_entry(list, &count, strdup(environment[i]));
	}
	complete = complete && launch_add_setting_variables(launch, list, &count) &&
		   launch_add_ompt_and_kokkos_variables(launch, environment, front, list, &count) &&
		   launch_add_device_runtime_variables(launch, environment, list, &count) &&
		   launch_add_nccl_variables(launch, environment, list, &count) &&
		   append_environment_entry(
			   list, &count, format_preload_variable(library, front, opencl, preload));
	if (!complete) {
		launch_environment_destroy(list);
		return problem_set(problem, -ENOMEM, "out of memory");
	}
	*ret = list;
	return 0;
}

void launch_environment_destroy(char **environment)
{
	for (char **entry = environment; entry && *entry; entry++)
		free(*entry);
	free(environment);
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Preparing a run; see launch.h. launch.json is in launch_json.c.
 */
#include "cmd/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/events.h"
#include "cmd/result_path.h"

/* From the directory of the running binary. The first is the build tree. */
static const char *const library_places[] = {"/../libkymo/libkymo.so",
					     "/../" KYMO_LIBRARY_RELATIVE};

int launch_find_library(char **ret, struct problem *problem)
{
	char directory[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", directory, sizeof(directory) - 1);
	char *slash;

	directory[length > 0 ? length : 0] = '\0';
	slash = strrchr(directory, '/');
	if (slash)
		*slash = '\0';
	*ret = NULL;
	for (unsigned i = 0; !*ret && i < sizeof(library_places) / sizeof(library_places[0]); i++) {
		char path[PATH_MAX * 2];

		snprintf(path, sizeof(path), "%s%s", directory, library_places[i]);
		*ret = realpath(path, NULL);
	}
	if (!*ret)
		*ret = realpath(KYMO_LIBRARY_INSTALLED, NULL);
	if (!*ret)
		return problem_set(problem, -ENOENT,
				   "cannot find libkymo.so (looked in '%s%s' and '%s')", directory,
				   library_places[1], KYMO_LIBRARY_INSTALLED);
	if (strpbrk(*ret, " :\t\n"))
		return problem_set(problem, -EINVAL,
				   "'%s' cannot be preloaded: LD_PRELOAD takes no path with blanks "
				   "or colons",
				   *ret);
	return 0;
}

/* A directory in /dev/shm that only this user can read. */
static int launch_memory_session(struct launch *launch, struct problem *problem)
{
	char path[] = "/dev/shm/kymo-4294967295-XXXXXX";

	snprintf(path, sizeof(path), "/dev/shm/kymo-%u-XXXXXX", (unsigned)getuid());
	if (!mkdtemp(path))
		return problem_set(problem, -errno,
				   "cannot keep data in memory (/dev/shm: %s); use "
				   "--use-temporary-files=on",
				   strerror(errno));
	launch->session = strdup(path);
	launch->in_memory = true;
	return launch->session ? 0 : problem_set(problem, -ENOMEM, "out of memory");
}

int launch_prepare(struct launch *launch, struct problem *problem)
{
	struct result_keys keys = {launch->arguments[0], launch->start, getpid()};
	char spool[PATH_MAX];
	int error = result_directory_create(launch->settings, &keys, &launch->result, problem);

	if (error)
		return error;
	if (resolved_bool(launch->settings, SETTING_USE_TEMPORARY_FILES))
		launch->session = strdup(launch->result);
	else
		error = launch_memory_session(launch, problem);
	if (!error && !launch->session)
		error = problem_set(problem, -ENOMEM, "out of memory");
	if (error)
		return error;
	snprintf(spool, sizeof(spool), "%s/spool", launch->session);
	if (mkdir(spool, 0700) && errno != EEXIST)
		return problem_set(problem, -errno, "cannot make '%s': %s", spool, strerror(errno));
	return launch_write_json(launch, NULL, problem);
}

void launch_discard_session(struct launch *launch)
{
	static const char *const patterns[] = {"%s/spool/*", "%s/instrumentation/*", "%s/causal/*",
					       "%s/*", "%s"};

	for (unsigned i = 0; launch->in_memory && i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		char pattern[PATH_MAX];
		glob_t found;

		snprintf(pattern, sizeof(pattern), patterns[i], launch->session);
		if (glob(pattern, GLOB_NOSORT, NULL, &found))
			continue;
		for (size_t file = 0; file < found.gl_pathc; file++)
			remove(found.gl_pathv[file]);
		globfree(&found);
	}
}

void launch_discard_result(struct launch *launch)
{
	char path[PATH_MAX], link[PATH_MAX];
	const char *name = strrchr(launch->result, '/') + 1;
	ssize_t length;

	launch_discard_session(launch);
	snprintf(path, sizeof(path), "%s/launch.json", launch->result);
	unlink(path);
	snprintf(path, sizeof(path), "%s/spool", launch->result);
	rmdir(path);
	snprintf(path, sizeof(path), "%.*slatest", (int)(name - launch->result), launch->result);
	length = readlink(path, link, sizeof(link) - 1);
	if (!rmdir(launch->result) && length == (ssize_t)strlen(name) &&
	    !strncmp(link, name, strlen(name)))
		unlink(path);
}

/* ---- environment ---- */

static bool launch_is_setting(const char *variable)
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

/* Where there is none, the program runs without user regions, OpenMP and Kokkos. */
void launch_front_library(const char *library, char *front)
{
	static const char *const places[] = {"/libkymo-dl.so", "/../libkymo-dl/libkymo-dl.so"};
	const char *slash = strrchr(library, '/');

	for (unsigned i = 0; slash && i < sizeof(places) / sizeof(places[0]); i++) {
		char path[PATH_MAX * 2];

		snprintf(path, sizeof(path), "%.*s%s", (int)(slash - library), library, places[i]);
		if (realpath(path, front))
			return;
	}
	front[0] = '\0';
}

/* LD_PRELOAD with the libraries in front, unless they are there already (kymo under kymo). libkymo
 * is first, so that its wrappers are found before anything else. */
static char *launch_preload(const char *library, const char *front, const char *opencl,
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
static bool launch_passes(const struct launch *launch, unsigned id)
{
	bool outside = !strcmp(settings_table[id].category, "causal") ||
		       (!strcmp(settings_table[id].category, "instrument") &&
			id != SETTING_INSTRUMENT_DEMOTE && id != SETTING_INSTRUMENT_ARGUMENTS);

	return id != SETTING_CONFIG_FILE && settings_table[id].visibility != SETTING_INTERNAL &&
	       !outside && !resolved_is_default(launch->settings, (enum setting_id)id);
}

static bool launch_add(char **list, size_t *count, char *entry)
{
	if (entry)
		list[(*count)++] = entry;
	return entry != NULL;
}

static bool launch_add_setting(char **list, size_t *count, enum setting_id id, const char *text)
{
	char *entry;

	return asprintf(&entry, "KYMO_%s=%s", settings_table[id].name, text) >= 0 &&
	       launch_add(list, count, entry);
}

/* Lists of events go as the process can split them, and with codes for names that only the command
 * can find. */
static const struct {
	enum setting_id names, codes;
} launch_events[] = {{SETTING_COMPONENTS, SETTING_COMPONENT_EVENTS},
		     {SETTING_SAMPLING_COUNTERS, SETTING_SAMPLING_COUNTER_EVENTS},
		     {SETTING_SAMPLING_OVERFLOW_EVENT, SETTING_SAMPLING_OVERFLOW_CODE}};

static bool launch_names_events(unsigned id)
{
	for (unsigned i = 0; i < sizeof(launch_events) / sizeof(launch_events[0]); i++) {
		if (launch_events[i].names == id)
			return true;
	}
	return false;
}

static bool launch_add_events(const struct launch *launch, char **list, size_t *count)
{
	bool complete = true;

	for (unsigned i = 0; complete && i < sizeof(launch_events) / sizeof(launch_events[0]);
	     i++) {
		enum setting_id names = launch_events[i].names;
		char *plain, *codes;

		if (resolved_is_default(launch->settings, names))
			continue;
		plain = events_plain_list(resolved_text(launch->settings, names));
		codes = events_codes(resolved_text(launch->settings, names));
		complete =
			plain && codes && launch_add_setting(list, count, names, plain) &&
			(!*codes || launch_add_setting(list, count, launch_events[i].codes, codes));
		free(plain);
		free(codes);
	}
	return complete;
}

static bool launch_add_settings(const struct launch *launch, char **list, size_t *count)
{
	char *entry;

	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		if (launch_passes(launch, id) && !launch_names_events(id) &&
		    !launch_add_setting(list, count, (enum setting_id)id,
					launch->settings->values[id].text))
			return false;
	}
	if (!launch_add_events(launch, list, count))
		return false;
	if (launch->plan_socket &&
	    !launch_add_setting(list, count, SETTING_INSTRUMENT, launch->plan_socket))
		return false;
	if (launch->causal_directory &&
	    !launch_add_setting(list, count, SETTING_CAUSAL, launch->causal_directory))
		return false;
	return asprintf(&entry, "KYMO_SPOOL_DIRECTORY=%s/spool", launch->session) >= 0 &&
	       launch_add(list, count, entry);
}

static bool launch_has(char *const *environment, const char *variable)
{
	size_t length = strlen(variable);

	for (; *environment; environment++) {
		if (!strncmp(*environment, variable, length) && (*environment)[length] == '=')
			return true;
	}
	return false;
}

static bool launch_add_tool(char **list, size_t *count, const char *variable, const char *front)
{
	char *entry;

	return asprintf(&entry, "%s=%s", variable, front) >= 0 && launch_add(list, count, entry);
}

/* libkymo-dl as the tool of OpenMP and Kokkos runtimes, unless the user has one of their own.
 * Kokkos before 3.7 knows KOKKOS_PROFILE_LIBRARY only; later ones warn on standard error about it,
 * and abort when both are set and differ (Kokkos_Profiling.cpp), so that one is left to the user.
 */
static bool launch_add_tools(const struct launch *launch, char *const *environment,
			     const char *front, char **list, size_t *count)
{
	if (!front[0])
		return true;
	if (resolved_bool(launch->settings, SETTING_USE_OMPT) &&
	    !launch_has(environment, "OMP_TOOL_LIBRARIES") &&
	    !launch_add_tool(list, count, "OMP_TOOL_LIBRARIES", front))
		return false;
	return !resolved_bool(launch->settings, SETTING_USE_KOKKOSP) ||
	       launch_has(environment, "KOKKOS_TOOLS_LIBS") ||
	       launch_has(environment, "KOKKOS_PROFILE_LIBRARY") ||
	       launch_add_tool(list, count, "KOKKOS_TOOLS_LIBS", front);
}

int launch_environment_create(const struct launch *launch, const char *library, char **environment,
			      char ***ret, struct problem *problem)
{
	size_t inherited = 0, count = 0;
	const char *preload = NULL;
	bool complete = true;
	char front[PATH_MAX], opencl[PATH_MAX];
	char **list;

	while (environment[inherited])
		inherited++;
	list = calloc(inherited + SETTING_COUNT + 12, sizeof(*list));
	if (!list)
		return problem_set(problem, -ENOMEM, "out of memory");
	launch_front_library(library, front);
	if (!launch_early_library(launch, library, opencl))
		launch_opencl_library(launch, library, opencl);
	for (size_t i = 0; complete && i < inherited; i++) {
		if (!strncmp(environment[i], "LD_PRELOAD=", 11))
			preload = environment[i] + 11;
		else if (!launch_is_setting(environment[i]) &&
			 !launch_is_device_list(environment[i]))
			complete = launch_add(list, &count, strdup(environment[i]));
	}
	complete = complete && launch_add_settings(launch, list, &count) &&
		   launch_add_tools(launch, environment, front, list, &count) &&
		   launch_add_devices(launch, environment, library, list, &count) &&
		   launch_add_nccl(launch, environment, library, list, &count) &&
		   launch_add(list, &count, launch_preload(library, front, opencl, preload));
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

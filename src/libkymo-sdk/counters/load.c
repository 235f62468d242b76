/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where definitions come from: the installed file (or that of ROCPROFILER_METRICS_PATH, upstream's
 * name for it), what tools load as text, which may stand in place of it, and the files of
 * KYMO_COUNTER_DEFS. Later ones may define anew what earlier ones have. They are read once, when
 * somebody first asks for counters.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <rocprofiler-sdk/experimental/counters.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "counters/definitions.h"
#include "libkymo-sdk/counters/counters.h"
#include "libkymo-sdk/state.h"

#define PATH_LENGTH       4096
#define FILE_SIZE_MAX     ((off_t)64 << 20)
#define ARCHITECTURES_MAX 8
#define NAME_LENGTH       128
#define FILE_NAME         "counter_defs.yaml"

static struct definitions definitions;
static bool are_read, is_replaced;
static uint32_t texts, installed; /* `installed`: the number of that file, 0: none */

static void load_told(void *context, const char *path, unsigned line, unsigned column,
		      const char *text)
{
	(void)context;
	sdk_counters_say("%s:%u:%u: %s", path, line, column, text);
}

/* ---- files ---- */

/* NULL: errno says why. */
static char *file_text(const char *path, size_t *size)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	char *text = NULL;
	ssize_t got = 0;

	if (file < 0)
		return NULL;
	if (fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
		errno = EFBIG;
		if (status.st_size <= FILE_SIZE_MAX)
			text = malloc((size_t)status.st_size + 1);
	} else {
		errno = EINVAL;
	}
	for (*size = 0; text && *size < (size_t)status.st_size; *size += (size_t)got) {
		got = read(file, text + *size, (size_t)status.st_size - *size);
		if (got < 0 && errno == EINTR)
			got = 0;
		else if (got <= 0)
			break;
	}
	close(file);
	return text;
}

/* false: it cannot be read. */
static bool load_file(const char *path)
{
	size_t size = 0;
	char *text = file_text(path, &size);

	if (!text)
		return false;
	if (definitions_add(&definitions, path, text, size, load_told, NULL) < 0)
		sdk_counters_say("%s: no memory for all of its counters", path);
	free(text);
	return true;
}

/* Beside the library, as it is installed or built: .../share/kymo/counter_defs.yaml, some folders
 * up from where it is. */
static bool load_installed(void)
{
	char path[PATH_LENGTH];
	Dl_info info;
	size_t length;

	if (!dladdr((void *)(uintptr_t)load_installed, &info) || !info.dli_fname ||
	    strlen(info.dli_fname) > PATH_LENGTH / 2)
		return false;
	if (!realpath(info.dli_fname, path))
		return false;
	for (int up = 0; up < 5; up++) {
		char *slash = strrchr(path, '/');

		if (!slash)
			return false;
		*slash = '\0';
		length = strlen(path);
		snprintf(path + length, sizeof(path) - length, "/share/kymo/" FILE_NAME);
		if (load_file(path)) {
			installed = definitions.files;
			return true;
		}
		path[length] = '\0';
	}
	return false;
}

/* A file, or a folder with one in it. */
static void load_upstream(const char *named)
{
	char path[PATH_LENGTH];
	struct stat status;

	snprintf(path, sizeof(path), "%s", named);
	if (stat(named, &status) == 0 && S_ISDIR(status.st_mode))
		snprintf(path, sizeof(path), "%s/" FILE_NAME, named);
	if (!load_file(path))
		sdk_counters_say("ROCPROFILER_METRICS_PATH: %s: %s", path, strerror(errno));
}

static void load_own(const char *named)
{
	char path[PATH_LENGTH];

	while (*named) {
		size_t length = strcspn(named, ":");

		if (length && length < sizeof(path)) {
			memcpy(path, named, length);
			path[length] = '\0';
			if (!load_file(path))
				sdk_counters_say("KYMO_COUNTER_DEFS: %s: %s", path,
						 strerror(errno));
		}
		named += length + (named[length] == ':');
	}
}

static void load_base(void)
{
	const char *upstream = getenv("ROCPROFILER_METRICS_PATH");

	if (upstream && upstream[0])
		load_upstream(upstream);
	else if (!load_installed())
		sdk_say(SDK_LOG_INFO, "there is no " FILE_NAME " beside the library");
}

/* With the lock held. */
static void load_all(void)
{
	const char *own = getenv("KYMO_COUNTER_DEFS");

	if (are_read)
		return;
	are_read = true;
	if (!is_replaced && !texts)
		load_base();
	if (own)
		load_own(own);
}

SDK_EXPORT rocprofiler_status_t
rocprofiler_load_counter_definition(const char *yaml, size_t size, rocprofiler_counter_flag_t flags)
{
	rocprofiler_status_t status = ROCPROFILER_STATUS_SUCCESS;
	char name[32];

	if (!yaml && size)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	sdk_counters_lock();
	if (are_read) {
		status = ROCPROFILER_STATUS_ERROR;
	} else {
		/* Behind the built-in ones, or in place of everything so far. */
		if (flags == ROCPROFILER_COUNTER_FLAG_APPEND_DEFINITION) {
			if (!is_replaced && !texts)
				load_base();
		} else {
			definitions_free(&definitions);
			is_replaced = true;
			installed = 0;
		}
		snprintf(name, sizeof(name), "definition %u", ++texts);
		if (yaml && definitions_add(&definitions, name, yaml, size, load_told, NULL) < 0)
			status = ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	}
	sdk_counters_unlock();
	return status;
}

/* ---- agents ---- */

struct architectures {
	const char *names[ARCHITECTURES_MAX + 1];
	char texts[ARCHITECTURES_MAX][NAME_LENGTH];
	int count;
};

static void architectures_add(struct architectures *all, const char *name, size_t length)
{
	if (!length || length >= NAME_LENGTH || all->count == ARCHITECTURES_MAX)
		return;
	memcpy(all->texts[all->count], name, length);
	all->texts[all->count][length] = '\0';
	all->names[all->count] = all->texts[all->count];
	all->count++;
}

/* What an agent goes by: its own name, then its family's. */
static void architectures_of(const rocprofiler_agent_v0_t *agent, struct architectures *all)
{
	const char *name = agent->name;
	size_t length = strlen(name);
	struct utsname machine;

	*all = (struct architectures){.count = 0};
	architectures_add(all, name, length);
	if (!strncmp(name, "gfx", 3) && length > 5) {
		architectures_add(all, name, length - 2); /* gfx942: gfx9; gfx1030: gfx10 */
	} else if (!strncmp(name, "sm_", 3)) {
		architectures_add(all, "sm", 2);
	} else if (!strncmp(name, "pocl_", 5) || !strncmp(name, "opencl_", 7)) {
		architectures_add(all, "opencl", 6);
	} else if (agent->type == ROCPROFILER_AGENT_TYPE_CPU) {
		if (!uname(&machine))
			architectures_add(all, machine.machine, strlen(machine.machine));
		architectures_add(all, "host", 4);
	}
}

static bool add_event(struct sdk_counter_kind *kind, const struct definition *definition)
{
	struct counting_event event = {.name = ""};
	struct counter *counter;
	enum counting_status status = kind->counting->event(
		kind->agent->id.handle, definition->block, definition->event, &event);

	event.name = definition->name;
	event.block = definition->block;
	event.event = definition->event;
	if (definition->description[0])
		event.description = definition->description;
	if (status || !sdk_counter_event_is_sane(&event)) {
		counter = catalogue_add(&kind->catalogue, definition->name);
		if (counter)
			counter->state = COUNTER_ABSENT;
	} else {
		counter = catalogue_add_event(&kind->catalogue, &event);
	}
	if (counter)
		counter->definition = definition;
	return counter != NULL;
}

static bool add_derived(struct sdk_counter_kind *kind, const struct definition *definition)
{
	struct counter *counter = catalogue_add(&kind->catalogue, definition->name);

	if (!counter)
		return false;
	counter->kind = COUNTER_DERIVED;
	counter->expression_text = definition->expression;
	counter->description = definition->description;
	counter->definition = definition;
	return true;
}

/* With the lock held. */
void sdk_counter_definitions(struct sdk_counter_kind *kind)
{
	struct architectures architectures;
	bool has_room = true;

	load_all();
	architectures_of(kind->agent, &architectures);
	for (uint32_t i = 0; i < definitions.count && has_room; i++) {
		const struct definition *definition = definitions.list[i];

		if (definitions_find(&definitions, definition->name, architectures.names) !=
		    definition)
			continue;
		has_room = definition->expression[0] ? add_derived(kind, definition)
						     : add_event(kind, definition);
	}
}

void sdk_counter_tell(const struct counter *counter, const struct expression_problem *problem)
{
	uint32_t line, column;

	if (!counter->definition) {
		sdk_counters_say("counter %s: character %u: %s", counter->name, problem->offset + 1,
				 problem->text);
		return;
	}
	/* It is good as it is; what is wrong is that this device does not list all that others do.
	 */
	if (counter->definition->file->number == installed)
		return;
	definition_place(counter->definition, problem->offset, &line, &column);
	sdk_counters_say("%s:%u:%u: %s", counter->definition->file->path, line, column,
			 problem->text);
}

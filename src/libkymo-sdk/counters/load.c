/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where definitions come from: the installed file (or that of ROCPROFILER_METRICS_PATH, upstream's
 * name for it), what tools load as text, which may stand in place of it, and the files of
 * KYMO_COUNTER_DEFS. Later ones may redefine what earlier ones have. They are read once, when
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
#include "libkymo-sdk/base/state.h"
#include "libkymo-sdk/counters/counters.h"

#define PATH_SIZE                4096
#define DEFINITION_FILE_SIZE_MAX ((off_t)64 << 20)
#define ARCHITECTURES_MAX        8
#define ARCHITECTURE_NAME_SIZE   128
#define DEFINITION_FILE_NAME     "counter_defs.yaml"

static struct counter_definitions loaded_counter_definitions;
static bool definitions_read_flag, base_definitions_replaced_flag;
static uint32_t tool_definition_text_count,
	installed_definition_file_number, /* `installed`: the number of that file, 0: none */
	base_definition_file_count;       /* those that were there before any of the user's */

static void report_definition_problem(void *context, const char *path, unsigned line,
				      unsigned column, const char *text)
{
	(void)context;
	sdk_counters_report_problem_line("%s:%u:%u: %s", path, line, column, text);
}

/* ---- files ---- */

/* NULL: errno says why. */
static char *read_file_text(const char *path, size_t *size)
{
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat status;
	char *text = NULL;
	ssize_t got = 0;

	if (file < 0)
		return NULL;
	if (fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
		errno = EFBIG;
		if (status.st_size <= DEFINITION_FILE_SIZE_MAX)
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
static bool load_definition_file(const char *path)
{
	size_t size = 0;
	char *text = read_file_text(path, &size);

	if (!text)
		return false;
	if (definitions_add_file_text(&loaded_counter_definitions, path, text, size,
				      report_definition_problem, NULL) < 0)
		sdk_counters_report_problem_line("%s: no memory for all of its counters", path);
	free(text);
	return true;
}

/* Beside the library, as it is installed or built: .../share/kymo/counter_defs.yaml, some folders
 * up from where it is. */
static bool load_installed_definitions(void)
{
	char path[PATH_SIZE];
	Dl_info info;
	size_t length;

	if (!dladdr((void *)(uintptr_t)load_installed_definitions, &info) || !info.dli_fname ||
	    strlen(info.dli_fname) > PATH_SIZE / 2)
		return false;
	if (!realpath(info.dli_fname, path))
		return false;
	for (int up = 0; up < 5; up++) {
		char *slash = strrchr(path, '/');

		if (!slash)
			return false;
		*slash = '\0';
		length = strlen(path);
		snprintf(path + length, sizeof(path) - length, "/share/kymo/" DEFINITION_FILE_NAME);
		if (load_definition_file(path)) {
			installed_definition_file_number = loaded_counter_definitions.files;
			return true;
		}
		path[length] = '\0';
	}
	return false;
}

/* A file, or a folder with one in it. */
static void load_definitions_of_metrics_path(const char *named)
{
	char path[PATH_SIZE];
	struct stat status;

	snprintf(path, sizeof(path), "%s", named);
	if (stat(named, &status) == 0 && S_ISDIR(status.st_mode))
		snprintf(path, sizeof(path), "%s/" DEFINITION_FILE_NAME, named);
	if (!load_definition_file(path))
		sdk_counters_report_problem_line("ROCPROFILER_METRICS_PATH: %s: %s", path,
						 strerror(errno));
}

static void load_definitions_of_user_paths(const char *named)
{
	char path[PATH_SIZE];

	while (*named) {
		size_t length = strcspn(named, ":");

		if (length && length < sizeof(path)) {
			memcpy(path, named, length);
			path[length] = '\0';
			if (!load_definition_file(path))
				sdk_counters_report_problem_line("KYMO_COUNTER_DEFS: %s: %s", path,
								 strerror(errno));
		}
		named += length + (named[length] == ':');
	}
}

static void load_base_definitions(void)
{
	const char *upstream = secure_getenv("ROCPROFILER_METRICS_PATH");

	if (upstream && upstream[0])
		load_definitions_of_metrics_path(upstream);
	else if (!load_installed_definitions())
		sdk_print_log_line(SDK_LOG_INFO,
				   "there is no " DEFINITION_FILE_NAME " beside the library");
	base_definition_file_count = loaded_counter_definitions.files;
}

/* With the lock held. */
static void load_all_definitions_once(void)
{
	const char *own = secure_getenv("KYMO_COUNTER_DEFS");

	if (definitions_read_flag)
		return;
	definitions_read_flag = true;
	if (!base_definitions_replaced_flag && !tool_definition_text_count)
		load_base_definitions();
	if (own)
		load_definitions_of_user_paths(own);
}

SDK_EXPORT rocprofiler_status_t
rocprofiler_load_counter_definition(const char *yaml, size_t size, rocprofiler_counter_flag_t flags)
{
	rocprofiler_status_t status = ROCPROFILER_STATUS_SUCCESS;
	char name[32];

	if (!yaml && size)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	sdk_counters_acquire_lock();
	if (definitions_read_flag) {
		status = ROCPROFILER_STATUS_ERROR;
	} else {
		/* Behind the built-in ones, or in place of everything so far. */
		if (flags == ROCPROFILER_COUNTER_FLAG_APPEND_DEFINITION) {
			if (!base_definitions_replaced_flag && !tool_definition_text_count)
				load_base_definitions();
		} else {
			definitions_free(&loaded_counter_definitions);
			base_definitions_replaced_flag = true;
			installed_definition_file_number = base_definition_file_count = 0;
		}
		snprintf(name, sizeof(name), "definition %u", ++tool_definition_text_count);
		if (yaml && definitions_add_file_text(&loaded_counter_definitions, name, yaml, size,
						      report_definition_problem, NULL) < 0)
			status = ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	}
	sdk_counters_release_lock();
	return status;
}

/* ---- agents ---- */

struct agent_architecture_list {
	const char *names[ARCHITECTURES_MAX + 1];
	char name_texts[ARCHITECTURES_MAX][ARCHITECTURE_NAME_SIZE];
	int count;
};

static void append_agent_architecture_name(struct agent_architecture_list *all, const char *name,
					   size_t length)
{
	if (!length || length >= ARCHITECTURE_NAME_SIZE || all->count == ARCHITECTURES_MAX)
		return;
	memcpy(all->name_texts[all->count], name, length);
	all->name_texts[all->count][length] = '\0';
	all->names[all->count] = all->name_texts[all->count];
	all->count++;
}

/* What an agent goes by: its own name, then its family's. */
static void collect_agent_architectures(const rocprofiler_agent_v0_t *agent,
					struct agent_architecture_list *all)
{
	const char *name = agent->name;
	size_t length = strlen(name);
	struct utsname machine;

	*all = (struct agent_architecture_list){.count = 0};
	append_agent_architecture_name(all, name, length);
	if (!strncmp(name, "gfx", 3) && length > 5) {
		append_agent_architecture_name(all, name,
					       length - 2); /* gfx942: gfx9; gfx1030: gfx10 */
	} else if (!strncmp(name, "sm_", 3)) {
		append_agent_architecture_name(all, "sm", 2);
	} else if (!strncmp(name, "pocl_", 5) || !strncmp(name, "opencl_", 7)) {
		append_agent_architecture_name(all, "opencl", 6);
	} else if (agent->type == ROCPROFILER_AGENT_TYPE_CPU) {
		if (!uname(&machine))
			append_agent_architecture_name(all, machine.machine,
						       strlen(machine.machine));
		append_agent_architecture_name(all, "host", 4);
	}
}

/* Who writes a definition for a device means an event that it has. The files at the base are for
 * many devices, of which none has all. */
static void report_event_not_on_agent(const struct sdk_agent_kind_with_counters *kind,
				      const struct counter_definition *definition)
{
	uint32_t line, column;

	if (definition->file->number <= base_definition_file_count)
		return;
	definition_offset_to_line_column(definition, 0, &line, &column);
	sdk_counters_report_problem_line("%s:%u:%u: %s: %s has no event '%s' in block '%s'",
					 definition->file->path, line, column, definition->name,
					 kind->agent->product_name, definition->event,
					 definition->block);
}

static bool add_event_counter_of_definition(struct sdk_agent_kind_with_counters *kind,
					    const struct counter_definition *definition)
{
	struct counting_event_info event = {.name = ""};
	struct counter *counter;
	enum counting_status status = kind->counting->event(
		kind->agent->id.handle, definition->block, definition->event, &event);

	event.name = definition->name;
	event.block = definition->block;
	event.event = definition->event;
	if (definition->description[0])
		event.description = definition->description;
	if (status || !sdk_counter_event_is_valid(&event)) {
		if (status == COUNTING_NO_SUCH_EVENT)
			report_event_not_on_agent(kind, definition);
		counter = catalogue_add_blank_counter(&kind->catalogue, definition->name);
		if (counter)
			counter->state = COUNTER_NOT_ON_AGENT;
	} else {
		counter = catalogue_add_event(&kind->catalogue, &event);
	}
	if (counter)
		counter->definition = definition;
	return counter != NULL;
}

static bool add_derived_counter_of_definition(struct sdk_agent_kind_with_counters *kind,
					      const struct counter_definition *definition)
{
	struct counter *counter = catalogue_add_blank_counter(&kind->catalogue, definition->name);

	if (!counter)
		return false;
	counter->kind = COUNTER_DERIVED;
	counter->expression_text = definition->expression;
	counter->description = definition->description;
	counter->definition = definition;
	return true;
}

/* With the lock held. */
void sdk_agent_kind_add_definitions(struct sdk_agent_kind_with_counters *kind)
{
	struct agent_architecture_list architectures;
	bool has_room = true;

	load_all_definitions_once();
	collect_agent_architectures(kind->agent, &architectures);
	for (uint32_t i = 0; i < loaded_counter_definitions.count && has_room; i++) {
		const struct counter_definition *definition = loaded_counter_definitions.list[i];

		if (definitions_find(&loaded_counter_definitions, definition->name,
				     architectures.names) != definition)
			continue;
		has_room = definition->expression[0]
				   ? add_derived_counter_of_definition(kind, definition)
				   : add_event_counter_of_definition(kind, definition);
	}
}

void sdk_counter_report_problem(const struct counter *counter,
				const struct expression_problem *problem)
{
	uint32_t line, column;

	if (!counter->definition) {
		sdk_counters_report_problem_line("counter %s: character %u: %s", counter->name,
						 problem->offset + 1, problem->text);
		return;
	}
	/* It is good as it is; what is wrong is that this device does not list all that others do.
	 */
	if (counter->definition->file->number == installed_definition_file_number)
		return;
	definition_offset_to_line_column(counter->definition, problem->offset, &line, &column);
	sdk_counters_report_problem_line("%s:%u:%u: %s", counter->definition->file->path, line,
					 column, problem->text);
}

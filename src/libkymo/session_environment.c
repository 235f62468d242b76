/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See session_environment.h. Runs in vfork children and between fork and exec: nothing here
 * allocates from libc, takes a lock, or writes to shared state once the program runs.
 */
#include "libkymo/session_environment.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/syscalls.h"
#include "core/base/text.h"

#define KEPT_SESSION_VARIABLES_MAX 160 /* settings and room for new ones */
#define PRELOAD_VARIABLE_PREFIX    "LD_PRELOAD="
#define PRELOAD_LENGTH_MAX         4096
#define SESSION_VARIABLE_PREFIX    "KYMO_"
#define LIBKYMO_NAME_PREFIX        "libkymo"

static struct {
	bool is_following_children;
	size_t count;
	const char *variables[KEPT_SESSION_VARIABLES_MAX];
	size_t own_preload_list_length;
	char own_preload_list[PRELOAD_LENGTH_MAX]; /* kymo's own entries of LD_PRELOAD, separated by
						    * colons
						    */
} saved_session_environment;

static bool begins_with(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* KYMO_*, and what makes libkymo-dl the tool of a runtime, and kymo's plugin that of NCCL; not the
 * user's own tools. */
static bool is_session_variable(const char *entry)
{
	return begins_with(entry, SESSION_VARIABLE_PREFIX) ||
	       (begins_with(entry, "NCCL_PROFILER_PLUGIN=") &&
		strstr(entry, "/libnccl-profiler-kymo")) ||
	       ((begins_with(entry, "OMP_TOOL_LIBRARIES=") ||
		 begins_with(entry, "KOKKOS_TOOLS_LIBS=")) &&
		strstr(entry, "/" LIBKYMO_NAME_PREFIX));
}

/* ---- entries of LD_PRELOAD: separated by blanks and colons (ld.so(8)) ---- */

static bool is_preload_separator(char c)
{
	return c == ' ' || c == ':' || c == '\t' || c == '\n';
}

/* The entry at or after *at; moves *at behind it. Length 0 at the end. */
static size_t read_next_preload_entry(const char **at, const char **ret)
{
	while (is_preload_separator(**at))
		++*at;
	*ret = *at;
	while (**at && !is_preload_separator(**at))
		++*at;
	return (size_t)(*at - *ret);
}

static bool entry_is_kymo_library(const char *entry, size_t length)
{
	const char *name = entry;

	for (size_t i = 0; i < length; i++) {
		if (entry[i] == '/')
			name = entry + i + 1;
	}
	return (size_t)(entry + length - name) >= sizeof(LIBKYMO_NAME_PREFIX) - 1 &&
	       !strncmp(name, LIBKYMO_NAME_PREFIX, sizeof(LIBKYMO_NAME_PREFIX) - 1);
}

static void store_kymo_preload_entries(const char *list)
{
	const char *entry;
	size_t length;

	while ((length = read_next_preload_entry(&list, &entry))) {
		if (!entry_is_kymo_library(entry, length) ||
		    saved_session_environment.own_preload_list_length + length + 2 >
			    PRELOAD_LENGTH_MAX)
			continue;
		if (saved_session_environment.own_preload_list_length)
			saved_session_environment.own_preload_list
				[saved_session_environment.own_preload_list_length++] = ':';
		memcpy(saved_session_environment.own_preload_list +
			       saved_session_environment.own_preload_list_length,
		       entry, length);
		saved_session_environment.own_preload_list_length += length;
	}
}

static bool preload_list_has_kymo(const char *list)
{
	const char *entry;
	size_t length;

	while ((length = read_next_preload_entry(&list, &entry))) {
		if (entry_is_kymo_library(entry, length))
			return true;
	}
	return false;
}

/* Takes kymo out of the list, in place. */
static void remove_kymo_from_preload_list(char *list)
{
	const char *at = list, *entry;
	char *to = list;
	size_t length;

	while ((length = read_next_preload_entry(&at, &entry))) {
		if (entry_is_kymo_library(entry, length))
			continue;
		if (to > list)
			*to++ = ':';
		memmove(to, entry, length);
		to += length;
	}
	*to = 0;
}

/* ---- the session ---- */

static char *const *copy_environment_and_session_texts(char *const *environment, size_t count,
						       char **copy, char *strings)
{
	for (size_t i = 0; i < count; i++) {
		copy[i] = environment[i];
		if (!is_session_variable(environment[i]))
			continue;
		copy[i] = strings;
		strcpy(strings, environment[i]);
		strings += strlen(strings) + 1;
		if (saved_session_environment.count < KEPT_SESSION_VARIABLES_MAX)
			saved_session_environment.variables[saved_session_environment.count++] =
				copy[i];
	}
	copy[count] = NULL;
	return copy;
}

char *const *session_environment_save(char *const *environment)
{
	size_t count = 0, bytes = 0;
	void *memory;

	for (; environment[count]; count++) {
		if (is_session_variable(environment[count]))
			bytes += strlen(environment[count]) + 1;
		if (begins_with(environment[count], PRELOAD_VARIABLE_PREFIX))
			store_kymo_preload_entries(environment[count] +
						   sizeof(PRELOAD_VARIABLE_PREFIX) - 1);
	}
	if (!bytes)
		return environment;
	memory = sys_mmap(NULL, (count + 1) * sizeof(char *) + bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sys_mmap_failed(memory))
		return environment;
	return copy_environment_and_session_texts(environment, count, memory,
						  (char *)memory + (count + 1) * sizeof(char *));
}

/* Takes kymo's entries out of the list, and kymo's libraries out of LD_PRELOAD. */
static void remove_session_variables(char **environment)
{
	char **kept_entry = environment;

	for (; *environment; environment++) {
		if (begins_with(*environment, PRELOAD_VARIABLE_PREFIX)) {
			remove_kymo_from_preload_list(*environment +
						      sizeof(PRELOAD_VARIABLE_PREFIX) - 1);
			if (!(*environment)[sizeof(PRELOAD_VARIABLE_PREFIX) - 1])
				continue;
		}
		if (!is_session_variable(*environment))
			*kept_entry++ = *environment;
	}
	*kept_entry = NULL;
}

void session_environment_set_child_inheritance(const struct options *options, char **environment)
{
	if (!options->enabled || !options->spool_directory[0])
		return;
	saved_session_environment.is_following_children =
		options->follow_children && saved_session_environment.own_preload_list_length;
	if (options->follow_children)
		return;
	/* libc has a list of its own when a constructor before ours has changed a variable. */
	if (environ != environment)
		remove_session_variables(environ);
	remove_session_variables(environment);
}

/* ---- other tools for devices ---- */

static bool program_is_gpu_tool(const char *program)
{
	static const char *const tools[] = {
		"ncu",          "ncu.bin",          "nsys",     "nsys.bin",
		"nvprof",       "nv-nsight-cu-cli", "cuda-gdb", "compute-sanitizer",
		"cuda-memcheck"};

	for (size_t i = 0; i < sizeof(tools) / sizeof(*tools); i++) {
		if (!strcmp(program, tools[i]))
			return true;
	}
	return false;
}

static bool remove_kymo_cuda_injections(char **environment)
{
	char **kept_entry = environment;
	bool any = false;

	for (; *environment; environment++) {
		bool ours = (begins_with(*environment, "CUDA_INJECTION64_PATH=") ||
			     begins_with(*environment, "NVTX_INJECTION64_PATH=")) &&
			    strstr(*environment, "/" LIBKYMO_NAME_PREFIX);

		any |= ours;
		if (!ours)
			*kept_entry++ = *environment;
	}
	*kept_entry = NULL;
	return any;
}

bool session_drop_cuda_injections_if_gpu_tool(const char *program, char **environment)
{
	bool any;

	if (!program_is_gpu_tool(program))
		return false;
	any = remove_kymo_cuda_injections(environment);
	if (environ != environment)
		any |= remove_kymo_cuda_injections(environ);
	return any;
}

/* ---- what a child's list lacks ---- */

static bool entries_set_same_variable(const char *a, const char *b)
{
	while (*a && *a == *b && *a != '=') {
		a++;
		b++;
	}
	return *a == '=' && *b == '=';
}

static bool environment_has_variable(char *const *environment, const char *variable)
{
	for (; environment && *environment; environment++) {
		if (entries_set_same_variable(*environment, variable))
			return true;
	}
	return false;
}

static char *find_preload_value(char *const *environment)
{
	for (; environment && *environment; environment++) {
		if (begins_with(*environment, PRELOAD_VARIABLE_PREFIX))
			return *environment + sizeof(PRELOAD_VARIABLE_PREFIX) - 1;
	}
	return NULL;
}

struct session_completion_sizes session_environment_measure_completion(char *const *environment)
{
	struct session_completion_sizes lacks = {0, 0};
	const char *preload;
	size_t count = 0, missing = 0;

	if (!saved_session_environment.is_following_children)
		return lacks;
	preload = find_preload_value(environment);
	if (!environment_has_variable(environment, "KYMO_SPOOL_DIRECTORY=")) {
		for (size_t i = 0; i < saved_session_environment.count; i++)
			missing += !environment_has_variable(
				environment, saved_session_environment.variables[i]);
	}
	if (!preload || !preload_list_has_kymo(preload))
		lacks.preload_text_bytes = sizeof(PRELOAD_VARIABLE_PREFIX) +
					   saved_session_environment.own_preload_list_length + 1 +
					   (preload ? strlen(preload) : 0);
	if (!missing && !lacks.preload_text_bytes)
		return lacks;
	while (environment && environment[count])
		count++;
	lacks.entries = count + missing + 2;
	return lacks;
}

/* kymo first, as the kymo command puts it. */
static void write_preload_variable(char *buffer, size_t size, const char *theirs)
{
	struct text_buffer text = text_buffer_init(buffer, size);

	text_append_string(&text, PRELOAD_VARIABLE_PREFIX);
	text_append_string(&text, saved_session_environment.own_preload_list);
	if (theirs && *theirs) {
		text_append_character(&text, ':');
		text_append_string(&text, theirs);
	}
}

void session_environment_write_completed(char *const *environment,
					 const struct session_completion_sizes *room, char **ret,
					 char *text)
{
	bool want_variables = !environment_has_variable(environment, "KYMO_SPOOL_DIRECTORY=");
	size_t count = 0, last = room->entries - 1;

	if (room->preload_text_bytes) {
		write_preload_variable(text, room->preload_text_bytes,
				       find_preload_value(environment));
		ret[count++] = text;
	}
	for (size_t i = 0; want_variables && i < saved_session_environment.count && count < last;
	     i++) {
		if (!environment_has_variable(environment, saved_session_environment.variables[i]))
			ret[count++] = (char *)saved_session_environment.variables[i];
	}
	for (; environment && *environment && count < last; environment++) {
		if (!room->preload_text_bytes ||
		    !begins_with(*environment, PRELOAD_VARIABLE_PREFIX))
			ret[count++] = *environment;
	}
	ret[count] = NULL;
}

void session_environment_list_init(struct session_environment_list *list, char *const *environment)
{
	struct session_completion_sizes lacks = session_environment_measure_completion(environment);
	char **entries = list->entries, *text = list->preload_text;

	list->environment = environment;
	list->is_completed = false;
	list->mapping = NULL;
	if (!lacks.entries)
		return;
	if (lacks.entries > SESSION_ENVIRONMENT_ON_STACK_ENTRIES_MAX ||
	    lacks.preload_text_bytes > SESSION_ENVIRONMENT_ON_STACK_TEXT_BYTES_MAX) {
		list->mapping_size = lacks.entries * sizeof(char *) + lacks.preload_text_bytes;
		list->mapping = sys_mmap(NULL, list->mapping_size, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (sys_mmap_failed(list->mapping)) {
			list->mapping = NULL;
			return;
		}
		entries = list->mapping;
		text = (char *)(entries + lacks.entries);
	}
	session_environment_write_completed(environment, &lacks, entries, text);
	list->environment = entries;
	list->is_completed = true;
}

void session_environment_list_init_without(struct session_environment_list *list,
					   char *const *environment)
{
	const char *preload = find_preload_value(environment);
	size_t count = 0,
	       text_bytes = preload ? strlen(preload) + sizeof(PRELOAD_VARIABLE_PREFIX) : 1;
	char **entries = list->entries, *text = list->preload_text, *own;

	list->environment = environment;
	list->is_completed = false;
	list->mapping = NULL;
	while (environment && environment[count])
		count++;
	if (count >= SESSION_ENVIRONMENT_ON_STACK_ENTRIES_MAX ||
	    text_bytes > SESSION_ENVIRONMENT_ON_STACK_TEXT_BYTES_MAX) {
		list->mapping_size = (count + 1) * sizeof(char *) + text_bytes;
		list->mapping = sys_mmap(NULL, list->mapping_size, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (sys_mmap_failed(list->mapping)) {
			list->mapping = NULL;
			return;
		}
		entries = list->mapping;
		text = (char *)(entries + count + 1);
	}
	own = text;
	memcpy(entries, environment, count * sizeof(char *));
	entries[count] = NULL;
	for (size_t i = 0; preload && i < count; i++) {
		if (!begins_with(entries[i], PRELOAD_VARIABLE_PREFIX))
			continue;
		memcpy(own, entries[i], text_bytes);
		entries[i] = own;
		break;
	}
	remove_session_variables(entries);
	list->environment = entries;
	list->is_completed = true;
}

void session_environment_list_deinit(struct session_environment_list *list)
{
	if (list->mapping)
		sys_munmap(list->mapping, list->mapping_size);
}

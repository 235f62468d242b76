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
#include "core/text.h"

#define KEPT_MAX    160 /* settings and room for new ones */
#define PRELOAD     "LD_PRELOAD="
#define PRELOAD_MAX 4096
#define PREFIX      "KYMO_"
#define OURS        "libkymo"

static struct {
	bool follow;
	size_t count;
	const char *variables[KEPT_MAX];
	size_t preload_length;
	char preload[PRELOAD_MAX]; /* kymo's own entries of LD_PRELOAD, separated by colons */
} kept;

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* KYMO_*, and what makes libkymo-dl the tool of a runtime, and kymo's plugin that of NCCL; not the
 * user's own tools. */
static bool is_session_variable(const char *entry)
{
	return begins(entry, PREFIX) ||
	       (begins(entry, "NCCL_PROFILER_PLUGIN=") &&
		strstr(entry, "/libnccl-profiler-kymo")) ||
	       ((begins(entry, "OMP_TOOL_LIBRARIES=") || begins(entry, "KOKKOS_TOOLS_LIBS=")) &&
		strstr(entry, "/" OURS));
}

/* ---- entries of LD_PRELOAD: separated by blanks and colons (ld.so(8)) ---- */

static bool is_separator(char c)
{
	return c == ' ' || c == ':' || c == '\t' || c == '\n';
}

/* The entry at or after *at; moves *at behind it. Length 0 at the end. */
static size_t next_entry(const char **at, const char **ret)
{
	while (is_separator(**at))
		++*at;
	*ret = *at;
	while (**at && !is_separator(**at))
		++*at;
	return (size_t)(*at - *ret);
}

static bool is_ours(const char *entry, size_t length)
{
	const char *name = entry;

	for (size_t i = 0; i < length; i++) {
		if (entry[i] == '/')
			name = entry + i + 1;
	}
	return (size_t)(entry + length - name) >= sizeof(OURS) - 1 &&
	       !strncmp(name, OURS, sizeof(OURS) - 1);
}

static void keep_preload(const char *list)
{
	const char *entry;
	size_t length;

	while ((length = next_entry(&list, &entry))) {
		if (!is_ours(entry, length) || kept.preload_length + length + 2 > PRELOAD_MAX)
			continue;
		if (kept.preload_length)
			kept.preload[kept.preload_length++] = ':';
		memcpy(kept.preload + kept.preload_length, entry, length);
		kept.preload_length += length;
	}
}

static bool preloads_us(const char *list)
{
	const char *entry;
	size_t length;

	while ((length = next_entry(&list, &entry))) {
		if (is_ours(entry, length))
			return true;
	}
	return false;
}

/* Takes kymo out of the list, in place. */
static void remove_ours(char *list)
{
	const char *at = list, *entry;
	char *to = list;
	size_t length;

	while ((length = next_entry(&at, &entry))) {
		if (is_ours(entry, length))
			continue;
		if (to > list)
			*to++ = ':';
		memmove(to, entry, length);
		to += length;
	}
	*to = 0;
}

/* ---- the session ---- */

static char *const *copy_variables(char *const *environment, size_t count, char **copy,
				   char *strings)
{
	for (size_t i = 0; i < count; i++) {
		copy[i] = environment[i];
		if (!is_session_variable(environment[i]))
			continue;
		copy[i] = strings;
		strcpy(strings, environment[i]);
		strings += strlen(strings) + 1;
		if (kept.count < KEPT_MAX)
			kept.variables[kept.count++] = copy[i];
	}
	copy[count] = NULL;
	return copy;
}

char *const *session_environment_keep(char *const *environment)
{
	size_t count = 0, bytes = 0;
	void *memory;

	for (; environment[count]; count++) {
		if (is_session_variable(environment[count]))
			bytes += strlen(environment[count]) + 1;
		if (begins(environment[count], PRELOAD))
			keep_preload(environment[count] + sizeof(PRELOAD) - 1);
	}
	if (!bytes)
		return environment;
	memory = sys_mmap(NULL, (count + 1) * sizeof(char *) + bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sys_failed(memory))
		return environment;
	return copy_variables(environment, count, memory,
			      (char *)memory + (count + 1) * sizeof(char *));
}

/* Takes kymo's entries out of the list, and kymo's libraries out of LD_PRELOAD. */
static void hide(char **environment)
{
	char **kept_entry = environment;

	for (; *environment; environment++) {
		if (begins(*environment, PRELOAD)) {
			remove_ours(*environment + sizeof(PRELOAD) - 1);
			if (!(*environment)[sizeof(PRELOAD) - 1])
				continue;
		}
		if (!is_session_variable(*environment))
			*kept_entry++ = *environment;
	}
	*kept_entry = NULL;
}

void session_environment_follow(const struct options *options, char **environment)
{
	if (!options->enabled || !options->spool_directory[0])
		return;
	kept.follow = options->follow_children && kept.preload_length;
	if (options->follow_children)
		return;
	/* libc has a list of its own when a constructor before ours has changed a variable. */
	if (environ != environment)
		hide(environ);
	hide(environment);
}

/* ---- what a child's list lacks ---- */

static bool same_name(const char *a, const char *b)
{
	while (*a && *a == *b && *a != '=') {
		a++;
		b++;
	}
	return *a == '=' && *b == '=';
}

static bool has_variable(char *const *environment, const char *variable)
{
	for (; environment && *environment; environment++) {
		if (same_name(*environment, variable))
			return true;
	}
	return false;
}

static char *find_preload(char *const *environment)
{
	for (; environment && *environment; environment++) {
		if (begins(*environment, PRELOAD))
			return *environment + sizeof(PRELOAD) - 1;
	}
	return NULL;
}

struct session_completion session_environment_lacks(char *const *environment)
{
	struct session_completion lacks = {0, 0};
	const char *preload;
	size_t count = 0, missing = 0;

	if (!kept.follow)
		return lacks;
	preload = find_preload(environment);
	if (!has_variable(environment, "KYMO_SPOOL_DIRECTORY=")) {
		for (size_t i = 0; i < kept.count; i++)
			missing += !has_variable(environment, kept.variables[i]);
	}
	if (!preload || !preloads_us(preload))
		lacks.text_bytes =
			sizeof(PRELOAD) + kept.preload_length + 1 + (preload ? strlen(preload) : 0);
	if (!missing && !lacks.text_bytes)
		return lacks;
	while (environment && environment[count])
		count++;
	lacks.entries = count + missing + 2;
	return lacks;
}

/* kymo first, as the kymo command puts it. */
static void write_preload(char *buffer, size_t size, const char *theirs)
{
	struct text text = text_on(buffer, size);

	text_string(&text, PRELOAD);
	text_string(&text, kept.preload);
	if (theirs && *theirs) {
		text_character(&text, ':');
		text_string(&text, theirs);
	}
}

void session_environment_complete(char *const *environment, const struct session_completion *room,
				  char **ret, char *text)
{
	bool want_variables = !has_variable(environment, "KYMO_SPOOL_DIRECTORY=");
	size_t count = 0, last = room->entries - 1;

	if (room->text_bytes) {
		write_preload(text, room->text_bytes, find_preload(environment));
		ret[count++] = text;
	}
	for (size_t i = 0; want_variables && i < kept.count && count < last; i++) {
		if (!has_variable(environment, kept.variables[i]))
			ret[count++] = (char *)kept.variables[i];
	}
	for (; environment && *environment && count < last; environment++) {
		if (!room->text_bytes || !begins(*environment, PRELOAD))
			ret[count++] = *environment;
	}
	ret[count] = NULL;
}

void session_list_make(struct session_list *list, char *const *environment)
{
	struct session_completion lacks = session_environment_lacks(environment);
	char **entries = list->entries, *text = list->text;

	list->environment = environment;
	list->completed = false;
	list->mapping = NULL;
	if (!lacks.entries)
		return;
	if (lacks.entries > SESSION_STACK_ENTRIES || lacks.text_bytes > SESSION_STACK_TEXT) {
		list->mapping_size = lacks.entries * sizeof(char *) + lacks.text_bytes;
		list->mapping = sys_mmap(NULL, list->mapping_size, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (sys_failed(list->mapping)) {
			list->mapping = NULL;
			return;
		}
		entries = list->mapping;
		text = (char *)(entries + lacks.entries);
	}
	session_environment_complete(environment, &lacks, entries, text);
	list->environment = entries;
	list->completed = true;
}

void session_list_destroy(struct session_list *list)
{
	if (list->mapping)
		sys_munmap(list->mapping, list->mapping_size);
}

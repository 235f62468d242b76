/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What all that works on a session shares, and its end. analysis/open/open.c is its beginning.
 */
#include "analysis/session.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/session_kind.h"
#include "analysis/session_private.h"
#include "binary/jit/jit.h"

#define USER_HZ_TICK_NS UINT64_C(10000000) /* USER_HZ */

int session_set_out_of_memory_problem(struct problem *problem)
{
	return problem_set(problem, -ENOMEM,
			   "out of memory while reading results; a --pid or --from/--to filter "
			   "needs less");
}

int session_add_problem_line(struct session *session, const char *format, ...)
{
	struct session_private *private = session_get_private(session);
	char text[sizeof(((struct problem *)0)->text)];
	va_list arguments;
	char *line;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	line = arena_copy_bytes(&private->arena, text, strlen(text));
	if (!line || array_reserve_one_more((void **)&session->problems, &private->problem_capacity,
					    session->problem_count, sizeof(*session->problems)) < 0)
		return -ENOMEM;
	session->problems[session->problem_count++] = line;
	return 0;
}

const char *session_quote_arguments(struct arena *arena, const char *const *arguments,
				    uint32_t count)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);
	const char *copy;

	if (!stream)
		return NULL;
	for (uint32_t i = 0; i < count; i++) {
		const char *argument = arguments[i];
		bool plain =
			*argument && !argument[strcspn(argument, " \t\r\n'\"\\$`&|;<>()*?[]{}#~!")];

		fputs(i ? " " : "", stream);
		if (plain) {
			fputs(argument, stream);
			continue;
		}
		fputc('\'', stream);
		for (; *argument; argument++)
			if (*argument == '\'')
				fputs("'\\''", stream);
			else
				fputc(*argument, stream);
		fputc('\'', stream);
	}
	copy = fclose(stream) == 0 ? arena_copy_bytes(arena, text, size) : NULL;
	free(text);
	return copy;
}

static void process_private_deinit(struct process_private *process)
{
	spool_file_close(&process->file);
	clock_map_deinit(&process->clock);
	module_map_deinit(&process->module_map);
	id_map_deinit(&process->threads);
	jitmap_destroy(process->jitmap);
}

static void free_data_of_kinds(struct session *session)
{
	for (uint32_t i = 0; i < session->data_kind_count; i++) {
		if (session->data_kinds[i].kind->free)
			session->data_kinds[i].kind->free(session);
		free(session->data_kinds[i].processes);
	}
}

void session_close(struct session *session)
{
	struct session_private *private;

	if (!session)
		return;
	private = session_get_private(session);
	free_data_of_kinds(session);
	for (uint32_t i = 0; i < session->process_count; i++) {
		process_private_deinit(&private->processes[i]);
		if (session->processes) {
			free(session->processes[i].metrics);
			free(session->processes[i].notices);
		}
	}
	free(private->processes);
	free(private->session_node_by_tree_node);
	free(private->thread_nodes);
	free(private->launched);
	calltree_deinit(&private->tree);
	arena_deinit(&private->arena);
	free(private);
	free(session->processes);
	free(session->threads);
	free(session->modules);
	free(session->frames);
	free(session->nodes);
	free(session->problems);
	free(session);
}

uid_t session_get_process_owner_uid(const struct session *session, uint32_t process)
{
	return session_get_private(session)->processes[process].file.owner;
}

uint64_t session_get_process_creation_ns(const struct session *session, uint32_t process)
{
	uint64_t ticks = session->processes[process].process_start;

	if (!ticks || !session->realtime_minus_boottime_ns)
		return 0;
	return ticks * USER_HZ_TICK_NS + (uint64_t)session->realtime_minus_boottime_ns;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See interpreted.h: records of code objects, by process.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arena.h"
#include "analysis/interpreted/interpreted.h"
#include "analysis/session_kind.h"
#include "analysis/session_private.h"

#define LINE_TABLE_SIZE_MAX (1u << 20)

struct process_code {
	struct interpreted_code *codes;
	size_t count, capacity;
	struct id_map index_by_id;
};

static struct process_code *get_process_code(const struct session *session, uint32_t process)
{
	struct process_code *all =
		session_find_kind_data_of_processes(session, INTERPRETED_DATA_KIND_NAME);

	return all ? &all[process] : NULL;
}

static struct interpreted_code *find_code(const struct process_code *process, uint64_t id)
{
	uint32_t index = id_map_get(&process->index_by_id, id);

	return index == ID_MAP_NONE ? NULL : &process->codes[index];
}

static int find_or_add_code(struct process_code *process, uint64_t id,
			    struct interpreted_code **ret)
{
	*ret = find_code(process, id);
	if (*ret)
		return 0;
	if (array_reserve_one_more((void **)&process->codes, &process->capacity, process->count,
				   sizeof(*process->codes)) < 0 ||
	    id_map_set(&process->index_by_id, id, (uint32_t)process->count) < 0)
		return -ENOMEM;
	*ret = &process->codes[process->count++];
	**ret = (struct interpreted_code){.name = "", .file = ""};
	return 0;
}

static int read_code_record(struct session *session, struct process_code *process,
			    struct spool_record_payload_cursor *payload)
{
	struct arena *arena = &session_get_private(session)->arena;
	uint64_t id = spool_read_unsigned(payload), interpreter = spool_read_unsigned(payload),
		 table_kind = spool_read_unsigned(payload),
		 first_line = spool_read_unsigned(payload), size = spool_read_unsigned(payload);
	const uint8_t *name, *file;
	struct interpreted_code *code;
	size_t name_size, file_size;

	name = spool_read_length_prefixed_bytes(payload, &name_size);
	file = spool_read_length_prefixed_bytes(payload, &file_size);
	if (payload->bad || interpreter != SPOOL_INTERPRETER_CPYTHON ||
	    table_kind > SPOOL_LINES_CPYTHON_3_11 || first_line > UINT32_MAX ||
	    size > LINE_TABLE_SIZE_MAX)
		return -EBADMSG;
	if (find_or_add_code(process, id, &code) < 0)
		return -ENOMEM;
	code->name = arena_copy_bytes(arena, name, name_size);
	code->file = arena_copy_bytes(arena, file, file_size);
	code->table = arena_allocate(arena, size + 1);
	if (!code->name || !code->file || !code->table)
		return -ENOMEM;
	code->first_line = (uint32_t)first_line;
	code->table_kind = (enum spool_line_table)table_kind;
	code->table_size = (uint32_t)size;
	return 0;
}

static int read_lines_record(struct process_code *process,
			     struct spool_record_payload_cursor *payload)
{
	uint64_t id = spool_read_unsigned(payload), offset = spool_read_unsigned(payload);
	struct interpreted_code *code = find_code(process, id);
	const uint8_t *bytes;
	size_t size;

	bytes = spool_read_length_prefixed_bytes(payload, &size);
	if (payload->bad || !code || offset > code->table_size || size > code->table_size - offset)
		return -EBADMSG;
	memcpy(code->table + offset, bytes, size);
	return 0;
}

static int read_coverage_record(struct process_code *process,
				struct spool_record_payload_cursor *payload)
{
	uint64_t id = spool_read_unsigned(payload), what = spool_read_unsigned(payload);
	struct interpreted_code *code;

	if (payload->bad || what > UINT32_MAX)
		return -EBADMSG;
	if (find_or_add_code(process, id, &code) < 0)
		return -ENOMEM;
	code->is_measured = true;
	code->is_called |= what != 0;
	if (what < 2)
		return 0;
	if (array_reserve_one_more((void **)&code->lines, &code->line_capacity, code->line_count,
				   sizeof(*code->lines)) < 0)
		return -ENOMEM;
	code->lines[code->line_count++] = (uint32_t)what - 1;
	return 0;
}

static int read_interpreted_record(const struct spool_record_position *place,
				   struct spool_record_payload_cursor *payload)
{
	struct process_code *process = get_process_code(place->session, place->process);

	if (payload->kind == SPOOL_RECORD_INTERPRETED_COVERAGE)
		return read_coverage_record(process, payload);
	return payload->kind == SPOOL_RECORD_INTERPRETED_CODE
		       ? read_code_record(place->session, process, payload)
		       : read_lines_record(process, payload);
}

static void free_interpreted_code(struct session *session)
{
	for (uint32_t i = 0; i < session->process_count; i++) {
		struct process_code *process = get_process_code(session, i);

		if (!process)
			return;
		for (size_t k = 0; k < process->count; k++)
			free(process->codes[k].lines);
		free(process->codes);
		id_map_deinit(&process->index_by_id);
	}
}

const struct interpreted_code *interpreted_code_find(const struct session *session,
						     uint32_t process, uint32_t id)
{
	const struct process_code *codes = get_process_code(session, process);

	return codes ? find_code(codes, id) : NULL;
}

int interpreted_code_visit(const struct session *session, uint32_t process,
			   int (*visit)(void *context, const struct interpreted_code *code),
			   void *context)
{
	const struct process_code *codes = get_process_code(session, process);
	int result = 0;

	for (size_t i = 0; codes && !result && i < codes->count; i++)
		result = visit(context, &codes->codes[i]);
	return result;
}

static int is_measured(void *context, const struct interpreted_code *code)
{
	(void)context;
	return code->is_measured;
}

bool interpreted_code_has_coverage(const struct session *session)
{
	for (uint32_t i = 0; i < session->process_count; i++) {
		if (interpreted_code_visit(session, i, is_measured, NULL))
			return true;
	}
	return false;
}

static const uint8_t wanted_record_kinds[] = {SPOOL_RECORD_INTERPRETED_CODE,
					      SPOOL_RECORD_INTERPRETED_LINES,
					      SPOOL_RECORD_INTERPRETED_COVERAGE, 0};

const struct session_data_kind_operations interpreted_data_kind_operations = {
	.name = INTERPRETED_DATA_KIND_NAME,
	.process_data_bytes = sizeof(struct process_code),
	.wanted_record_kinds = wanted_record_kinds,
	.record = read_interpreted_record,
	.free = free_interpreted_code,
};

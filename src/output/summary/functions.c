/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The heaviest functions, the program's own first of all. Time in libc counts for the function that
 * called it, with the name of the leaf where most of the time was there: "futex_wait under transfer
 * (bank.c:41)". Functions of other libraries have rows of their own, and say whom they served. What
 * ran, what was blocked and what waited for a CPU are rows of their own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/code_origin.h"
#include "output/format.h"
#include "output/summary/private.h"

#define NAME_BYTES 512

enum row_kind { ROW_RUNNING, ROW_BLOCKED, ROW_WAITS_FOR_CPU, ROW_KIND_COUNT };

/* The weight of one kind of one node. */
struct weight_entry {
	uint64_t weight, key; /* key: of the grouping in progress */
	uint32_t row_function;
	enum row_kind kind;
	uint32_t leaf, owner; /* frames; owner: of the program, MODEL_ENTRY_INDEX_NONE: none */
};

struct function_row {
	uint64_t self;
	struct weight_entry *entries;
	size_t entry_count;
};

struct function_table {
	const struct session *session;
	struct code_origins origins;
	struct weight_entry *entries;
	struct function_row *rows;
	uint64_t *inclusive_by_function;
	size_t entry_count, row_count;
	uint64_t whole;
};

/* ---- whose time it is ---- */

/* A name of libc's that people can look up: one that has none is called after its caller. */
static uint32_t find_named_leaf(const struct function_table *table, uint32_t node)
{
	const struct session *session = table->session;
	uint32_t first = session->nodes[node].frame;

	for (; node != MODEL_ENTRY_INDEX_NONE; node = session->nodes[node].parent) {
		uint32_t frame = session->nodes[node].frame;

		if (code_origins_get(&table->origins, frame) != CODE_OF_C_RUNTIME)
			break;
		if (session->frames[frame].kind != FRAME_UNRESOLVED)
			return frame;
	}
	return first;
}

/* The innermost frame of this origin; MODEL_ENTRY_INDEX_NONE: there is none. */
static uint32_t find_innermost_frame(const struct function_table *table, uint32_t node,
				     enum code_origin origin)
{
	const struct session *session = table->session;

	for (; node != MODEL_ENTRY_INDEX_NONE; node = session->nodes[node].parent) {
		if (code_origins_get(&table->origins, session->nodes[node].frame) == origin)
			return session->nodes[node].frame;
	}
	return MODEL_ENTRY_INDEX_NONE;
}

static void set_entry_frames(const struct function_table *table, uint32_t node,
			     struct weight_entry *entry)
{
	const struct session *session = table->session;
	const struct model_calltree_node *nodes = session->nodes;
	uint32_t row;

	if (session->frames[nodes[node].frame].kind == FRAME_THREAD_STATE &&
	    nodes[node].parent != MODEL_ENTRY_INDEX_NONE)
		node = nodes[node].parent;
	row = entry->leaf = nodes[node].frame;
	entry->owner = find_innermost_frame(table, node, CODE_OF_PROGRAM);
	if (entry->kind == ROW_WAITS_FOR_CPU && entry->owner != MODEL_ENTRY_INDEX_NONE)
		row = entry->owner; /* no library makes a thread wait for a CPU */
	if (code_origins_get(&table->origins, row) == CODE_OF_C_RUNTIME) {
		entry->leaf = find_named_leaf(table, node);
		row = entry->owner;
		if (row == MODEL_ENTRY_INDEX_NONE)
			row = find_innermost_frame(table, node, CODE_OF_LIBRARY);
		if (row == MODEL_ENTRY_INDEX_NONE)
			row = entry->leaf;
		entry->owner = row;
	}
	entry->row_function = session->frames[row].function_id;
}

static uint64_t get_weight_of_kind(const uint64_t weight[SPOOL_SOURCE_COUNT], enum row_kind kind,
				   enum view_measure_kind measure)
{
	if (measure == VIEW_MEASURE_COUNTER_EVENTS)
		return kind == ROW_RUNNING ? weight[SPOOL_SOURCE_OVERFLOW] : 0;
	if (kind == ROW_RUNNING)
		return weight[SPOOL_SOURCE_CPU];
	if (measure != VIEW_MEASURE_REAL_TIME)
		return 0;
	return weight[kind == ROW_BLOCKED ? SPOOL_SOURCE_WALL : SPOOL_SOURCE_RUNNABLE];
}

static int collect_entries(struct function_table *table, enum view_measure_kind measure)
{
	const struct session *session = table->session;

	table->entries =
		calloc((size_t)session->node_count * ROW_KIND_COUNT + 1, sizeof(*table->entries));
	if (!table->entries)
		return -ENOMEM;
	for (uint32_t i = 0; i < session->node_count; i++) {
		for (unsigned kind = 0; kind < ROW_KIND_COUNT; kind++) {
			struct weight_entry *entry = &table->entries[table->entry_count];

			entry->kind = (enum row_kind)kind;
			entry->weight = get_weight_of_kind(session->nodes[i].self_weight,
							   entry->kind, measure);
			if (!entry->weight)
				continue;
			set_entry_frames(table, i, entry);
			table->whole += entry->weight;
			table->entry_count++;
		}
	}
	return 0;
}

/* ---- rows ---- */

static int compare_entries_by_key(const void *left, const void *right)
{
	const struct weight_entry *a = left, *b = right;

	return a->key < b->key ? -1 : a->key > b->key;
}

static int compare_rows_by_weight(const void *left, const void *right)
{
	const struct function_row *a = left, *b = right;

	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	return a->entries->row_function < b->entries->row_function ? -1 : 1;
}

static int group_entries_to_rows(struct function_table *table)
{
	struct weight_entry *entries = table->entries;

	table->rows = calloc(table->entry_count + 1, sizeof(*table->rows));
	if (!table->rows)
		return -ENOMEM;
	for (size_t i = 0; i < table->entry_count; i++)
		entries[i].key = (uint64_t)entries[i].row_function * ROW_KIND_COUNT +
				 (unsigned)entries[i].kind;
	qsort(entries, table->entry_count, sizeof(*entries), compare_entries_by_key);
	for (size_t i = 0; i < table->entry_count; i++) {
		if (i == 0 || entries[i].key != entries[i - 1].key)
			table->rows[table->row_count++].entries = &entries[i];
		table->rows[table->row_count - 1].self += entries[i].weight;
		table->rows[table->row_count - 1].entry_count++;
	}
	qsort(table->rows, table->row_count, sizeof(*table->rows), compare_rows_by_weight);
	return 0;
}

static int set_inclusive_weights(struct function_table *table, enum view_measure_kind measure)
{
	struct view_flat_profile_row *functions;
	size_t count;
	int result = view_build_flat_profile(table->session, measure, &functions, &count);

	if (result < 0)
		return result;
	table->inclusive_by_function = calloc((size_t)table->session->function_count + 1,
					      sizeof(*table->inclusive_by_function));
	for (size_t i = 0; table->inclusive_by_function && i < count; i++)
		table->inclusive_by_function[functions[i].function_id] = functions[i].inclusive;
	free(functions);
	return table->inclusive_by_function ? 0 : -ENOMEM;
}

/* ---- the name of a row ---- */

static uint64_t get_function_key(const struct session *session, uint32_t frame)
{
	return frame == MODEL_ENTRY_INDEX_NONE ? UINT64_MAX : session->frames[frame].function_id;
}

static uint64_t get_line_key(const struct session *session, uint32_t frame)
{
	return frame == MODEL_ENTRY_INDEX_NONE
		       ? UINT64_MAX
		       : (uint64_t)session->frames[frame].function_id << 32 |
				 session->frames[frame].line;
}

/* One of the entries with the key that has the most weight; the weight of all that have it. */
static const struct weight_entry *find_heaviest_key(struct function_row *row, uint64_t *ret_weight)
{
	const struct weight_entry *heaviest = row->entries;
	uint64_t sum = 0;

	*ret_weight = 0;
	qsort(row->entries, row->entry_count, sizeof(*row->entries), compare_entries_by_key);
	for (size_t i = 0; i < row->entry_count; i++) {
		const struct weight_entry *entry = &row->entries[i];

		sum = i && entry->key == entry[-1].key ? sum + entry->weight : entry->weight;
		if (sum > *ret_weight) {
			*ret_weight = sum;
			heaviest = entry;
		}
	}
	return heaviest;
}

/* The leaf's frame in which most of the row's time was, by function. */
static uint32_t find_heaviest_leaf(const struct session *session, struct function_row *row,
				   uint64_t *ret_weight)
{
	for (size_t i = 0; i < row->entry_count; i++)
		row->entries[i].key = get_function_key(session, row->entries[i].leaf);
	return find_heaviest_key(row, ret_weight)->leaf;
}

/* The owner's frame at the heaviest line, and the weight of all its function. */
static uint32_t find_heaviest_owner(const struct session *session, struct function_row *row,
				    uint64_t *ret_weight)
{
	uint64_t line_weight;
	uint32_t owner;

	for (size_t i = 0; i < row->entry_count; i++)
		row->entries[i].key = get_line_key(session, row->entries[i].owner);
	owner = find_heaviest_key(row, &line_weight)->owner;
	*ret_weight = 0;
	for (size_t i = 0; i < row->entry_count; i++) {
		if (get_function_key(session, row->entries[i].owner) ==
		    get_function_key(session, owner))
			*ret_weight += row->entries[i].weight;
	}
	return owner;
}

/* "transfer (bank.c:41)": where in the function, not where it begins. */
static void format_owner(char *buffer, size_t size, const struct session *session, uint32_t frame)
{
	const struct model_frame *it = &session->frames[frame];

	if (it->file && it->line)
		snprintf(buffer, size, "%s (%s:%u)", it->function,
			 format_find_source_name(it->file), it->line);
	else
		format_function_with_module(buffer, size, session, frame);
}

/* Two parts of a name, of which the second tells more. */
struct row_name {
	char leaf[NAME_BYTES], owner[NAME_BYTES]; /* leaf may be empty */
};

/* The row is a function of the program, with what libc did for it. */
static void make_name_of_owner(const struct session *session, struct function_row *row,
			       uint32_t owner, struct row_name *name)
{
	uint64_t leaf_weight;
	uint32_t leaf = find_heaviest_leaf(session, row, &leaf_weight);
	bool is_waiting = row->entries->kind == ROW_WAITS_FOR_CPU;

	if (!is_waiting && (session->frames[leaf].function_id == row->entries->row_function ||
			    leaf_weight * 2 <= row->self)) {
		format_function_with_module(name->owner, NAME_BYTES, session, owner);
		return;
	}
	snprintf(name->leaf, NAME_BYTES, "%s",
		 is_waiting ? MODEL_WAITS_FOR_CPU_FRAME_NAME : session->frames[leaf].function);
	format_owner(name->owner, NAME_BYTES, session, owner);
}

static void make_row_name(const struct session *session, struct function_row *row,
			  struct row_name *name)
{
	uint64_t owner_weight;
	uint32_t owner = find_heaviest_owner(session, row, &owner_weight);

	*name = (struct row_name){0};
	if (get_function_key(session, owner) == row->entries->row_function) {
		make_name_of_owner(session, row, owner, name);
		return;
	}
	format_function_with_module(name->owner, NAME_BYTES, session, row->entries->leaf);
	if (row->entries->kind == ROW_WAITS_FOR_CPU)
		snprintf(name->leaf, NAME_BYTES, "%s", MODEL_WAITS_FOR_CPU_FRAME_NAME);
	if (owner == MODEL_ENTRY_INDEX_NONE || owner_weight * 2 <= row->self)
		return;
	if (row->entries->kind != ROW_WAITS_FOR_CPU)
		memcpy(name->leaf, name->owner, NAME_BYTES);
	format_owner(name->owner, NAME_BYTES, session, owner);
}

/* The whole of it, where there is a page's room. */
static void pass_row_on(const struct summary_writer *summary, const struct row_name *name,
			uint64_t self, uint64_t total)
{
	const struct summary_receiver *receiver = summary->capture->receiver;
	char text[2 * NAME_BYTES + 8];

	snprintf(text, sizeof(text), "%s%s%s", name->leaf, name->leaf[0] ? " under " : "",
		 name->owner);
	receiver->receive_function(receiver->context, text, self, total);
}

/* The library's part is shortened first, and left out where nothing of it can stay. */
static void write_row_name(const struct summary_writer *summary, const struct row_name *name,
			   size_t columns)
{
	static const char between[] = " under ";
	size_t owner = format_count_text_columns(name->owner) + sizeof(between) - 1;

	if (name->leaf[0] && owner + 8 <= columns) {
		format_write_cut_to_width(summary->stream, name->leaf, columns - owner);
		fputs(between, summary->stream);
	}
	format_write_cut_to_width(summary->stream, name->owner, columns);
	fputc('\n', summary->stream);
}

static void write_row(const struct summary_writer *summary, const struct row_name *name,
		      uint64_t self, uint64_t total, uint64_t whole)
{
	if (summary->capture != NULL)
		pass_row_on(summary, name, self, total);
	else
		write_row_name(summary, name,
			       summary_write_weight_cells(summary, self, total, whole));
}

static void write_rows(const struct summary_writer *summary, const struct function_table *table)
{
	summary_write_heading(summary, "Heaviest functions");
	if (summary->capture == NULL)
		summary_write_row(summary, SUMMARY_WEIGHT_HEADINGS, SUMMARY_WEIGHT_CELL_COUNT,
				  "function (module)");
	for (size_t i = 0; i < table->row_count && i < summary->top; i++) {
		struct function_row *row = &table->rows[i];
		uint32_t function = row->entries->row_function;
		struct row_name name;

		make_row_name(summary->session, row, &name);
		write_row(summary, &name, row->self, table->inclusive_by_function[function],
			  table->whole);
	}
}

int summary_write_functions(const struct summary_writer *summary)
{
	struct function_table table = {.session = summary->session};
	int result = code_origins_create(summary->session, &table.origins);

	if (result == 0)
		result = collect_entries(&table, summary->measure);
	if (result == 0)
		result = group_entries_to_rows(&table);
	if (result == 0)
		result = set_inclusive_weights(&table, summary->measure);
	if (result == 0 && table.row_count)
		write_rows(summary, &table);
	code_origins_destroy(&table.origins);
	free(table.entries);
	free(table.rows);
	free(table.inclusive_by_function);
	return result;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See values.h.
 */
#include "analysis/regions/values.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arena.h"
#include "analysis/interpreted/interpreted.h"

static int append_text(struct region_event_value_list *values, const uint8_t *bytes, size_t size,
		       size_t *ret)
{
	size_t needed = values->size + size + 1;

	if (needed > values->bytes_capacity) {
		size_t capacity = needed > 1024 ? needed * 2 : 2048;
		char *grown = realloc(values->bytes, capacity);

		if (!grown)
			return -ENOMEM;
		values->bytes = grown;
		values->bytes_capacity = capacity;
	}
	*ret = values->size;
	if (size)
		memcpy(values->bytes + values->size, bytes, size);
	values->bytes[values->size + size] = 0;
	values->size = needed;
	return 0;
}

static int reserve_one_value(struct region_event_value_list *values)
{
	uint32_t count = values->count;

	if (array_reserve_one_more((void **)&values->items, &values->capacity, count,
				   sizeof(*values->items)) < 0 ||
	    array_reserve_one_more((void **)&values->name_offsets, &values->name_offset_capacity,
				   count, sizeof(*values->name_offsets)) < 0 ||
	    array_reserve_one_more((void **)&values->text_offsets, &values->text_offset_capacity,
				   count, sizeof(*values->text_offsets)) < 0)
		return -ENOMEM;
	return 0;
}

#define INTERPRETED_FRAME_TEXT_SIZE 4096

/* In the place of an address: a line of interpreted code, shown as text. NULL: it is none. */
static const char *format_if_interpreted_frame(const struct session *session, uint32_t process,
					       uint64_t address, char *text, size_t size)
{
	const struct interpreted_code *code;
	const char *slash;

	if (!spool_frame_is_interpreted(address))
		return NULL;
	code = interpreted_code_find(session, process, interpreted_frame_get_code_id(address));
	if (!code)
		return NULL;
	slash = strrchr(code->file, '/');
	snprintf(text, size, "%s (%s:%u)", code->name, slash ? slash + 1 : code->file,
		 interpreted_code_find_line(code, interpreted_frame_get_position(address)));
	return text;
}

int region_values_read_annotation(const struct session *session, uint32_t process,
				  struct region_event_value_list *values,
				  struct spool_record_payload_cursor *payload)
{
	char frame_text[INTERPRETED_FRAME_TEXT_SIZE];
	uint64_t type = spool_read_unsigned(payload), bits = 0;
	struct model_event_value value = {.type = (enum spool_value_type)type};
	const uint8_t *name, *text = NULL;
	size_t name_size, text_size = 0;

	name = spool_read_length_prefixed_bytes(payload, &name_size);
	if (type == SPOOL_VALUE_TEXT)
		text = spool_read_length_prefixed_bytes(payload, &text_size);
	else
		bits = spool_read_fixed_u64(payload);
	if (payload->bad || type > SPOOL_VALUE_TEXT)
		return -EBADMSG;
	if (type == SPOOL_VALUE_ADDRESS &&
	    format_if_interpreted_frame(session, process, bits, frame_text, sizeof(frame_text))) {
		value.type = SPOOL_VALUE_TEXT;
		text = (const uint8_t *)frame_text;
		text_size = strlen(frame_text);
	}
	if (reserve_one_value(values) < 0 ||
	    append_text(values, name, name_size, &values->name_offsets[values->count]) < 0 ||
	    append_text(values, text, text_size, &values->text_offsets[values->count]) < 0)
		return -ENOMEM;
	if (type == SPOOL_VALUE_REAL)
		memcpy(&value.real_number, &bits, sizeof(bits));
	else
		value.number = (int64_t)bits;
	values->items[values->count++] = value;
	return 0;
}

void region_values_set_text_pointers(struct region_event_value_list *values)
{
	for (uint32_t i = 0; i < values->count; i++) {
		struct model_event_value *value = &values->items[i];

		value->name = values->bytes + values->name_offsets[i];
		if (value->type == SPOOL_VALUE_TEXT)
			value->text = values->bytes + values->text_offsets[i];
	}
}

void region_values_deinit(struct region_event_value_list *values)
{
	free(values->items);
	free(values->name_offsets);
	free(values->text_offsets);
	free(values->bytes);
}

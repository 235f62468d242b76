/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See region_values.h.
 */
#include "analysis/region_values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arena.h"

static int add_text(struct region_values *values, const uint8_t *bytes, size_t size, size_t *ret)
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

static int reserve(struct region_values *values)
{
	uint32_t count = values->count;

	if (array_reserve((void **)&values->items, &values->capacity, count,
			  sizeof(*values->items)) < 0 ||
	    array_reserve((void **)&values->names, &values->name_capacity, count,
			  sizeof(*values->names)) < 0 ||
	    array_reserve((void **)&values->texts, &values->text_capacity, count,
			  sizeof(*values->texts)) < 0)
		return -ENOMEM;
	return 0;
}

int region_values_add(struct region_values *values, struct spool_payload *payload)
{
	uint64_t type = spool_unsigned(payload), bits = 0;
	struct model_value value = {.type = (enum spool_value_type)type};
	const uint8_t *name, *text = NULL;
	size_t name_size, text_size = 0;

	name = spool_bytes(payload, &name_size);
	if (type == SPOOL_VALUE_TEXT)
		text = spool_bytes(payload, &text_size);
	else
		bits = spool_fixed(payload);
	if (payload->bad || type > SPOOL_VALUE_TEXT)
		return -EBADMSG;
	if (reserve(values) < 0 ||
	    add_text(values, name, name_size, &values->names[values->count]) < 0 ||
	    add_text(values, text, text_size, &values->texts[values->count]) < 0)
		return -ENOMEM;
	if (type == SPOOL_VALUE_REAL)
		memcpy(&value.real, &bits, sizeof(bits));
	else
		value.number = (int64_t)bits;
	values->items[values->count++] = value;
	return 0;
}

void region_values_settle(struct region_values *values)
{
	for (uint32_t i = 0; i < values->count; i++) {
		struct model_value *value = &values->items[i];

		value->name = values->bytes + values->names[i];
		if (value->type == SPOOL_VALUE_TEXT)
			value->text = values->bytes + values->texts[i];
	}
}

void region_values_deinit(struct region_values *values)
{
	free(values->items);
	free(values->names);
	free(values->texts);
	free(values->bytes);
}

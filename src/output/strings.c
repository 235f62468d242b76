/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors */
#include "output/strings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void strings_init(struct string_table *strings)
{
	*strings = (struct string_table){0};
}

void strings_init_with_copies(struct string_table *strings)
{
	*strings = (struct string_table){.has_copies = true};
}

void strings_deinit(struct string_table *strings)
{
	for (uint32_t i = 0; strings->has_copies && i < strings->count; i++)
		free((char *)strings->text[i]);
	free(strings->text);
	free(strings->slots);
	strings_init(strings);
}

/* FNV-1a, 32 bits. */
static uint32_t hash_text(const char *text)
{
	uint32_t hash = UINT32_C(0x811c9dc5);

	for (; *text != '\0'; text++)
		hash = (hash ^ (unsigned char)*text) * UINT32_C(0x01000193);
	return hash;
}

static uint32_t *find_text_slot(const struct string_table *strings, const char *text)
{
	uint32_t mask = strings->capacity * 2 - 1;
	uint32_t slot = hash_text(text) & mask;

	while (strings->slots[slot] != 0 &&
	       strcmp(strings->text[strings->slots[slot] - 1], text) != 0)
		slot = (slot + 1) & mask;
	return &strings->slots[slot];
}

static int strings_grow(struct string_table *strings)
{
	uint32_t capacity = strings->capacity == 0 ? 256 : strings->capacity * 2;
	const char **text = reallocarray(strings->text, capacity, sizeof(*text));

	if (text == NULL)
		return -ENOMEM;
	strings->text = text;
	uint32_t *slots = calloc((size_t)capacity * 2, sizeof(*slots));
	if (slots == NULL)
		return -ENOMEM;
	free(strings->slots);
	strings->slots = slots;
	strings->capacity = capacity;
	for (uint32_t i = 0; i < strings->count; i++)
		*find_text_slot(strings, text[i]) = i + 1;
	return 0;
}

int strings_find_or_add(struct string_table *strings, const char *text, uint32_t *ret)
{
	if (strings->count == strings->capacity && strings_grow(strings) != 0)
		return -ENOMEM;
	uint32_t *slot = find_text_slot(strings, text);
	if (*slot == 0) {
		const char *kept = strings->has_copies ? strdup(text) : text;

		if (kept == NULL)
			return -ENOMEM;
		strings->text[strings->count++] = kept;
		*slot = strings->count;
	}
	*ret = *slot - 1;
	return 0;
}

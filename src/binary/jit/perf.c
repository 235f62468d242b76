/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Perf maps: lines of "start size name", the numbers in hexadecimal, the name to the end of the
 * line (tools/perf/Documentation/jit-interface.txt of Linux).
 */
#include <string.h>

#include "binary/jit/private.h"

/* A hexadecimal number, with or without 0x; returns what follows it, or NULL. */
static const char *parse_hex_number(const char *at, const char *end, uint64_t *ret)
{
	uint64_t value = 0;
	int digits = 0;
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	if (end - at > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
		at += 2;
	for (; at < end; at++, digits++) {
		unsigned digit = (unsigned char)*at;
		if (digit >= '0' && digit <= '9')
			digit -= '0';
		else if (digit >= 'a' && digit <= 'f')
			digit -= 'a' - 10;
		else if (digit >= 'A' && digit <= 'F')
			digit -= 'A' - 10;
		else
			break;
		if (value >> 60)
			return NULL;
		value = value << 4 | digit;
	}
	if (digits == 0 || at == end || (*at != ' ' && *at != '\t'))
		return NULL;
	*ret = value;
	return at;
}

static int add_perf_map_line(struct jitmap *map, char *line, char *end)
{
	struct jitmap_entry entry = {0};
	const char *at = parse_hex_number(line, end, &entry.code.address);
	if (at)
		at = parse_hex_number(at, end, &entry.code.size);
	if (!at || entry.code.size == 0 || entry.code.size > UINT64_MAX - entry.code.address)
		return 0;
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	if (end > at && end[-1] == '\r')
		end--;
	if (at == end)
		return 0;
	*end = 0;
	entry.code.name = at;
	return jitmap_append_entry(map, &entry);
}

int jitmap_parse_perf_map(struct jitmap *map, uint8_t *bytes, size_t size)
{
	char *at = (char *)bytes, *end = at + size;
	while (at < end) {
		char *line_end = memchr(at, '\n', (size_t)(end - at));
		if (!line_end)
			line_end = end; /* the zero byte behind the text */
		int error = add_perf_map_line(map, at, line_end);
		if (error)
			return error;
		at = line_end + 1;
	}
	return 0;
}

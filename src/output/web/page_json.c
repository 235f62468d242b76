/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Text and packed numbers of pages; see page.h.
 */
#include <errno.h>
#include <string.h>

#include "common/utf8.h"
#include "output/web/page.h"

void page_put_string(FILE *stream, const char *text)
{
	size_t size = strlen(text);

	putc('"', stream);
	for (size_t i = 0; i < size;) {
		size_t length = utf8_character_size(text + i, size - i);
		unsigned char byte = (unsigned char)text[i];
		if (length == 0)
			fputs(UTF8_REPLACEMENT, stream);
		else if (byte < 0x20 || byte == '"' || byte == '\\' || byte == '<' || byte == 0x7f)
			fprintf(stream, "\\u%04x", byte);
		else
			fwrite(text + i, 1, length, stream);
		i += length == 0 ? 1 : length;
	}
	putc('"', stream);
}

void page_put_key(FILE *stream, const char *key)
{
	fprintf(stream, "\"%s\":", key);
}

void page_put_text_field(FILE *stream, const char *key, const char *text)
{
	page_put_key(stream, key);
	page_put_string(stream, text);
	putc(',', stream);
}

void page_put_comma_unless_first(FILE *stream, size_t index)
{
	if (index != 0)
		putc(',', stream);
}

int64_t page_get_string_number(struct page_writer *page, const char *text)
{
	uint32_t number = 0;

	if (text == NULL)
		return -1;
	if (strings_find_or_add(&page->strings, text, &number) != 0)
		page->error = -ENOMEM;
	return number;
}

static void put_base64_group(struct page_packer *packer)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t bits = (uint32_t)packer->bytes[0] << 16 | (uint32_t)packer->bytes[1] << 8 |
			packer->bytes[2];

	for (unsigned i = 0; i < 4; i++)
		putc_unlocked(i <= packer->count ? digits[bits >> (18 - 6 * i) & 63] : '=',
			      packer->stream);
	packer->count = 0;
	memset(packer->bytes, 0, sizeof(packer->bytes));
}

static void pack_byte(struct page_packer *packer, uint8_t byte)
{
	packer->bytes[packer->count++] = byte;
	if (packer->count == sizeof(packer->bytes))
		put_base64_group(packer);
}

void page_pack_number(struct page_packer *packer, uint64_t number)
{
	for (; number >= 128; number >>= 7)
		pack_byte(packer, (uint8_t)(number | 128));
	pack_byte(packer, (uint8_t)number);
}

void page_pack_difference(struct page_packer *packer, uint64_t number, uint64_t from)
{
	page_pack_number(packer,
			 number >= from ? (number - from) << 1 : ((from - number) << 1) - 1);
}

void page_pack_end(struct page_packer *packer)
{
	if (packer->count != 0)
		put_base64_group(packer);
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The protobuf writer byte by byte, against the examples of the encoding's specification.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/array.h"
#include "common/utf8.h"
#include "output/protobuf.h"

struct collected {
	uint8_t bytes[1 << 20];
	size_t used, calls;
	int answer;
};

static struct collected collected;

static int collect(void *context, const uint8_t *bytes, size_t size)
{
	struct collected *into = context;

	assert_true(into->used + size <= sizeof(into->bytes));
	memcpy(into->bytes + into->used, bytes, size);
	into->used += size;
	into->calls++;
	return into->answer;
}

static void begin(struct protobuf_writer *writer, size_t flush_at)
{
	memset(&collected, 0, sizeof(collected));
	assert_int_equal(protobuf_init(writer, flush_at, collect, &collected), 0);
}

#define EXPECT(...)                                                                                \
	do {                                                                                       \
		const uint8_t expected[] = {__VA_ARGS__};                                          \
		assert_int_equal(collected.used, sizeof(expected));                                \
		assert_memory_equal(collected.bytes, expected, sizeof(expected));                  \
	} while (0)

static void test_scalars(void **state)
{
	struct protobuf_writer writer;

	(void)state;
	begin(&writer, 4096);
	protobuf_write_uint(&writer, 1, 150);
	protobuf_write_uint(&writer, 1, 0);
	protobuf_write_uint(&writer, 16, UINT64_MAX);
	protobuf_write_string(&writer, 2, "testing");
	protobuf_write_double(&writer, 1, 1.0);
	assert_int_equal(protobuf_finish(&writer), 0);
	EXPECT(0x08, 0x96, 0x01, 0x08, 0x00, 0x80, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	       0xff, 0xff, 0x01, 0x12, 0x07, 't', 'e', 's', 't', 'i', 'n', 'g', 0x09, 0, 0, 0, 0, 0,
	       0, 0xf0, 0x3f);
	protobuf_deinit(&writer);
}

static void test_nested(void **state)
{
	struct protobuf_writer writer;

	(void)state;
	begin(&writer, 4096);
	protobuf_open_message(&writer, 3);
	protobuf_open_message(&writer, 4);
	protobuf_close_message(&writer);
	protobuf_write_uint(&writer, 1, 150);
	protobuf_close_message(&writer);
	assert_int_equal(protobuf_finish(&writer), 0);
	EXPECT(0x1a, 0x05, 0x22, 0x00, 0x08, 0x96, 0x01);
	protobuf_deinit(&writer);
}

/* Lengths at and around the sizes of their varints, two levels deep. */
static void test_long_nested(void **state)
{
	static const size_t sizes[] = {0,   1,   123,   124,   125,   126,
				       127, 128, 16379, 16383, 16384, 300000};
	static uint8_t filling[300000];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct protobuf_writer writer;
		uint8_t expected[16], *at = expected;
		begin(&writer, 64);
		protobuf_open_message(&writer, 1);
		protobuf_write_bytes(&writer, 2, filling, sizes[i]);
		protobuf_close_message(&writer);
		assert_int_equal(protobuf_finish(&writer), 0);
		uint8_t inner[11];
		size_t inner_size = (size_t)(protobuf_encode_varint(inner + 1, sizes[i]) - inner);
		*at++ = 0x0a;
		at = protobuf_encode_varint(at, inner_size + sizes[i]);
		*at++ = 0x12;
		at = protobuf_encode_varint(at, sizes[i]);
		assert_int_equal(collected.used, (size_t)(at - expected) + sizes[i]);
		assert_memory_equal(collected.bytes, expected, (size_t)(at - expected));
		protobuf_deinit(&writer);
	}
}

/* A sink never gets part of a top-level field, and memory stays bounded. */
static void test_flush(void **state)
{
	struct protobuf_writer writer;

	(void)state;
	begin(&writer, 100);
	for (int i = 0; i < 1000; i++) {
		protobuf_open_message(&writer, 1);
		protobuf_write_uint(&writer, 2, 3);
		protobuf_close_message(&writer);
		assert_true(collected.used % 4 == 0);
	}
	assert_true(writer.capacity < 8192);
	assert_int_equal(protobuf_finish(&writer), 0);
	assert_int_equal(collected.used, 4000);
	assert_true(collected.calls > 30);
	protobuf_deinit(&writer);
}

static void test_errors(void **state)
{
	struct protobuf_writer writer;

	(void)state;
	begin(&writer, 4096);
	collected.answer = -ENOSPC;
	protobuf_write_uint(&writer, 1, 1);
	assert_int_equal(protobuf_finish(&writer), -ENOSPC);
	size_t used = collected.used;
	protobuf_open_message(&writer, 1);
	protobuf_write_string(&writer, 1, "after the error");
	protobuf_close_message(&writer);
	assert_int_equal(protobuf_finish(&writer), -ENOSPC);
	assert_int_equal(collected.used, used);
	protobuf_deinit(&writer);

	begin(&writer, 4096);
	protobuf_close_message(&writer);
	assert_int_equal(protobuf_finish(&writer), -EINVAL);
	protobuf_deinit(&writer);

	begin(&writer, 4096);
	protobuf_open_message(&writer, 1);
	assert_int_equal(protobuf_finish(&writer), -EINVAL);
	protobuf_deinit(&writer);

	begin(&writer, 4096);
	for (int i = 0; i <= PROTOBUF_DEPTH_MAX; i++)
		protobuf_open_message(&writer, 1);
	assert_int_equal(protobuf_finish(&writer), -EINVAL);
	protobuf_deinit(&writer);
}

static void test_hostile_text(void **state)
{
	static const struct {
		const char *text, *clean;
	} cases[] = {
		{"plain", "plain"},
		{"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
		{"a\xff"
		 "b",
		 "a" UTF8_REPLACEMENT "b"},
		{"\xc0\xaf", UTF8_REPLACEMENT UTF8_REPLACEMENT}, /* overlong */
		{"\xed\xa0\x80",
		 UTF8_REPLACEMENT UTF8_REPLACEMENT UTF8_REPLACEMENT}, /* surrogate */
		{"\xf4\x90\x80\x80", UTF8_REPLACEMENT UTF8_REPLACEMENT UTF8_REPLACEMENT
					     UTF8_REPLACEMENT},  /* too large */
		{"\xe2\x82", UTF8_REPLACEMENT UTF8_REPLACEMENT}, /* cut off */
		{NULL, ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct protobuf_writer writer;
		size_t size = strlen(cases[i].clean);
		begin(&writer, 4096);
		protobuf_write_string(&writer, 1, cases[i].text);
		assert_int_equal(protobuf_finish(&writer), 0);
		assert_int_equal(collected.used, size + 2);
		assert_int_equal(collected.bytes[1], size);
		assert_memory_equal(collected.bytes + 2, cases[i].clean, size);
		protobuf_deinit(&writer);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scalars),     cmocka_unit_test(test_nested),
		cmocka_unit_test(test_long_nested), cmocka_unit_test(test_flush),
		cmocka_unit_test(test_errors),      cmocka_unit_test(test_hostile_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

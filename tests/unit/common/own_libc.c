/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The memcpy() and strlen() of libraries that are loaded into programs, built by other names, do
 * what libc's do: all small sizes, sizes around each change of method, all ways to overlap.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../assert_at.h"
void *own_memcpy(void *to, const void *from, size_t size);
void *own_memmove(void *to, const void *from, size_t size);
void *own_memset(void *to, int byte, size_t size);
int own_memcmp(const void *left, const void *right, size_t size);
int own_bcmp(const void *left, const void *right, size_t size);
size_t own_strlen(const char *text);
size_t own_strnlen(const char *text, size_t most);
int own_strcmp(const char *left, const char *right);
int own_strncmp(const char *left, const char *right, size_t most);
char *own_strchr(const char *text, int byte);
char *own_strrchr(const char *text, int byte);
char *own_strstr(const char *text, const char *part);
size_t own_strspn(const char *text, const char *accepted);
size_t own_strcspn(const char *text, const char *rejected);
char *own_strcpy(char *to, const char *from);
char *own_strcat(char *to, const char *from);

#define ROOM   1024u
#define MOST   600u
#define MARGIN 80u

static void fill(uint8_t *bytes)
{
	for (size_t i = 0; i < ROOM; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 256 * 3 + 1);
}

static int sign(int value)
{
	return (value > 0) - (value < 0);
}

static void test_copies(void **state)
{
	uint8_t from[ROOM], own[ROOM], wanted[ROOM];

	(void)state;
	fill(from);
	for (size_t size = 0; size <= MOST; size++) {
		memset(own, 0xee, ROOM);
		memset(wanted, 0xee, ROOM);
		memcpy(wanted + 3, from + 5, size);
		assert_ptr_equal(own_memcpy(own + 3, from + 5, size), own + 3);
		assert_memory_equal(own, wanted, ROOM);
	}
}

/* By less than, as much as and more than the widest access, in both directions. */
static void test_moves(void **state)
{
	uint8_t own[ROOM], wanted[ROOM];

	(void)state;
	for (size_t size = 0; size <= MOST; size += size < 80 ? 1 : 13) {
		for (size_t to = 0; to <= 2 * MARGIN; to++) {
			fill(own);
			fill(wanted);
			memmove(wanted + to, wanted + MARGIN, size);
			assert_ptr_equal(own_memmove(own + to, own + MARGIN, size), own + to);
			assert_memory_equal(own, wanted, ROOM);
		}
	}
}

static void test_fills(void **state)
{
	uint8_t own[ROOM], wanted[ROOM];

	(void)state;
	for (size_t size = 0; size <= MOST; size++) {
		fill(own);
		fill(wanted);
		memset(wanted + 1, 0x1a5, size);
		assert_ptr_equal(own_memset(own + 1, 0x1a5, size), own + 1);
		assert_memory_equal(own, wanted, ROOM);
	}
}

static void test_comparisons(void **state)
{
	uint8_t left[ROOM], right[ROOM];

	(void)state;
	fill(left);
	for (size_t size = 0; size <= 40; size++) {
		for (size_t different = 0; different < 48; different++) {
			for (int by = -1; by <= 1; by++) {
				fill(right);
				right[different] = (uint8_t)(right[different] + by * 0x80);
				assert_int_equal(sign(own_memcmp(left, right, size)),
						 sign(memcmp(left, right, size)));
				assert_int_equal(own_bcmp(left, right, size) != 0,
						 memcmp(left, right, size) != 0);
			}
		}
	}
}

static const char *const texts[] = {
	"",  "a",   "ab",     "abc",   "aab",       "aaab", "b",    "abab", "ababc",
	"/", "/a/", "a:b::c", "a,b c", "\xff\x80z", "\x7f", "bbab", "aa",   "KYMO_A=1",
};
#define COUNT (sizeof(texts) / sizeof(*texts))

static void compare_pair(const char *one, const char *other)
{
	char own[64], wanted[64];

	assert_int_equal(sign(own_strcmp(one, other)), sign(strcmp(one, other)));
	for (size_t most = 0; most < 12; most++)
		assert_int_equal_at(most, sign(own_strncmp(one, other, most)),
				    sign(strncmp(one, other, most)));
	assert_ptr_equal(own_strstr(one, other), strstr(one, other));
	assert_int_equal(own_strspn(one, other), strspn(one, other));
	assert_int_equal(own_strcspn(one, other), strcspn(one, other));
	memset(own, 1, sizeof(own));
	memset(wanted, 1, sizeof(wanted));
	strcat(strcpy(wanted, one), other);
	assert_ptr_equal(own_strcpy(own, one), own);
	assert_ptr_equal(own_strcat(own, other), own);
	assert_memory_equal(own, wanted, sizeof(own));
}

static void test_strings(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		assert_int_equal(own_strlen(texts[i]), strlen(texts[i]));
		for (size_t most = 0; most < 12; most++)
			assert_int_equal_at(most, own_strnlen(texts[i], most),
					    strnlen(texts[i], most));
		for (int byte = 0; byte < 512; byte++) {
			assert_ptr_equal(own_strchr(texts[i], byte), strchr(texts[i], byte));
			assert_ptr_equal(own_strrchr(texts[i], byte), strrchr(texts[i], byte));
		}
		for (size_t j = 0; j < COUNT; j++)
			compare_pair(texts[i], texts[j]);
	}
}

/* Nothing behind them is read: they end where memory does. */
static void test_ends(void **state)
{
	(void)state;
	for (size_t size = 1; size < 40; size++) {
		char *text = malloc(size), *other = malloc(size);

		assert_non_null(text);
		assert_non_null(other);
		memset(text, 'x', size);
		text[size - 1] = '\0';
		assert_int_equal(own_strlen(text), size - 1);
		assert_int_equal(own_strnlen(text, size + 9), size - 1);
		own_memcpy(other, text, size);
		assert_int_equal(own_strcmp(text, other), 0);
		assert_int_equal(own_memcmp(text, other, size), 0);
		free(other);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copies),  cmocka_unit_test(test_moves),
		cmocka_unit_test(test_fills),   cmocka_unit_test(test_comparisons),
		cmocka_unit_test(test_strings), cmocka_unit_test(test_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions that wait by looking again and again: by their bytes, and in this very program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "binary/causal/spins.h"

#define IS_ONE(...) is_one((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static bool is_one(const uint8_t *code, size_t size)
{
	return causal_is_spin_function_code(code, size, 0x401000);
}

static void test_waits(void **state)
{
	(void)state;
	/* 1: mov (%rdi),%eax; test %eax,%eax; jne 2f; ret; 2: pause; jmp 1b */
	assert_true(IS_ONE(0x8b, 0x07, 0x85, 0xc0, 0x75, 0x01, 0xc3, 0xf3, 0x90, 0xeb, 0xf5));
	/* 1: mov $1,%eax; xchg %eax,(%rdi); test %eax,%eax; je 3f;
	 * 2: pause; cmpl $0,(%rdi); jne 2b; jmp 1b; 3: ret */
	assert_true(IS_ONE(0xb8, 0x01, 0x00, 0x00, 0x00, 0x87, 0x07, 0x85, 0xc0, 0x74, 0x09, 0xf3,
			   0x90, 0x83, 0x3f, 0x00, 0x75, 0xf9, 0xeb, 0xec, 0xc3));
}

static void test_others(void **state)
{
	(void)state;
	/* no pause */
	assert_false(IS_ONE(0x8b, 0x07, 0x85, 0xc0, 0x75, 0xfa, 0xc3));
	/* no loop: mov (%rdi),%eax; pause; ret */
	assert_false(IS_ONE(0x8b, 0x07, 0xf3, 0x90, 0xc3));
	/* so many times, whatever happens: 1: pause; dec %edi; jne 1b; ret */
	assert_false(IS_ONE(0xf3, 0x90, 0xff, 0xcf, 0x75, 0xfa, 0xc3));
	/* the same with lea (%rdi),%eax, which looks at nothing */
	assert_false(IS_ONE(0xf3, 0x90, 0x8d, 0x07, 0xff, 0xcf, 0x75, 0xf8, 0xc3));
	/* it calls: 1: pause; mov (%rdi),%eax; call *%rax; jmp 1b */
	assert_false(IS_ONE(0xf3, 0x90, 0x8b, 0x07, 0xff, 0xd0, 0xeb, 0xf8));
	/* it works when it has waited: 1: pause; cmpl $0,(%rdi); jne 1b; 2: dec %esi; jne 2b; ret
	 */
	assert_false(
		IS_ONE(0xf3, 0x90, 0x83, 0x3f, 0x00, 0x75, 0xf9, 0xff, 0xce, 0x75, 0xfc, 0xc3));
	/* it goes elsewhere: 1: pause; cmpl $0,(%rdi); jne 1b; jmp +0x1000 */
	assert_false(
		IS_ONE(0xf3, 0x90, 0x83, 0x3f, 0x00, 0x75, 0xf9, 0xe9, 0x00, 0x10, 0x00, 0x00));
	/* bytes of a pause inside another instruction: 1: mov $0x90f3,%eax; cmpl $0,(%rdi); jne 1b
	 */
	assert_false(IS_ONE(0xb8, 0xf3, 0x90, 0x00, 0x00, 0x83, 0x3f, 0x00, 0x75, 0xf6, 0xc3));
	/* it is cut off */
	assert_false(IS_ONE(0xf3, 0x90, 0x83, 0x3f));
	assert_false(causal_is_spin_function_code(NULL, 0, 0));
}

/* ---- of this program ---- */

/* As they are, whatever the compiler is told to add to code of its own. */
__asm__(".pushsection .text\n"
	".type own_wait, @function\n"
	"own_wait: 1: pause; cmpl $0, (%rdi); je 1b; ret\n"
	".size own_wait, . - own_wait\n"
	".type own_delay, @function\n"
	"own_delay: 1: pause; decl %edi; jne 1b; ret\n"
	".size own_delay, . - own_delay\n"
	".popsection\n");

static bool has(const struct causal_places *places, const char *name)
{
	for (size_t i = 0; i < places->count; i++) {
		if (!strcmp(places->list[i].name, name))
			return true;
	}
	return false;
}

static void test_in_a_program(void **state)
{
	struct causal_places places = {0};
	struct problem problem;

	(void)state;
	assert_int_equal(causal_named_places_add_from_text(&places, "main", "--progress", &problem),
			 0);
	assert_int_equal(causal_places_add_spin_functions(&places, "/proc/self/exe", &problem), 0);
	assert_string_equal(places.list[0].name, "main");
	assert_false(has(&places, "own_delay"));
	assert_true(has(&places, "own_wait"));
	for (size_t i = 1; i < places.count; i++) {
		assert_int_equal(places.list[i].kind, CAUSAL_POINT_SPIN);
		assert_string_equal(places.list[i].name, places.list[i].function);
	}
	causal_named_places_deinit(&places);
}

static void test_where_visits_are_counted_is_no_wait(void **state)
{
	struct causal_places places = {0};
	struct problem problem;

	(void)state;
	assert_int_equal(
		causal_named_places_add_from_text(&places, "own_wait", "--progress", &problem), 0);
	assert_int_equal(causal_places_add_spin_functions(&places, "/proc/self/exe", &problem), 0);
	for (size_t i = 1; i < places.count; i++)
		assert_string_not_equal(places.list[i].name, "own_wait");
	causal_named_places_deinit(&places);
}

static void test_what_cannot_be_read_has_none(void **state)
{
	struct causal_places places = {0};
	struct problem problem;

	(void)state;
	assert_int_equal(causal_places_add_spin_functions(&places, "/nowhere", &problem), 0);
	assert_int_equal(causal_places_add_spin_functions(&places, "/proc/self/status", &problem),
			 0);
	assert_int_equal(places.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_in_a_program),
		cmocka_unit_test(test_where_visits_are_counted_is_no_wait),
		cmocka_unit_test(test_what_cannot_be_read_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

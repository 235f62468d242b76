/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The table of MPI functions and their names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "wrappers/mpi/calls.h"

static const struct mpi_call_description *call(const char *name)
{
	for (uint32_t i = 0; i < mpi_calls_count; i++) {
		if (!strcmp(mpi_calls[i].name, name))
			return &mpi_calls[i];
	}
	fail_msg("%s is not in the table", name);
	return NULL;
}

static void the_table_is_consistent(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < mpi_calls_count; i++) {
		const struct mpi_call_description *it = &mpi_calls[i];

		assert_true(strlen(it->argument_letters) <= it->arguments);
		assert_true(!i || strcmp(mpi_calls[i - 1].name, it->name) < 0);
		for (const char *letter = it->argument_letters; *letter; letter++) {
			assert_non_null(strchr(".bndvwBNDVWmpPtTrgcCosqSFQRIOM", *letter));
			assert_true(*letter == '.' || !strchr(letter + 1, *letter));
		}
		/* Collectives are counted by their communicator. */
		if (it->kind >= MPI_BCAST && it->kind <= MPI_REDUCE_SCATTER)
			assert_true(mpi_call_find_argument_position(it, 'c') > 0);
		if (it->kind == MPI_SEND || it->kind == MPI_BCAST || it->kind == MPI_REDUCE)
			assert_true(mpi_call_find_argument_position(it, 'n') > 0 &&
				    mpi_call_find_argument_position(it, 'd') > 0);
		if (it->kind == MPI_COMPLETE || it->kind == MPI_START)
			assert_true(mpi_call_find_argument_position(it, 'Q') >= 0);
		if (it->kind == MPI_RECEIVE)
			assert_true(mpi_call_find_argument_position(it, 'N') > 0 &&
				    mpi_call_find_argument_position(it, 'D') > 0);
	}
}

static void well_known_functions_are_right(void **state)
{
	(void)state;
	assert_string_equal(call("MPI_Send")->argument_letters, ".ndptc");
	assert_string_equal(call("MPI_Recv")->argument_letters, ".NDPTcs");
	assert_int_equal(call("MPI_Sendrecv")->arguments, 12);
	assert_int_equal(mpi_call_find_argument_position(call("MPI_Sendrecv"), 'c'), 10);
	assert_true(call("MPI_Send_init")->makes_persistent_request);
	assert_false(call("MPI_Isend")->makes_persistent_request);
	assert_string_equal(call("MPI_Waitsome")->argument_letters, "qQOIS");
	assert_int_equal(mpi_call_find_argument_position(call("MPI_Ialltoallw"), 'R'), 9);
}

static void expect_name(const char *name, enum mpi_spelling spelling, const char *expected)
{
	char text[64];

	assert_int_equal(mpi_call_format_name_in_spelling(call(name), spelling, text, sizeof(text)),
			 0);
	assert_string_equal(text, expected);
}

static void compilers_spell_differently(void **state)
{
	char small[8];

	(void)state;
	expect_name("MPI_Send", MPI_SPELLING_C, "MPI_Send");
	expect_name("MPI_Send", MPI_SPELLING_C_LARGE, "MPI_Send_c");
	expect_name("MPI_Send", MPI_SPELLING_LOWER_PLAIN, "mpi_send");
	expect_name("MPI_Send", MPI_SPELLING_LOWER_UNDERSCORE, "mpi_send_");
	expect_name("MPI_Send", MPI_SPELLING_LOWER_2_UNDERSCORES, "mpi_send__");
	expect_name("MPI_Send", MPI_SPELLING_UPPER, "MPI_SEND");
	expect_name("MPI_Send", MPI_SPELLING_F08, "mpi_send_f08_");
	expect_name("MPI_Send", MPI_SPELLING_F08TS, "mpi_send_f08ts_");
	expect_name("MPI_Send", MPI_SPELLING_F08TS_LARGE, "mpi_send_f08ts_large_");
	assert_int_equal(mpi_call_format_name_in_spelling(call("MPI_Send"), MPI_SPELLING_C, small,
							  sizeof(small)),
			 -ENAMETOOLONG);
}

static bool selected(const char *permit, const char *reject)
{
	return mpi_call_is_selected(call("MPI_Isend"), permit, reject);
}

static void lists_choose(void **state)
{
	(void)state;
	assert_true(selected(NULL, NULL));
	assert_true(selected("", ""));
	assert_true(selected("MPI_Isend", NULL));
	assert_true(selected("MPI_Recv,mpi_isend", NULL));
	assert_true(selected("MPI_I*", NULL));
	assert_true(selected("MPI_Recv; *s?nd", NULL));
	assert_false(selected("MPI_Isen", NULL));
	assert_false(selected("MPI_Isends", NULL));
	assert_false(selected("MPI_*recv", NULL));
	assert_false(selected(NULL, "MPI_Isend"));
	assert_false(selected(NULL, "MPI_Recv MPI_*send"));
	assert_true(selected(NULL, "MPI_Send"));
	assert_false(selected(",,", NULL));
}

static void typos_are_found(void **state)
{
	const char *list = "mpi_isend,MPI_*recv; MPI_Sned,MPI_X*";
	size_t length;

	(void)state;
	assert_ptr_equal(mpi_list_find_unknown_word(list, &length), strstr(list, "MPI_Sned"));
	assert_int_equal(length, strlen("MPI_Sned"));
	assert_non_null(mpi_list_find_unknown_word("MPI_X*", &length));
	assert_null(mpi_list_find_unknown_word(",MPI_Recv,,", &length));
	assert_null(mpi_list_find_unknown_word("", &length));
	assert_null(mpi_list_find_unknown_word(NULL, &length));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_is_consistent),
		cmocka_unit_test(well_known_functions_are_right),
		cmocka_unit_test(compilers_spell_differently),
		cmocka_unit_test(lists_choose),
		cmocka_unit_test(typos_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

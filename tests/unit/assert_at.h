/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Assertions in loops: a failure says which round it was, beside the two values.
 */
#ifndef KYMO_TESTS_UNIT_ASSERT_AT_H
#define KYMO_TESTS_UNIT_ASSERT_AT_H

/* Behind <cmocka.h>. */
#define assert_int_equal_at(index, got, want)                                                      \
	do {                                                                                       \
		long long got_ = (long long)(got), want_ = (long long)(want);                      \
		if (got_ != want_)                                                                 \
			fail_msg("round %llu: %lld, not %lld", (unsigned long long)(index), got_,  \
				 want_);                                                           \
	} while (0)

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A directory for one test, and sessions opened from it.
 */
#ifndef KYMO_TESTS_TEST_DIRECTORY_H
#define KYMO_TESTS_TEST_DIRECTORY_H

#include "analysis/session.h"

/* cmocka set-up and tear-down: *state becomes the path of a fresh directory. */
int test_directory_create(void **state);
int test_directory_remove(void **state);

/* Opens and symbolizes (names only); fails the test where that fails. options may be NULL. */
struct session *test_session(const char *directory, const struct session_options *options);
/* The index of the function of this name, or MODEL_ENTRY_INDEX_NONE. */
uint32_t test_frame(const struct session *session, const char *function);
/* The root-to-leaf path of a node as "a;b;c", in a static buffer. */
const char *test_path(const struct session *session, uint32_t node);

#endif

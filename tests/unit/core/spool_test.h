/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A spool in a directory of the test's own, laid out as a session.
 */
#ifndef KYMO_TESTS_SPOOL_TEST_H
#define KYMO_TESTS_SPOOL_TEST_H

#include "core/spool/writer.h"
#include "unit/analysis/test_directory.h"

/* Opens `spool` in <directory>/spool; ticks are ns from here on. 0 or negative errno. */
int spool_test_open(struct spool_writer *spool, const char *directory, uint64_t limit, bool ring);
/* As before, and the file is one that readers accept; fails the test where it cannot be opened. */
void spool_test_start(struct spool_writer *spool, const char *directory, uint64_t limit, bool ring);
/* Path of the n-th image of this process, in a static buffer. */
const char *spool_test_path(const char *directory, unsigned image);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Starts with standard descriptors closed, or closes them: the profiler's messages and files must
 * not end up in whatever gets those numbers next.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "check.h"

int main(void)
{
	char path[] = "/tmp/no_stdio-XXXXXX";
	struct stat info;
	int saved = dup(1), fd;

	CHECK(saved >= 3);
	close(0);
	close(1);
	close(2);
	fd = mkstemp(path);
	CHECK(fd == 0 && dup(0) == 1 && dup(0) == 2);
	check_burn_ms(100);
	CHECK(fstat(fd, &info) == 0 && info.st_size == 0);
	CHECK(dup2(saved, 1) == 1);
	unlink(path);
	return check_passed("no_stdio");
}

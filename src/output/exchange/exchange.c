/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See exchange.h.
 */
#include "output/exchange/exchange.h"

#include <errno.h>
#include <string.h>

int exchange_finish(FILE *stream, int error, const char *what, struct problem *problem)
{
	errno = 0;
	if (error == 0 && (fflush(stream) != 0 || ferror(stream)))
		error = errno != 0 ? -errno : -EIO;
	if (error == -ENOMEM || (error != 0 && problem->text[0] == 0))
		return problem_set(problem, error, "cannot write %s: %s", what, strerror(-error));
	return error;
}

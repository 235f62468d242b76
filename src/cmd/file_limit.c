/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See file_limit.h.
 */
#include "cmd/file_limit.h"

#include <signal.h>

static struct sigaction inherited;
static bool survives;

void file_limit_survive(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	survives = !sigaction(SIGXFSZ, &ignore, &inherited);
}

void file_limit_give_back(void)
{
	if (survives)
		sigaction(SIGXFSZ, &inherited, NULL);
}

bool file_limit_is_deadly(void)
{
	return survives && inherited.sa_handler == SIG_DFL;
}

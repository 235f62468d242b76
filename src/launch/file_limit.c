/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See file_limit.h.
 */
#include "launch/file_limit.h"

#include <signal.h>

static struct sigaction inherited_sigxfsz_action;
static bool sigxfsz_was_set_to_ignore;

void file_limit_ignore_sigxfsz(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	sigxfsz_was_set_to_ignore = !sigaction(SIGXFSZ, &ignore, &inherited_sigxfsz_action);
}

void file_limit_restore_sigxfsz(void)
{
	if (sigxfsz_was_set_to_ignore)
		sigaction(SIGXFSZ, &inherited_sigxfsz_action, NULL);
}

bool file_limit_kills_programs(void)
{
	return sigxfsz_was_set_to_ignore && inherited_sigxfsz_action.sa_handler == SIG_DFL;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The beginning of a session (analysis/session.h): it is read, and then its code gets names.
 */
#ifndef KYMO_ANALYSIS_OPEN_OPEN_H
#define KYMO_ANALYSIS_OPEN_OPEN_H

#include "analysis/session.h"

/* 0 or a negative errno. session_close() ends it. */
int session_open(const char *directory, const struct session_options *options, struct session **ret,
		 struct problem *problem);
/* Makes frames and nodes; a second call does nothing. 0 or a negative errno. */
int session_symbolize(struct session *session, struct problem *problem);

#endif

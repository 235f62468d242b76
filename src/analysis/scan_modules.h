/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The module records of one process: each distinct mapping becomes one module of the model, each of
 * its loads one instance of the module map. A program that opens and closes plugins all day has
 * many instances and few modules.
 */
#ifndef KYMO_ANALYSIS_SCAN_MODULES_H
#define KYMO_ANALYSIS_SCAN_MODULES_H

#include "analysis/session_private.h"

struct scan_modules {
	struct session *session;
	struct session_private *private;
	struct process_private *process;
	uint32_t process_index;
	struct id_map by_id;       /* spool's module id -> latest instance */
	struct id_map by_identity; /* hash of what a module is -> index in session.modules */
};

void scan_modules_init(struct scan_modules *modules, struct session *session, uint32_t process);
void scan_modules_deinit(struct scan_modules *modules);
int scan_module(struct scan_modules *modules, struct spool_payload *payload);
int scan_module_gone(struct scan_modules *modules, struct spool_payload *payload);
/* Converts times (the clock is ready now) and builds the module map. */
int scan_modules_finish(struct scan_modules *modules);

#endif

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

struct module_scan_state {
	struct session *session;
	struct session_private *private;
	struct process_private *process;
	uint32_t process_index;
	struct id_map latest_instance_by_module_id; /* spool's module id -> latest instance */
	struct id_map
		module_index_by_identity; /* hash of what a module is -> index in session.modules */
};

void module_scan_init(struct module_scan_state *modules, struct session *session, uint32_t process);
void module_scan_deinit(struct module_scan_state *modules);
int scan_module_record(struct module_scan_state *modules,
		       struct spool_record_payload_cursor *payload);
int scan_module_gone_record(struct module_scan_state *modules,
			    struct spool_record_payload_cursor *payload);
/* Converts times (the clock is ready now) and builds the module map. */
int module_scan_finish(struct module_scan_state *modules);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Answers processes of a session that ask what to instrument in their modules (kymo/plan.h).
 *
 * One thread serves all of them, one request after the other, so that a module is planned and
 * selected once however many processes have it. A process that gets no answer runs uninstrumented.
 * Requests to write into a process (PLAN_REQUEST_COMMIT) go to whoever attached.
 */
#ifndef KYMO_PLANNING_SERVER_H
#define KYMO_PLANNING_SERVER_H

#include "planning/module.h"

struct plan_server;

/* Whoever attached follows what is asked for, and writes patches into processes or takes them back.
 * On the server's thread. MODULE: the module is about to be given out; `module` is also there for
 * COMMIT and UNDO. 0, or a negative errno with reason, which is the answer. */
typedef int plan_server_write(void *context, const struct plan_request *request,
			      const struct planned_module *module, struct problem *problem);

struct plan_server_options {
	struct instrumentation_setup
		instrumentation_setup; /* what it points to outlives the server */
	const char *session;           /* the directory for the socket */
	plan_server_write *write;      /* NULL: such requests are refused */
	void *context;
};

/* Starts the thread; it takes no signals. */
int plan_server_start(const struct plan_server_options *options, struct plan_server **ret,
		      struct problem *problem);
/* What KYMO_INSTRUMENT is to be. */
const char *plan_server_get_socket_path(const struct plan_server *server);
/* Ends the thread and removes the socket; the modules stay. */
void plan_server_stop(struct plan_server *server);
void plan_server_destroy(struct plan_server *server);
/* What was asked for, in that order; only after plan_server_stop(). */
const struct planned_module *const *plan_server_get_modules(const struct plan_server *server,
							    size_t *ret_count);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Answers processes of a causal session that ask for maps of their modules (kymo/causal.h), and
 * knows what the targets are. One thread serves all, one request after the other: a module's map is
 * made once, however many processes have it.
 */
#ifndef KYMO_EXPERIMENTS_SERVER_H
#define KYMO_EXPERIMENTS_SERVER_H

#include "binary/causal/places.h"
#include "binary/causal/scope.h"
#include "binary/causal/targets.h"

struct causal_server;

struct causal_server_options {
	struct causal_scope_request scope;  /* needed until causal_server_start() returns */
	const char *directory;              /* the session's causal/, which exists */
	const char *debug_search_path;      /* of separate debug files, or NULL */
	const struct causal_places *places; /* named progress points, or NULL */
	bool instrumented;                  /* those of them that are functions (instrument.h) */
	/* Something that the user should know, on the server's thread; or NULL. */
	void (*say)(void *context, const char *text);
	void *context;
};

/* Makes the socket and starts the thread, which takes no signals. -EINVAL: a bad expression. */
int causal_server_start(const struct causal_server_options *options, struct causal_server **ret,
			struct problem *problem);
/* Before the program runs: makes the map of its executable, so that the first process gets it at
 * once, and what is wrong is known in time. -ENOENT: nothing of it is in scope, which is no fault
 * where other binaries are; -ENODATA: it has no debug information and needs it. */
int causal_server_make_program_map(struct causal_server *server, const char *program,
				   struct problem *problem);
/* Ends the thread and removes the socket; targets stay. */
void causal_server_stop(struct causal_server *server);
void causal_server_destroy(struct causal_server *server);

/* At any time, from any thread. */
struct causal_targets *causal_server_get_targets(struct causal_server *server);
/* In how many modules something of the place was found. */
unsigned causal_server_count_modules_with_place(struct causal_server *server, size_t place);

#endif

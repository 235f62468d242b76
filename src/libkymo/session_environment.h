/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What makes a child process part of the session: kymo's entries of LD_PRELOAD and the KYMO_*
 * variables (and the two that name libkymo-dl as the tool of OpenMP and Kokkos runtimes). They are
 * kept at the start, so that children are found as well when the program gives
 * them an environment of its own (env -i, execve with a list, posix_spawn), or has cleaned or
 * overwritten its own (clearenv, setproctitle).
 *
 * A variable that the child's list has is never changed; a list that has KYMO_SPOOL_DIRECTORY is
 * somebody's own choice (kymo under kymo) and gets no further KYMO_* variable. KYMO_ENABLED=off in
 * the list leaves that child alone.
 */
#ifndef KYMO_LIBKYMO_SESSION_ENVIRONMENT_H
#define KYMO_LIBKYMO_SESSION_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/options.h"

/* Once, by the constructor, before the runtime starts. Returns an environment for the runtime whose
 * strings of the session are copies that live for ever. */
char *const *session_environment_save(char *const *environment);
/* After options are known: sees that children get the session, or that they do not. */
void session_environment_set_child_inheritance(const struct options *options, char **environment);

/* A program that profiles or debugs devices itself refuses, or cannot profile, programs that
 * another library is injected into. Takes kymo's out, for it and its children; true where there was
 * one. */
bool session_drop_cuda_injections_if_gpu_tool(const char *program, char **environment);

/* What a child's list lacks. */
struct session_completion_sizes {
	size_t entries;            /* for the completed list, with its end; 0: nothing is lacking */
	size_t preload_text_bytes; /* for a new LD_PRELOAD */
};
struct session_completion_sizes session_environment_measure_completion(char *const *environment);
/* Writes the completed list to `ret` and a new LD_PRELOAD to `text`; never more than `room` says,
 * even while another thread changes the environment. */
void session_environment_write_completed(char *const *environment,
					 const struct session_completion_sizes *room, char **ret,
					 char *text);

/* A completed environment on the stack of a call. One that is too large is mapped; a vfork child
 * that execs leaves that mapping to its parent. */
#define SESSION_ENVIRONMENT_ON_STACK_ENTRIES_MAX    300
#define SESSION_ENVIRONMENT_ON_STACK_TEXT_BYTES_MAX 2048

struct session_environment_list {
	char *const *environment; /* to pass on */
	bool is_completed;
	void *mapping;
	size_t mapping_size;
	char *entries[SESSION_ENVIRONMENT_ON_STACK_ENTRIES_MAX];
	char preload_text[SESSION_ENVIRONMENT_ON_STACK_TEXT_BYTES_MAX];
};

void session_environment_list_init(struct session_environment_list *list, char *const *environment);
/* The opposite: without the session's variables and libraries. Where there is no memory for that,
 * the list stays as it is. */
void session_environment_list_init_without(struct session_environment_list *list,
					   char *const *environment);
void session_environment_list_deinit(struct session_environment_list *list);

#endif

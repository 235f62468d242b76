/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Tools: how they are found (find_tools.c), asked, initialized, and ended (registration.c,
 * finalize.c).
 */
#ifndef KYMO_LIBKYMO_SDK_RUNTIMES_CLIENTS_H
#define KYMO_LIBKYMO_SDK_RUNTIMES_CLIENTS_H

#include <stdatomic.h>

#include <rocprofiler-sdk/registration.h>

#define SDK_CLIENTS_MAX 64

enum sdk_client_phase {
	SDK_CLIENT_CONFIGURED,  /* wants to be a tool */
	SDK_CLIENT_INITIALIZED, /* initialized */
	SDK_CLIENT_FINALIZING,  /* its finalize function may be running */
	SDK_CLIENT_GONE         /* did not want to be one, failed, or has ended */
};

struct sdk_client {
	rocprofiler_client_id_t *id; /* the tool keeps the address */
	rocprofiler_configure_func_t configure_function;
	rocprofiler_tool_configure_result_t result;
	_Atomic int state;
};

extern struct sdk_client sdk_clients[SDK_CLIENTS_MAX];
extern _Atomic unsigned sdk_client_count;

/* Functions of tools in the order in which they are asked, each once. `first` may be NULL. Returns
 * how many; says what could not be loaded. */
unsigned sdk_find_tools(rocprofiler_configure_func_t first, rocprofiler_configure_func_t *found,
			unsigned room);
/* A tool that is loaded by the search says itself that it is one. By the thread that searches.
 * false: nothing is searched. */
bool sdk_add_tool_to_current_search(rocprofiler_configure_func_t function);
/* Would sdk_find_tools() look further than at nothing? */
bool sdk_is_any_tool_requested(void);

/* Looks for tools and initializes them, once. Other threads wait for the one that does; that one
 * itself comes back at once. `first`: asked first, may be NULL. */
rocprofiler_status_t sdk_register_tools_once(rocprofiler_configure_func_t first);

/* Ends one client, or all of them (the process ends). Once. */
void sdk_finalize_client(struct sdk_client *client);
void sdk_finalize_all_clients(void);
/* The child of a fork: goes on without the tools of these contexts (by bit), whose functions were
 * running on threads that are not there. What they hold is held for ever. */
void sdk_abandon_clients_of_contexts(uint64_t contexts);
/* What tools get. */
void sdk_finalize_client_by_id(rocprofiler_client_id_t id);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Contexts: sets of services that are started and stopped together. They are made while tools are
 * initialized and never go away, so the record path may use them without asking. Which ones are
 * active is one word of bits.
 */
#ifndef KYMO_LIBKYMO_SDK_CONTEXT_H
#define KYMO_LIBKYMO_SDK_CONTEXT_H

#include "libkymo-sdk/domains.h"
#include "libkymo-sdk/emit.h"

struct sdk_buffer;
struct sdk_dispatch_counting;

struct sdk_callback_service {
	rocprofiler_callback_tracing_cb_t callback;
	void *data;
	uint64_t operations[SDK_OPERATIONS_MAX / 64];
};

struct sdk_buffer_service {
	struct sdk_buffer *buffer;
	uint64_t operations[SDK_OPERATIONS_MAX / 64];
};

struct sdk_request_service {
	rocprofiler_external_correlation_id_request_cb_t callback;
	void *data;
	uint64_t domains;
};

struct sdk_context {
	uint64_t id;
	uint32_t client;
	_Atomic int32_t bit; /* -1: never started */
	_Atomic bool is_active;
	_Atomic bool is_ending; /* its client is: it is not started again */
	_Atomic bool is_closed; /* its client is gone: nothing is told it any more */
	uint64_t buffer_kinds;  /* that are configured */
	struct sdk_callback_service *callbacks[SDK_DOMAIN_COUNT];
	struct sdk_buffer_service *buffers[SDK_DOMAIN_COUNT];
	struct sdk_buffer_service *ext_buffers[SDK_DOMAIN_COUNT];
	struct sdk_dispatch_counting *dispatch_counting; /* counters/dispatches.c */
	struct sdk_request_service *_Atomic request;
	_Atomic bool has_external; /* something was pushed, ever */
	struct sdk_context *next_removed;
};

/* The active ones: one word, so that an event has one moment at which it is settled who hears of
 * it.
 */
extern _Atomic uint64_t sdk_active;
/* Those with a service for the domain, active or not. */
extern _Atomic uint64_t sdk_callback_contexts[SDK_DOMAIN_COUNT];
extern _Atomic uint64_t sdk_buffer_contexts[SDK_DOMAIN_COUNT];
/* By bit. */
extern struct sdk_context *_Atomic sdk_started[SDK_CONTEXTS_MAX];

static inline struct sdk_context *sdk_context_at(unsigned bit)
{
	return atomic_load_explicit(&sdk_started[bit], memory_order_acquire);
}

static inline uint64_t sdk_active_contexts(void)
{
	return atomic_load_explicit(&sdk_active, memory_order_acquire);
}

static inline uint64_t sdk_with_callbacks(enum sdk_domain domain)
{
	return atomic_load_explicit(&sdk_callback_contexts[domain], memory_order_acquire);
}

static inline uint64_t sdk_with_buffers(enum sdk_domain domain)
{
	return atomic_load_explicit(&sdk_buffer_contexts[domain], memory_order_acquire);
}

static inline bool sdk_operation_is_in(const uint64_t *operations, int32_t operation)
{
	return operations[operation / 64] >> (operation % 64) & 1;
}

/* NULL: no such context. */
struct sdk_context *sdk_context_find(uint64_t id);
uint64_t sdk_contexts_of(uint32_t client); /* bits */
/* A service has been put into it, which may have been started already. */
void sdk_context_configured(struct sdk_context *context);
/* Stops the client's contexts (0: all) for good. */
void sdk_context_stop_client(uint32_t client);
/* Nothing is told them from now on; waits for tool functions that still run. */
void sdk_context_close_client(uint32_t client);
/* Contexts of a client that does not want to be one: as if they had never been. */
void sdk_context_remove_client(uint32_t client);

/* Around every call of a tool's function. false: its tool is gone. */
bool sdk_tool_enter(struct sdk_context *context, uint32_t *before);
void sdk_tool_leave(uint32_t before);

#endif

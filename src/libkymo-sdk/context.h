/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Contexts: sets of services that are started and stopped together. They are made while tools are
 * initialized and never go away, so the record path may use them without asking. Which ones are
 * active is one word of bits.
 */
#ifndef KYMO_LIBKYMO_SDK_CONTEXT_H
#define KYMO_LIBKYMO_SDK_CONTEXT_H

#include "libkymo-sdk/emit.h"
#include "libkymo-sdk/tables/domains.h"

struct sdk_buffer;
struct sdk_thread_state;
struct sdk_dispatch_counting_service;

struct sdk_callback_tracing_service {
	rocprofiler_callback_tracing_cb_t callback;
	void *data;
	uint64_t operations[SDK_OPERATIONS_MAX / 64];
};

struct sdk_buffer_tracing_service {
	struct sdk_buffer *buffer;
	uint64_t operations[SDK_OPERATIONS_MAX / 64];
};

struct sdk_external_id_request_service {
	rocprofiler_external_correlation_id_request_cb_t callback;
	void *data;
	uint64_t domain_bits;
};

/* Why functions of a context are not called. */
enum {
	SDK_CONTEXT_CLOSED_BY_END = 1, /* its client is gone: nothing is reported to it any more */
	SDK_CONTEXT_CLOSED_BY_FORK = 2 /* for a moment: fork_gate.h */
};

struct sdk_context {
	uint64_t id;
	uint32_t client_id;
	_Atomic int32_t bit_index; /* -1: never started */
	_Atomic bool is_active;
	_Atomic bool is_client_ending; /* its client is: it is not started again */
	_Atomic uint32_t closed_by;    /* SDK_CONTEXT_CLOSED_*: its functions are not called */
	uint64_t buffer_kind_bits;     /* that are configured */
	struct sdk_callback_tracing_service *callback_services[SDK_DOMAIN_COUNT];
	struct sdk_buffer_tracing_service *buffer_services[SDK_DOMAIN_COUNT];
	struct sdk_buffer_tracing_service *ext_buffer_services[SDK_DOMAIN_COUNT];
	struct sdk_dispatch_counting_service *dispatch_counting_service; /* counters/dispatches.c */
	struct sdk_external_id_request_service *_Atomic external_id_request_service;
	/* Asked where work is launched (external.h); data is written first. NULL: nobody asks. */
	uint64_t (*_Atomic launch_id_callback)(void *data);
	void *launch_id_data;
	_Atomic bool has_pushed_external_ids; /* something was pushed, ever */
	struct sdk_context *next_removed;
};

/* The active ones: one word, so that an event has one moment at which it is settled who hears of
 * it.
 */
extern _Atomic uint64_t sdk_active_context_bits;
/* Active contexts that count kernels: one at most. Written by counters/dispatches.c. */
extern _Atomic uint64_t sdk_counting_context_bits;
/* Those with a service for the domain, active or not. */
extern _Atomic uint64_t sdk_callback_context_bits_by_domain[SDK_DOMAIN_COUNT];
extern _Atomic uint64_t sdk_buffer_context_bits_by_domain[SDK_DOMAIN_COUNT];
/* By bit. */
extern struct sdk_context *_Atomic sdk_contexts_by_bit[SDK_STARTED_CONTEXTS_MAX];

static inline struct sdk_context *sdk_context_get_by_bit(unsigned bit)
{
	return atomic_load_explicit(&sdk_contexts_by_bit[bit], memory_order_acquire);
}

static inline uint64_t sdk_contexts_get_active_bits(void)
{
	return atomic_load_explicit(&sdk_active_context_bits, memory_order_acquire);
}

static inline uint64_t sdk_contexts_get_counting_bits(void)
{
	return atomic_load_explicit(&sdk_counting_context_bits, memory_order_acquire);
}

static inline uint64_t sdk_domain_get_callback_context_bits(enum sdk_domain domain)
{
	return atomic_load_explicit(&sdk_callback_context_bits_by_domain[domain],
				    memory_order_acquire);
}

static inline uint64_t sdk_domain_get_buffer_context_bits(enum sdk_domain domain)
{
	return atomic_load_explicit(&sdk_buffer_context_bits_by_domain[domain],
				    memory_order_acquire);
}

static inline bool sdk_operation_is_in_set(const uint64_t *operations, int32_t operation)
{
	return operations[operation / 64] >> (operation % 64) & 1;
}

/* What a context counts, begun and ended with it; registered by counters/ before contexts are made.
 */
struct sdk_counting_callbacks {
	/* ROCPROFILER_STATUS_ERROR_HSA_NOT_LOADED: it begins when its runtime does. */
	rocprofiler_status_t (*started)(struct sdk_context *context);
	void (*stopped)(struct sdk_context *context);
};

void sdk_set_counting_callbacks_of_contexts(const struct sdk_counting_callbacks *services);
/* NULL: no such context. */
struct sdk_context *sdk_context_find_by_id(uint64_t id);
uint64_t sdk_client_get_context_bits(uint32_t client); /* bits */
/* A service has been put into it, which may have been started already. */
void sdk_context_publish_services(struct sdk_context *context);
/* Stops the client's contexts (0: all) for good. */
void sdk_contexts_stop_of_client(uint32_t client);
/* Nothing is reported to them from now on; waits for tool functions that still run. */
void sdk_contexts_close_and_wait_of_client(uint32_t client);
/* Contexts of a client that does not want to be one: as if they had never been. */
void sdk_contexts_remove_of_client(uint32_t client);

uint32_t sdk_contexts_get_known_count(void);
void sdk_contexts_set_closed_by_fork(bool is_closed);
/* 0: there is no such context. */
uint32_t sdk_context_get_client_by_bit(unsigned bit);
/* The child of a fork: a function of the client was running on a thread that is not there. */
void sdk_contexts_close_of_client(uint32_t client);

/* For a thread that has marked itself as being in the context's function and found it closed.
 * `before`: the mark that it had before. true: it is open by now, and the thread marked. */
bool sdk_context_wait_until_open(const struct sdk_context *context, struct sdk_thread_state *thread,
				 uint32_t before);
/* Around every call of a tool's function. false: its tool is gone. */
bool sdk_tool_callback_guard_try_enter(struct sdk_context *context, uint32_t *before);
void sdk_tool_callback_guard_leave(uint32_t before);

#endif

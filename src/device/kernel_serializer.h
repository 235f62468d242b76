/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * While kernels of an agent are counted one goes at a time: what is counted is what one kernel did.
 * Programs whose kernels wait for each other would hang in that. So nobody waits longer than
 * KYMO_COUNTER_WATCHDOG seconds (30): then the kernel is given up, its fellows go as they come
 * until nothing is in flight any more, and it is never counted again.
 *
 *   serializer_filter_and_acquire_turn()    before a kernel that has a set: is it counted, and when
 * is it its turn? It is serializer_count_and_filter_launch(), which waits for nothing, and then
 *                         serializer_acquire_turn()
 *   serializer_release_turn()  it has run, alone
 *   serializer_give_up_kernel()  it did not end in time
 *   serializer_wait_while_turn_taken()     before a kernel that is not counted: waits while one is
 *
 * Backends say what is in flight: kernels that are not counted must have ended before one that is
 * begins.
 */
#ifndef KYMO_DEVICE_KERNEL_SERIALIZER_H
#define KYMO_DEVICE_KERNEL_SERIALIZER_H

#include "device/counting.h"

/* Names of kernels, told once when a backend hears of them. */
void serializer_add_kernel_name(device_handle symbol, const char *name);
const char *serializer_get_kernel_name(device_handle symbol);

/* How long a kernel may keep others waiting; UINT64_MAX: for ever. */
uint64_t serializer_get_patience_ns(void);

/* Has everything ended that was not counted? Called with no lock held. */
typedef bool serializer_idle_predicate(void *context);

/* OK: it is this kernel's turn, until serializer_release_turn() or serializer_give_up_kernel().
 * FILTERED, RELEASED: it is not counted; why is in problem. Each launch is to be asked for once:
 * they are numbered here. */
enum counting_status serializer_count_and_filter_launch(device_handle symbol,
							struct counting_problem *problem);
enum counting_status serializer_acquire_turn(device_handle agent, device_handle symbol,
					     serializer_idle_predicate *idle, void *context,
					     struct counting_problem *problem);
enum counting_status serializer_filter_and_acquire_turn(device_handle agent, device_handle symbol,
							serializer_idle_predicate *idle,
							void *context,
							struct counting_problem *problem);
void serializer_release_turn(device_handle agent);
/* The kernel goes on, and others with it. Says so, once a kernel. */
void serializer_give_up_kernel(device_handle agent, device_handle symbol,
			       enum device_runtime_kind runtime, struct counting_problem *problem);
void serializer_wait_while_turn_taken(device_handle agent);
/* No turns are kept now, because a kernel was given up and others may still run. */
bool serializer_has_given_up_kernel(device_handle agent);
bool serializer_is_turn_taken(device_handle agent);
/* How many kernels were given up so far. */
uint64_t serializer_get_given_up_kernel_count(void);
void serializer_reset_forked(void);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * While kernels of an agent are counted one goes at a time: what is counted is what one kernel did.
 * Programs whose kernels wait for each other would hang in that. So nobody waits longer than
 * KYMO_COUNTER_WATCHDOG seconds (30): then the kernel is given up, its fellows go as they come
 * until nothing is in flight any more, and it is never counted again.
 *
 *   turn_begin()     before a kernel that has a set: is it counted, and when is it its turn?
 *                    It is turn_is_wanted(), which waits for nothing, and then turn_take()
 *   turn_end()       it has run, alone
 *   turn_give_up()   it did not end in time
 *   turn_pass()      before a kernel that is not counted: waits while one is
 *
 * Backends tell what is in flight: kernels that are not counted must have ended before one that is
 * begins.
 */
#ifndef KYMO_DEVICE_TURNS_H
#define KYMO_DEVICE_TURNS_H

#include "device/counting.h"

/* Names of kernels, told once when a backend hears of them. */
void turn_kernel_named(device_handle symbol, const char *name);
const char *turn_kernel_name(device_handle symbol);

/* How long a kernel may keep others waiting; UINT64_MAX: for ever. */
uint64_t turn_patience_ns(void);

/* Has everything ended that was not counted? Called with no lock held. */
typedef bool turn_idle(void *context);

/* OK: it is this kernel's turn, until turn_end() or turn_give_up(). FILTERED, RELEASED: it is not
 * counted; why is in problem. Each launch is to be asked for once: they are numbered here. */
enum counting_status turn_is_wanted(device_handle symbol, struct counting_problem *problem);
enum counting_status turn_take(device_handle agent, device_handle symbol, turn_idle *idle,
			       void *context, struct counting_problem *problem);
enum counting_status turn_begin(device_handle agent, device_handle symbol, turn_idle *idle,
				void *context, struct counting_problem *problem);
void turn_end(device_handle agent);
/* The kernel goes on, and others with it. Says so, once a kernel. */
void turn_give_up(device_handle agent, device_handle symbol, enum device_runtime runtime,
		  struct counting_problem *problem);
void turn_pass(device_handle agent);
/* No turns are kept now, because a kernel was given up and others may still run. */
bool turn_is_given_up(device_handle agent);
bool turn_is_taken(device_handle agent);
/* How many kernels were given up so far. */
uint64_t turns_given_up(void);
void turns_forked(void);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What waits for an event that the program has yet to set itself (clSetUserEventStatus()), be it
 * through other commands' events, or through what is before it in its queue. To wait for such a
 * command may be to wait for ever: the thread that would wait may be the one that sets the event.
 *
 * Up to USER_EVENTS_TRACKED_MAX events that are not set have a bit of their own, further ones share
 * one; queues, events and devices have the bits of what they wait for, in a table of fixed size.
 * What has no place there is taken for everything, until the events concerned are set. A queue has
 * the bits of all that was enqueued to it, in order or not: kernels that are counted wait for all
 * of it. No lock is held while functions of the runtime are called.
 */
#ifndef KYMO_DEVICE_OPENCL_USER_EVENTS_H
#define KYMO_DEVICE_OPENCL_USER_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "device/opencl/types.h"

#define USER_EVENTS_TRACKED_MAX 63u

/* Is any event not set? Nothing else needs to be called where none is. */
bool user_events_are_pending(void);
void user_events_add(cl_event event);
void user_events_remove(cl_event event); /* or is about to be */

/* A command: before it is enqueued, and the event that it was given. */
void user_events_add_queue_waits(cl_command_queue queue, cl_uint count, const cl_event *waits_for);
void user_events_copy_queue_waits_to_event(cl_command_queue queue, cl_event made);
/* A kernel of this queue is in flight on a device. */
void user_events_add_queue_waits_to_device(cl_command_queue queue, unsigned device_number);

/* Would a kernel, once it is alone on its device, wait for the program? Ask after
 * user_events_add_queue_waits(). */
bool user_events_would_block_kernel(cl_command_queue queue, unsigned device_number);
void user_events_reset_forked(void);

#endif

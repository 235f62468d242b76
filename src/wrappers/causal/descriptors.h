/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What descriptors are to causal profiling: whom a write wakes, and whether what ended a read came
 * from this session. Both ends of a pipe, a connection or a port find the same hash for each
 * direction, in whichever process they are; writers mark it, readers ask whether it was marked
 * while they waited.
 *
 *   pipe, FIFO              device and inode of the file
 *   TCP, UDP, SCTP          addresses of both ends, or the port where there is no other end yet
 *   named unix sockets      the name that one end is bound to
 *   other unix sockets      all alike: their ends are of one session, but for descriptors that
 *                           were handed in from outside
 *   eventfd                 all alike, for the same reason
 *   signalfd                signals sent to the process
 *
 * What is found out is kept per descriptor until the program closes it.
 */
#ifndef KYMO_WRAPPERS_CAUSAL_DESCRIPTORS_H
#define KYMO_WRAPPERS_CAUSAL_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "causal/causal.h"

#define CAUSAL_HASH_NOT_AWAITED 1u /* a file: its calls do not wait for anybody */
#define CAUSAL_HASH_WOKEN_OUTSIDE                                                                  \
	2u /* a terminal, a timer: nobody of the session wakes who waits */

struct causal_descriptor_hashes {
	uint64_t arrival_hash;   /* marked by those who wake readers; or one of the above */
	uint64_t departure_hash; /* marked by who writes here */
	bool is_socket;
};

struct causal_descriptor_hashes causal_get_descriptor_hashes(int fd);
void causal_descriptor_forget(int fd);
/* From `first` on up to `last`. */
void causal_descriptor_range_forget(unsigned first, unsigned last);

/* What wakes those who wait for a connection, or for a datagram from anywhere, at this address;
 * 0: unknown. */
uint64_t causal_hash_socket_address(const struct sockaddr *address, socklen_t size);
uint64_t causal_hash_signals_to_pid(uint32_t pid);
uint64_t causal_hash_kind_and_number(uint64_t kind, uint64_t number);

enum { CAUSAL_KIND_POSIX_QUEUE = 16, CAUSAL_KIND_SYSV_QUEUE };

/* ---- waits for descriptors ---- */

/* Before the wrappers are added. */
void causal_set_early_wakeup_margin(uint64_t ticks_per_second);
/* Was the wait ended by what this hash stands for? */
bool causal_wait_was_ended_by_hash(uint64_t hash, const struct causal_wait_state *wait);
/* What readers mark for those who wait for room to write. */
uint64_t causal_hash_room_to_write(uint64_t hash);

/* ---- requests: what comes in over a connection that was accepted, and is answered ---- */

void causal_mark_descriptor_accepted(int fd);
void causal_mark_request_arrived(int fd);
void causal_count_answered_request(int fd);

/* ---- epoll: which descriptor an event is about ---- */

void causal_remember_fd_of_epoll_event(int epoll, int fd, uint64_t data);
/* -1: unknown. */
int causal_find_fd_of_epoll_event(int epoll, uint64_t data);

#endif

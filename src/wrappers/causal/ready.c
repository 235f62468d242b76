/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Waits for descriptors to become ready, and for connections, in causal profiling: ended by a
 * thread of the session if it wrote to one of those that are ready, by time or from outside else.
 */
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>

#include "wrappers/causal/descriptors.h"
#include "wrappers/causal/paced.h"

static bool descriptor_was_readied_by_session(int fd, bool to_write,
					      const struct causal_wait_state *wait)
{
	struct causal_descriptor_hashes descriptor = causal_get_descriptor_hashes(fd);

	if (causal_wait_was_ended_by_hash(descriptor.arrival_hash, wait))
		return true;
	return to_write && descriptor.departure_hash > CAUSAL_HASH_WOKEN_OUTSIDE &&
	       causal_wait_was_ended_by_hash(causal_hash_room_to_write(descriptor.departure_hash),
					     wait);
}

/* ---- poll ---- */

static bool any_polled_readied_by_session(const struct pollfd *fds, nfds_t count, int ready,
					  const struct causal_wait_state *wait)
{
	for (nfds_t i = 0; ready > 0 && i < count; i++) {
		if (!fds[i].revents)
			continue;
		ready--;
		if (descriptor_was_readied_by_session(fds[i].fd, fds[i].revents & POLLOUT, wait))
			return true;
	}
	return false;
}

int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t room);
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		const sigset_t *mask, size_t room);

#define POLL_READIED_BY_SESSION_CONDITION any_polled_readied_by_session(fds, count, result, &waited)
DEFINE_PACED_WAIT(int, poll, POLL_READIED_BY_SESSION_CONDITION,
		  (struct pollfd * fds, nfds_t count, int timeout), (fds, count, timeout))
DEFINE_PACED_WAIT(int, __poll_chk, POLL_READIED_BY_SESSION_CONDITION,
		  (struct pollfd * fds, nfds_t count, int timeout, size_t room),
		  (fds, count, timeout, room))
DEFINE_PACED_WAIT(int, ppoll, POLL_READIED_BY_SESSION_CONDITION,
		  (struct pollfd * fds, nfds_t count, const struct timespec *timeout,
		   const sigset_t *mask),
		  (fds, count, timeout, mask))
DEFINE_PACED_WAIT(int, __ppoll_chk, POLL_READIED_BY_SESSION_CONDITION,
		  (struct pollfd * fds, nfds_t count, const struct timespec *timeout,
		   const sigset_t *mask, size_t room),
		  (fds, count, timeout, mask, room))

/* ---- select ---- */

static bool descriptor_is_in_set(int fd, const fd_set *set)
{
	const unsigned long *words = (const void *)set;
	const unsigned bits = 8 * sizeof(*words);

	return set && words[(unsigned)fd / bits] >> ((unsigned)fd % bits) & 1;
}

static bool any_selected_readied_by_session(int count, const fd_set *to_read,
					    const fd_set *to_write, int ready,
					    const struct causal_wait_state *wait)
{
	for (int fd = 0; ready > 0 && fd < count; fd++) {
		bool writable = descriptor_is_in_set(fd, to_write);
		if ((descriptor_is_in_set(fd, to_read) || writable) &&
		    descriptor_was_readied_by_session(fd, writable, wait))
			return true;
	}
	return false;
}

#define SELECT_READIED_BY_SESSION_CONDITION                                                        \
	any_selected_readied_by_session(count, to_read, to_write, result, &waited)
DEFINE_PACED_WAIT(int, select, SELECT_READIED_BY_SESSION_CONDITION,
		  (int count, fd_set *to_read, fd_set *to_write, fd_set *other,
		   struct timeval *timeout),
		  (count, to_read, to_write, other, timeout))
DEFINE_PACED_WAIT(int, pselect, SELECT_READIED_BY_SESSION_CONDITION,
		  (int count, fd_set *to_read, fd_set *to_write, fd_set *other,
		   const struct timespec *timeout, const sigset_t *mask),
		  (count, to_read, to_write, other, timeout, mask))

/* ---- epoll ---- */

static bool has_epoll_event_readied_by_session(int epoll, const struct epoll_event *events,
					       int count, const struct causal_wait_state *wait)
{
	for (int i = 0; i < count; i++) {
		int fd = causal_find_fd_of_epoll_event(epoll, events[i].data.u64);
		if (fd >= 0 &&
		    descriptor_was_readied_by_session(fd, events[i].events & EPOLLOUT, wait))
			return true;
	}
	return false;
}

DEFINE_ORIGINAL_POINTER(epoll_ctl);
static int paced_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
	int result = ORIGINAL(epoll_ctl)(epoll, operation, fd, event);

	if (causal_is_active() && !result && operation != EPOLL_CTL_DEL)
		causal_remember_fd_of_epoll_event(epoll, fd, event->data.u64);
	return result;
}

#define EPOLL_READIED_BY_SESSION_CONDITION                                                         \
	has_epoll_event_readied_by_session(epoll, events, result, &waited)
DEFINE_PACED_WAIT(int, epoll_wait, EPOLL_READIED_BY_SESSION_CONDITION,
		  (int epoll, struct epoll_event *events, int count, int timeout),
		  (epoll, events, count, timeout))
DEFINE_PACED_WAIT(int, epoll_pwait, EPOLL_READIED_BY_SESSION_CONDITION,
		  (int epoll, struct epoll_event *events, int count, int timeout,
		   const sigset_t *mask),
		  (epoll, events, count, timeout, mask))
DEFINE_PACED_WAIT(int, epoll_pwait2, EPOLL_READIED_BY_SESSION_CONDITION,
		  (int epoll, struct epoll_event *events, int count, const struct timespec *timeout,
		   const sigset_t *mask),
		  (epoll, events, count, timeout, mask))

/* ---- connections ---- */

#define DEFINE_PACED_ACCEPT(symbol, parameters, arguments)                                         \
	DEFINE_ORIGINAL_POINTER(symbol);                                                           \
	static int paced_##symbol parameters                                                       \
	{                                                                                          \
		struct causal_wait_state waited;                                                   \
		uint64_t hash;                                                                     \
		int result;                                                                        \
		if (!causal_is_active())                                                           \
			return ORIGINAL(symbol) arguments;                                         \
		hash = causal_get_descriptor_hashes(fd).arrival_hash;                              \
		causal_apply_delay_and_begin_wait(&waited);                                        \
		result = ORIGINAL(symbol) arguments;                                               \
		if (result >= 0)                                                                   \
			causal_mark_descriptor_accepted(result);                                   \
		causal_end_wait_at_site(                                                           \
			&waited,                                                                   \
			paced_woken_by_us_to_waker_kind(                                           \
				result >= 0 && causal_wait_was_ended_by_hash(hash, &waited)),      \
			CAUSAL_GET_CALL_SITE);                                                     \
		return result;                                                                     \
	}

DEFINE_PACED_ACCEPT(accept, (int fd, struct sockaddr *from, socklen_t *size), (fd, from, size))
DEFINE_PACED_ACCEPT(accept4, (int fd, struct sockaddr *from, socklen_t *size, int flags),
		    (fd, from, size, flags))

static void publish_wakeup_of_address_listeners(const struct sockaddr *to, socklen_t size)
{
	struct sockaddr_storage address;
	uint64_t hash = 0;

	if (to && size <= (socklen_t)sizeof(address) &&
	    paced_copy_readable_memory(&address, to, size))
		hash = causal_hash_socket_address((const void *)&address, size);
	if (hash)
		causal_publish_wakeup_to_session(hash);
}

DEFINE_ORIGINAL_POINTER(connect);
static int paced_connect(int fd, const struct sockaddr *to, socklen_t size)
{
	struct causal_wait_state waited;
	int result;

	if (!causal_is_active())
		return ORIGINAL(connect)(fd, to, size);
	causal_apply_delay_and_begin_wait(&waited);
	publish_wakeup_of_address_listeners(to, size);
	result = ORIGINAL(connect)(fd, to, size);
	causal_descriptor_forget(fd);
	causal_end_wait_at_site(&waited, CAUSAL_WAKER_OUTSIDE, CAUSAL_GET_CALL_SITE);
	return result;
}

int causal_add_readiness_wrappers(void)
{
	static struct got_wrapper rows[] = {
		PACED_TABLE_ROW(poll),        PACED_TABLE_ROW(__poll_chk),
		PACED_TABLE_ROW(ppoll),       PACED_TABLE_ROW(select),
		PACED_TABLE_ROW(pselect),     PACED_TABLE_ROW(__ppoll_chk),
		PACED_TABLE_ROW(epoll_ctl),   PACED_TABLE_ROW(epoll_wait),
		PACED_TABLE_ROW(epoll_pwait), PACED_TABLE_ROW(accept),
		PACED_TABLE_ROW(accept4),     PACED_TABLE_ROW(connect),
		PACED_TABLE_ROW(epoll_pwait2)};

	return got_add_wrappers(TABLE_ROWS_AND_COUNT(rows));
}

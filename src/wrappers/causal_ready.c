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

#include "wrappers/causal_descriptors.h"
#include "wrappers/causal_paced.h"

static bool ready_by_us(int fd, bool to_write, const struct causal_wait *wait)
{
	struct causal_descriptor descriptor = causal_descriptor(fd);

	if (causal_ended_by(descriptor.arrives, wait))
		return true;
	return to_write && descriptor.leaves > CAUSAL_OUTSIDE &&
	       causal_ended_by(causal_room(descriptor.leaves), wait);
}

/* ---- poll ---- */

static bool any_polled(const struct pollfd *fds, nfds_t count, int ready,
		       const struct causal_wait *wait)
{
	for (nfds_t i = 0; ready > 0 && i < count; i++) {
		if (!fds[i].revents)
			continue;
		ready--;
		if (ready_by_us(fds[i].fd, fds[i].revents & POLLOUT, wait))
			return true;
	}
	return false;
}

int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t room);
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		const sigset_t *mask, size_t room);

#define POLLED any_polled(fds, count, result, &waited)
PACED_WAIT(int, poll, POLLED, (struct pollfd * fds, nfds_t count, int timeout),
	   (fds, count, timeout))
PACED_WAIT(int, __poll_chk, POLLED, (struct pollfd * fds, nfds_t count, int timeout, size_t room),
	   (fds, count, timeout, room))
PACED_WAIT(int, ppoll, POLLED,
	   (struct pollfd * fds, nfds_t count, const struct timespec *timeout,
	    const sigset_t *mask),
	   (fds, count, timeout, mask))
PACED_WAIT(int, __ppoll_chk, POLLED,
	   (struct pollfd * fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask,
	    size_t room),
	   (fds, count, timeout, mask, room))

/* ---- select ---- */

static bool is_in(int fd, const fd_set *set)
{
	const unsigned long *words = (const void *)set;
	const unsigned bits = 8 * sizeof(*words);

	return set && words[(unsigned)fd / bits] >> ((unsigned)fd % bits) & 1;
}

static bool any_selected(int count, const fd_set *to_read, const fd_set *to_write, int ready,
			 const struct causal_wait *wait)
{
	for (int fd = 0; ready > 0 && fd < count; fd++) {
		bool writable = is_in(fd, to_write);
		if ((is_in(fd, to_read) || writable) && ready_by_us(fd, writable, wait))
			return true;
	}
	return false;
}

#define SELECTED any_selected(count, to_read, to_write, result, &waited)
PACED_WAIT(int, select, SELECTED,
	   (int count, fd_set *to_read, fd_set *to_write, fd_set *other, struct timeval *timeout),
	   (count, to_read, to_write, other, timeout))
PACED_WAIT(int, pselect, SELECTED,
	   (int count, fd_set *to_read, fd_set *to_write, fd_set *other,
	    const struct timespec *timeout, const sigset_t *mask),
	   (count, to_read, to_write, other, timeout, mask))

/* ---- epoll ---- */

static bool any_event(int epoll, const struct epoll_event *events, int count,
		      const struct causal_wait *wait)
{
	for (int i = 0; i < count; i++) {
		int fd = causal_epoll_descriptor(epoll, events[i].data.u64);
		if (fd >= 0 && ready_by_us(fd, events[i].events & EPOLLOUT, wait))
			return true;
	}
	return false;
}

PACED_ORIGINAL(epoll_ctl);
static int paced_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
	int result = ORIGINAL(epoll_ctl)(epoll, operation, fd, event);

	if (causal_on() && !result && operation != EPOLL_CTL_DEL)
		causal_epoll_added(epoll, fd, event->data.u64);
	return result;
}

#define HAPPENED any_event(epoll, events, result, &waited)
PACED_WAIT(int, epoll_wait, HAPPENED,
	   (int epoll, struct epoll_event *events, int count, int timeout),
	   (epoll, events, count, timeout))
PACED_WAIT(int, epoll_pwait, HAPPENED,
	   (int epoll, struct epoll_event *events, int count, int timeout, const sigset_t *mask),
	   (epoll, events, count, timeout, mask))
PACED_WAIT(int, epoll_pwait2, HAPPENED,
	   (int epoll, struct epoll_event *events, int count, const struct timespec *timeout,
	    const sigset_t *mask),
	   (epoll, events, count, timeout, mask))

/* ---- connections ---- */

#define PACED_ACCEPT(symbol, parameters, arguments)                                                \
	PACED_ORIGINAL(symbol);                                                                    \
	static int paced_##symbol parameters                                                       \
	{                                                                                          \
		struct causal_wait waited;                                                         \
		uint64_t hash;                                                                     \
		int result;                                                                        \
		if (!causal_on())                                                                  \
			return ORIGINAL(symbol) arguments;                                         \
		hash = causal_descriptor(fd).arrives;                                              \
		causal_before_wait(&waited);                                                       \
		result = ORIGINAL(symbol) arguments;                                               \
		if (result >= 0)                                                                   \
			causal_connection_accepted(result);                                        \
		causal_after_wait_at(&waited,                                                      \
				     paced_waker(result >= 0 && causal_ended_by(hash, &waited)),   \
				     CAUSAL_SITE);                                                 \
		return result;                                                                     \
	}

PACED_ACCEPT(accept, (int fd, struct sockaddr *from, socklen_t *size), (fd, from, size))
PACED_ACCEPT(accept4, (int fd, struct sockaddr *from, socklen_t *size, int flags),
	     (fd, from, size, flags))

static void mark_listener(const struct sockaddr *to, socklen_t size)
{
	struct sockaddr_storage address;
	uint64_t hash = 0;

	if (to && size <= (socklen_t)sizeof(address) && paced_read_memory(&address, to, size))
		hash = causal_address_hash((const void *)&address, size);
	if (hash)
		causal_mark(hash);
}

PACED_ORIGINAL(connect);
static int paced_connect(int fd, const struct sockaddr *to, socklen_t size)
{
	struct causal_wait waited;
	int result;

	if (!causal_on())
		return ORIGINAL(connect)(fd, to, size);
	causal_before_wait(&waited);
	mark_listener(to, size);
	result = ORIGINAL(connect)(fd, to, size);
	causal_descriptor_forget(fd);
	causal_after_wait_at(&waited, CAUSAL_WAKER_OUTSIDE, CAUSAL_SITE);
	return result;
}

int causal_ready_add(void)
{
	static struct got_wrapper rows[] = {
		PACED_ROW(poll),        PACED_ROW(__poll_chk), PACED_ROW(ppoll),
		PACED_ROW(select),      PACED_ROW(pselect),    PACED_ROW(__ppoll_chk),
		PACED_ROW(epoll_ctl),   PACED_ROW(epoll_wait), PACED_ROW(epoll_pwait),
		PACED_ROW(accept),      PACED_ROW(accept4),    PACED_ROW(connect),
		PACED_ROW(epoll_pwait2)};

	return got_add(TABLE(rows));
}

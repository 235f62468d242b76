/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Reads and writes in causal profiling. What wakes a reader is marked before the write, because it
 * is awake before the write returns; a long one, which wakes it again and again, once more after.
 * Reads make room, which those wait for who write to a full pipe.
 */
#include <fcntl.h>
#include <limits.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "wrappers/causal_descriptors.h"
#include "wrappers/causal_paced.h"

struct transfer {
	struct causal_wait wait;
	struct causal_descriptor from, to; /* either may be a file */
	int socket;                        /* that is written to, or -1 */
	uint64_t address;                  /* of a datagram */
};

static const struct causal_descriptor no_descriptor = {.arrives = CAUSAL_NOT_WAITED,
						       .leaves = CAUSAL_NOT_WAITED};

static void mark(uint64_t hash)
{
	if (hash > CAUSAL_OUTSIDE)
		causal_mark(hash);
}

/* False: nobody waits for anybody. */
static bool begin(struct transfer *transfer)
{
	if (transfer->from.arrives == CAUSAL_NOT_WAITED &&
	    transfer->to.arrives == CAUSAL_NOT_WAITED)
		return false;
	causal_before_wait(&transfer->wait);
	if (transfer->from.arrives > CAUSAL_OUTSIDE)
		causal_mark(causal_room(transfer->from.arrives));
	mark(transfer->to.leaves);
	mark(transfer->address);
	if (transfer->socket >= 0)
		causal_request_answered(transfer->socket);
	return true;
}

static void end(const struct transfer *transfer, ssize_t result, uint64_t site)
{
	bool by_us = false;

	if (result > PIPE_BUF)
		mark(transfer->to.leaves);
	if (result >= 0 && transfer->from.arrives > CAUSAL_OUTSIDE)
		by_us = causal_ended_by(transfer->from.arrives, &transfer->wait);
	if (result >= 0 && transfer->to.leaves > CAUSAL_OUTSIDE)
		by_us |= causal_ended_by(causal_room(transfer->to.leaves), &transfer->wait);
	causal_after_wait_at(&transfer->wait, paced_waker(by_us), site);
}

static bool begin_read(struct transfer *transfer, int fd)
{
	*transfer =
		(struct transfer){.from = causal_descriptor(fd), .to = no_descriptor, .socket = -1};
	return begin(transfer);
}

static void end_read(const struct transfer *transfer, int fd, ssize_t result, uint64_t site)
{
	if (result > 0 && transfer->from.is_socket)
		causal_request_came(fd);
	end(transfer, result, site);
}

static bool begin_write(struct transfer *transfer, int fd, uint64_t address)
{
	*transfer = (struct transfer){
		.from = no_descriptor, .to = causal_descriptor(fd), .address = address};
	transfer->socket = transfer->to.is_socket ? fd : -1;
	return begin(transfer);
}

static bool begin_both(struct transfer *transfer, int from, int to)
{
	*transfer = (struct transfer){.from = causal_descriptor(from), .to = causal_descriptor(to)};
	transfer->socket = transfer->to.is_socket ? to : -1;
	return begin(transfer);
}

#define PACED_READ(type, symbol, parameters, arguments)                                            \
	PACED_ORIGINAL(symbol);                                                                    \
	static type paced_##symbol parameters                                                      \
	{                                                                                          \
		struct transfer transfer;                                                          \
		type result;                                                                       \
		if (!causal_on() || !begin_read(&transfer, fd))                                    \
			return ORIGINAL(symbol) arguments;                                         \
		result = ORIGINAL(symbol) arguments;                                               \
		end_read(&transfer, fd, result, CAUSAL_SITE);                                      \
		return result;                                                                     \
	}

#define PACED_WRITE(type, symbol, address, parameters, arguments)                                  \
	PACED_ORIGINAL(symbol);                                                                    \
	static type paced_##symbol parameters                                                      \
	{                                                                                          \
		struct transfer transfer;                                                          \
		type result;                                                                       \
		if (!causal_on() || !begin_write(&transfer, fd, address))                          \
			return ORIGINAL(symbol) arguments;                                         \
		result = ORIGINAL(symbol) arguments;                                               \
		end(&transfer, result, CAUSAL_SITE);                                               \
		return result;                                                                     \
	}

#define PACED_BOTH(symbol, parameters, arguments)                                                  \
	PACED_ORIGINAL(symbol);                                                                    \
	static ssize_t paced_##symbol parameters                                                   \
	{                                                                                          \
		struct transfer transfer;                                                          \
		ssize_t result;                                                                    \
		if (!causal_on() || !begin_both(&transfer, from, to))                              \
			return ORIGINAL(symbol) arguments;                                         \
		result = ORIGINAL(symbol) arguments;                                               \
		end(&transfer, result, CAUSAL_SITE);                                               \
		return result;                                                                     \
	}

/* ---- where datagrams go ---- */

static uint64_t hash_of(const struct sockaddr *to, socklen_t size)
{
	struct sockaddr_storage address;

	if (!to || size < (socklen_t)sizeof(sa_family_t) || size > (socklen_t)sizeof(address) ||
	    !paced_read_memory(&address, to, size))
		return 0;
	return causal_address_hash((const void *)&address, size);
}

static uint64_t hash_of_message(const struct msghdr *message)
{
	struct msghdr copy;

	if (!message || !paced_read_memory(&copy, message, sizeof(copy)))
		return 0;
	return hash_of(copy.msg_name, copy.msg_namelen);
}

/* ---- the calls ---- */

/* Fortified names (glibc, debug/): the plain arguments and the size of the buffer. */
ssize_t __read_chk(int fd, void *data, size_t size, size_t room);
ssize_t __recv_chk(int fd, void *data, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *data, size_t size, size_t room, int flags,
		       struct sockaddr *from, socklen_t *from_size);

PACED_READ(ssize_t, read, (int fd, void *data, size_t size), (fd, data, size))
PACED_READ(ssize_t, __read_chk, (int fd, void *data, size_t size, size_t room),
	   (fd, data, size, room))
PACED_READ(ssize_t, readv, (int fd, const struct iovec *parts, int count), (fd, parts, count))
PACED_READ(ssize_t, recv, (int fd, void *data, size_t size, int flags), (fd, data, size, flags))
PACED_READ(ssize_t, __recv_chk, (int fd, void *data, size_t size, size_t room, int flags),
	   (fd, data, size, room, flags))
PACED_READ(ssize_t, recvfrom,
	   (int fd, void *data, size_t size, int flags, struct sockaddr *from,
	    socklen_t *from_size),
	   (fd, data, size, flags, from, from_size))
PACED_READ(ssize_t, __recvfrom_chk,
	   (int fd, void *data, size_t size, size_t room, int flags, struct sockaddr *from,
	    socklen_t *from_size),
	   (fd, data, size, room, flags, from, from_size))
PACED_READ(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))
PACED_READ(int, recvmmsg,
	   (int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout),
	   (fd, messages, count, flags, timeout))
PACED_WRITE(ssize_t, write, 0, (int fd, const void *data, size_t size), (fd, data, size))
PACED_WRITE(ssize_t, writev, 0, (int fd, const struct iovec *parts, int count), (fd, parts, count))
PACED_WRITE(ssize_t, send, 0, (int fd, const void *data, size_t size, int flags),
	    (fd, data, size, flags))
PACED_WRITE(ssize_t, sendto, hash_of(to, to_size),
	    (int fd, const void *data, size_t size, int flags, const struct sockaddr *to,
	     socklen_t to_size),
	    (fd, data, size, flags, to, to_size))
PACED_WRITE(ssize_t, sendmsg, hash_of_message(message),
	    (int fd, const struct msghdr *message, int flags), (fd, message, flags))
PACED_WRITE(int, sendmmsg, hash_of_message(&messages->msg_hdr),
	    (int fd, struct mmsghdr *messages, unsigned count, int flags),
	    (fd, messages, count, flags))
PACED_WRITE(ssize_t, vmsplice, 0, (int fd, const struct iovec *parts, size_t count, unsigned flags),
	    (fd, parts, count, flags))
PACED_BOTH(sendfile, (int to, int from, off_t *at, size_t size), (to, from, at, size))
PACED_BOTH(sendfile64, (int to, int from, off64_t *at, size_t size), (to, from, at, size))
PACED_BOTH(splice, (int from, off64_t *at, int to, off64_t *to_at, size_t size, unsigned flags),
	   (from, at, to, to_at, size, flags))
PACED_BOTH(tee, (int from, int to, size_t size, unsigned flags), (from, to, size, flags))

int causal_bytes_add(void)
{
	static struct got_wrapper rows[] = {
		PACED_ROW(read),     PACED_ROW(__read_chk), PACED_ROW(readv),
		PACED_ROW(recv),     PACED_ROW(__recv_chk), PACED_ROW(recvfrom),
		PACED_ROW(recvmsg),  PACED_ROW(recvmmsg),   PACED_ROW(__recvfrom_chk),
		PACED_ROW(write),    PACED_ROW(writev),     PACED_ROW(send),
		PACED_ROW(sendto),   PACED_ROW(sendmsg),    PACED_ROW(sendmmsg),
		PACED_ROW(vmsplice), PACED_ROW(sendfile),   PACED_ROW(sendfile64),
		PACED_ROW(splice),   PACED_ROW(tee)};

	return got_add(TABLE(rows));
}

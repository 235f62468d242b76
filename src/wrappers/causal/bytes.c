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

#include "wrappers/causal/descriptors.h"
#include "wrappers/causal/paced.h"

struct paced_transfer_state {
	struct causal_wait_state wait_state;
	struct causal_descriptor_hashes from, to; /* either may be a file */
	int socket;                               /* that is written to, or -1 */
	uint64_t address;                         /* of a datagram */
};

static const struct causal_descriptor_hashes unawaited_descriptor_hashes = {
	.arrival_hash = CAUSAL_HASH_NOT_AWAITED, .departure_hash = CAUSAL_HASH_NOT_AWAITED};

static void publish_wakeup_if_awaited(uint64_t hash)
{
	if (hash > CAUSAL_HASH_WOKEN_OUTSIDE)
		causal_publish_wakeup_to_session(hash);
}

/* False: nobody waits for anybody. */
static bool begin_transfer_wait(struct paced_transfer_state *transfer)
{
	if (transfer->from.arrival_hash == CAUSAL_HASH_NOT_AWAITED &&
	    transfer->to.arrival_hash == CAUSAL_HASH_NOT_AWAITED)
		return false;
	causal_apply_delay_and_begin_wait(&transfer->wait_state);
	if (transfer->from.arrival_hash > CAUSAL_HASH_WOKEN_OUTSIDE)
		causal_publish_wakeup_to_session(
			causal_hash_room_to_write(transfer->from.arrival_hash));
	publish_wakeup_if_awaited(transfer->to.departure_hash);
	publish_wakeup_if_awaited(transfer->address);
	if (transfer->socket >= 0)
		causal_count_answered_request(transfer->socket);
	return true;
}

static void end_transfer_wait(const struct paced_transfer_state *transfer, ssize_t result,
			      uint64_t site)
{
	bool by_us = false;

	if (result > PIPE_BUF)
		publish_wakeup_if_awaited(transfer->to.departure_hash);
	if (result >= 0 && transfer->from.arrival_hash > CAUSAL_HASH_WOKEN_OUTSIDE)
		by_us = causal_wait_was_ended_by_hash(transfer->from.arrival_hash,
						      &transfer->wait_state);
	if (result >= 0 && transfer->to.departure_hash > CAUSAL_HASH_WOKEN_OUTSIDE)
		by_us |= causal_wait_was_ended_by_hash(
			causal_hash_room_to_write(transfer->to.departure_hash),
			&transfer->wait_state);
	causal_end_wait_at_site(&transfer->wait_state, paced_woken_by_us_to_waker_kind(by_us),
				site);
}

static bool begin_read_wait(struct paced_transfer_state *transfer, int fd)
{
	*transfer = (struct paced_transfer_state){.from = causal_get_descriptor_hashes(fd),
						  .to = unawaited_descriptor_hashes,
						  .socket = -1};
	return begin_transfer_wait(transfer);
}

static void end_read_wait(const struct paced_transfer_state *transfer, int fd, ssize_t result,
			  uint64_t site)
{
	if (result > 0 && transfer->from.is_socket)
		causal_mark_request_arrived(fd);
	end_transfer_wait(transfer, result, site);
}

static bool begin_write_wait(struct paced_transfer_state *transfer, int fd, uint64_t address)
{
	*transfer = (struct paced_transfer_state){.from = unawaited_descriptor_hashes,
						  .to = causal_get_descriptor_hashes(fd),
						  .address = address};
	transfer->socket = transfer->to.is_socket ? fd : -1;
	return begin_transfer_wait(transfer);
}

static bool begin_copy_wait(struct paced_transfer_state *transfer, int from, int to)
{
	*transfer = (struct paced_transfer_state){.from = causal_get_descriptor_hashes(from),
						  .to = causal_get_descriptor_hashes(to)};
	transfer->socket = transfer->to.is_socket ? to : -1;
	return begin_transfer_wait(transfer);
}

#define DEFINE_PACED_READ(type, symbol, parameters, arguments)                                     \
	DEFINE_ORIGINAL_POINTER(symbol);                                                           \
	static type paced_##symbol parameters                                                      \
	{                                                                                          \
		struct paced_transfer_state transfer;                                              \
		type result;                                                                       \
		if (!causal_is_active() || !begin_read_wait(&transfer, fd))                        \
			return ORIGINAL(symbol) arguments;                                         \
		result = ORIGINAL(symbol) arguments;                                               \
		end_read_wait(&transfer, fd, result, CAUSAL_GET_CALL_SITE);                        \
		return result;                                                                     \
	}

#define DEFINE_PACED_WRITE(type, symbol, address, parameters, arguments)                           \
	DEFINE_ORIGINAL_POINTER(symbol);                                                           \
	static type paced_##symbol parameters                                                      \
	{                                                                                          \
		struct paced_transfer_state transfer;                                              \
		type result;                                                                       \
		if (!causal_is_active() || !begin_write_wait(&transfer, fd, address))              \
			return ORIGINAL(symbol) arguments;                                         \
		result = ORIGINAL(symbol) arguments;                                               \
		end_transfer_wait(&transfer, result, CAUSAL_GET_CALL_SITE);                        \
		return result;                                                                     \
	}

#define DEFINE_PACED_COPY(symbol, parameters, arguments)                                           \
	DEFINE_ORIGINAL_POINTER(symbol);                                                           \
	static ssize_t paced_##symbol parameters                                                   \
	{                                                                                          \
		struct paced_transfer_state transfer;                                              \
		ssize_t result;                                                                    \
		if (!causal_is_active() || !begin_copy_wait(&transfer, from, to))                  \
			return ORIGINAL(symbol) arguments;                                         \
		result = ORIGINAL(symbol) arguments;                                               \
		end_transfer_wait(&transfer, result, CAUSAL_GET_CALL_SITE);                        \
		return result;                                                                     \
	}

/* ---- where datagrams go ---- */

static uint64_t hash_destination_address(const struct sockaddr *to, socklen_t size)
{
	struct sockaddr_storage address;

	if (!to || size < (socklen_t)sizeof(sa_family_t) || size > (socklen_t)sizeof(address) ||
	    !paced_copy_readable_memory(&address, to, size))
		return 0;
	return causal_hash_socket_address((const void *)&address, size);
}

static uint64_t hash_message_destination(const struct msghdr *message)
{
	struct msghdr copy;

	if (!message || !paced_copy_readable_memory(&copy, message, sizeof(copy)))
		return 0;
	return hash_destination_address(copy.msg_name, copy.msg_namelen);
}

/* ---- the calls ---- */

/* Fortified names (glibc, debug/): the plain arguments and the size of the buffer. */
ssize_t __read_chk(int fd, void *data, size_t size, size_t room);
ssize_t __recv_chk(int fd, void *data, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *data, size_t size, size_t room, int flags,
		       struct sockaddr *from, socklen_t *from_size);

DEFINE_PACED_READ(ssize_t, read, (int fd, void *data, size_t size), (fd, data, size))
DEFINE_PACED_READ(ssize_t, __read_chk, (int fd, void *data, size_t size, size_t room),
		  (fd, data, size, room))
DEFINE_PACED_READ(ssize_t, readv, (int fd, const struct iovec *parts, int count),
		  (fd, parts, count))
DEFINE_PACED_READ(ssize_t, recv, (int fd, void *data, size_t size, int flags),
		  (fd, data, size, flags))
DEFINE_PACED_READ(ssize_t, __recv_chk, (int fd, void *data, size_t size, size_t room, int flags),
		  (fd, data, size, room, flags))
DEFINE_PACED_READ(ssize_t, recvfrom,
		  (int fd, void *data, size_t size, int flags, struct sockaddr *from,
		   socklen_t *from_size),
		  (fd, data, size, flags, from, from_size))
DEFINE_PACED_READ(ssize_t, __recvfrom_chk,
		  (int fd, void *data, size_t size, size_t room, int flags, struct sockaddr *from,
		   socklen_t *from_size),
		  (fd, data, size, room, flags, from, from_size))
DEFINE_PACED_READ(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags),
		  (fd, message, flags))
DEFINE_PACED_READ(int, recvmmsg,
		  (int fd, struct mmsghdr *messages, unsigned count, int flags,
		   struct timespec *timeout),
		  (fd, messages, count, flags, timeout))
DEFINE_PACED_WRITE(ssize_t, write, 0, (int fd, const void *data, size_t size), (fd, data, size))
DEFINE_PACED_WRITE(ssize_t, writev, 0, (int fd, const struct iovec *parts, int count),
		   (fd, parts, count))
DEFINE_PACED_WRITE(ssize_t, send, 0, (int fd, const void *data, size_t size, int flags),
		   (fd, data, size, flags))
DEFINE_PACED_WRITE(ssize_t, sendto, hash_destination_address(to, to_size),
		   (int fd, const void *data, size_t size, int flags, const struct sockaddr *to,
		    socklen_t to_size),
		   (fd, data, size, flags, to, to_size))
DEFINE_PACED_WRITE(ssize_t, sendmsg, hash_message_destination(message),
		   (int fd, const struct msghdr *message, int flags), (fd, message, flags))
DEFINE_PACED_WRITE(int, sendmmsg, hash_message_destination(&messages->msg_hdr),
		   (int fd, struct mmsghdr *messages, unsigned count, int flags),
		   (fd, messages, count, flags))
DEFINE_PACED_WRITE(ssize_t, vmsplice, 0,
		   (int fd, const struct iovec *parts, size_t count, unsigned flags),
		   (fd, parts, count, flags))
DEFINE_PACED_COPY(sendfile, (int to, int from, off_t *at, size_t size), (to, from, at, size))
DEFINE_PACED_COPY(sendfile64, (int to, int from, off64_t *at, size_t size), (to, from, at, size))
DEFINE_PACED_COPY(splice,
		  (int from, off64_t *at, int to, off64_t *to_at, size_t size, unsigned flags),
		  (from, at, to, to_at, size, flags))
DEFINE_PACED_COPY(tee, (int from, int to, size_t size, unsigned flags), (from, to, size, flags))

int causal_add_transfer_wrappers(void)
{
	static struct got_wrapper rows[] = {
		PACED_TABLE_ROW(read),           PACED_TABLE_ROW(__read_chk),
		PACED_TABLE_ROW(readv),          PACED_TABLE_ROW(recv),
		PACED_TABLE_ROW(__recv_chk),     PACED_TABLE_ROW(recvfrom),
		PACED_TABLE_ROW(recvmsg),        PACED_TABLE_ROW(recvmmsg),
		PACED_TABLE_ROW(__recvfrom_chk), PACED_TABLE_ROW(write),
		PACED_TABLE_ROW(writev),         PACED_TABLE_ROW(send),
		PACED_TABLE_ROW(sendto),         PACED_TABLE_ROW(sendmsg),
		PACED_TABLE_ROW(sendmmsg),       PACED_TABLE_ROW(vmsplice),
		PACED_TABLE_ROW(sendfile),       PACED_TABLE_ROW(sendfile64),
		PACED_TABLE_ROW(splice),         PACED_TABLE_ROW(tee)};

	return got_add_wrappers(TABLE_ROWS_AND_COUNT(rows));
}

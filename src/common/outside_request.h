/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * How libkymo asks the kymo command to sample from outside what no library can be loaded into: a
 * program that is about to be executed, or was spawned. A datagram socket with connections
 * (SOCK_SEQPACKET) in the abstract namespace, whose name comes from the session's directory; where
 * nobody listens, asking fails at once.
 */
#ifndef KYMO_COMMON_OUTSIDE_REQUEST_H
#define KYMO_COMMON_OUTSIDE_REQUEST_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

enum outside_request_kind {
	OUTSIDE_REQUEST_NOTHING, /* is anybody there? */
	OUTSIDE_REQUEST_EXEC,    /* this thread of who asks, from its exec on */
	OUTSIDE_REQUEST_CHILD    /* a child of who asks, which runs already */
};

struct outside_request {
	uint32_t kind;
	uint32_t tid; /* in the eyes of who asks */
};

/* The answer is one byte: 1 if it is sampled. */

/* Fills the address for a session's spool directory; returns its size. */
static inline uint32_t outside_request_make_address(const char *spool_directory,
						    struct sockaddr_un *ret)
{
	static const char prefix[] = "kymo-outside:";
	size_t length = strlen(spool_directory), room = sizeof(ret->sun_path) - sizeof(prefix);

	/* The end of a path tells sessions apart. */
	if (length > room) {
		spool_directory += length - room;
		length = room;
	}
	memset(ret, 0, sizeof(*ret));
	ret->sun_family = AF_UNIX;
	memcpy(ret->sun_path + 1, prefix, sizeof(prefix) - 1);
	memcpy(ret->sun_path + sizeof(prefix), spool_directory, length);
	return (uint32_t)(offsetof(struct sockaddr_un, sun_path) + sizeof(prefix) + length);
}

#endif

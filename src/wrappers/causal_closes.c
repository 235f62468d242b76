/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What ends or changes descriptors in causal profiling: what is known of them is forgotten, and
 * readers at the other end are woken. File locks between processes are here as well, for fcntl is.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wrappers/causal_descriptors.h"
#include "wrappers/causal_paced.h"

/* In each wrapper for itself: CAUSAL_SITE is its caller. */
__attribute__((always_inline)) static inline void before_close(int fd)
{
	struct causal_descriptor descriptor;

	if (!causal_on() || fd < 0)
		return;
	descriptor = causal_descriptor(fd);
	if (descriptor.leaves > CAUSAL_OUTSIDE) {
		causal_pay_at(CAUSAL_SITE);
		causal_mark(descriptor.leaves);
	}
	causal_descriptor_forget(fd);
}

#define PACED_CLOSE(type, symbol, fd, parameters, arguments)                                       \
	PACED_ORIGINAL(symbol);                                                                    \
	static type paced_##symbol parameters                                                      \
	{                                                                                          \
		before_close(fd);                                                                  \
		return ORIGINAL(symbol) arguments;                                                 \
	}

PACED_ORIGINAL(fileno);

static int fd_of(FILE *stream)
{
	int error = errno, fd = ORIGINAL(fileno) ? ORIGINAL(fileno)(stream) : -1;

	errno = error;
	return fd;
}

PACED_CLOSE(int, close, fd, (int fd), (fd))
PACED_CLOSE(int, fclose, fd_of(stream), (FILE * stream), (stream))
PACED_CLOSE(FILE *, freopen, fd_of(stream), (const char *path, const char *mode, FILE *stream),
	    (path, mode, stream))
PACED_CLOSE(FILE *, freopen64, fd_of(stream), (const char *path, const char *mode, FILE *stream),
	    (path, mode, stream))
PACED_CLOSE(int, dup2, fd, (int from, int fd), (from, fd))
PACED_CLOSE(int, dup3, fd, (int from, int fd, int flags), (from, fd, flags))
PACED_CLOSE(int, listen, fd, (int fd, int count), (fd, count))
PACED_CLOSE(int, bind, fd, (int fd, const struct sockaddr *address, socklen_t size),
	    (fd, address, size))

PACED_ORIGINAL(shutdown);
static int paced_shutdown(int fd, int how)
{
	struct causal_descriptor descriptor;

	if (causal_on()) {
		descriptor = causal_descriptor(fd);
		causal_pay_at(CAUSAL_SITE);
		if (descriptor.leaves > CAUSAL_OUTSIDE)
			causal_mark(descriptor.leaves);
	}
	return ORIGINAL(shutdown)(fd, how);
}

PACED_ORIGINAL(close_range);
static int paced_close_range(unsigned first, unsigned last, int flags)
{
	if (causal_on())
		causal_descriptors_forget(first, last);
	return ORIGINAL(close_range)(first, last, flags);
}

PACED_ORIGINAL(closefrom);
static void paced_closefrom(int first)
{
	if (causal_on())
		causal_descriptors_forget(first < 0 ? 0 : (unsigned)first, UINT32_MAX);
	ORIGINAL(closefrom)(first);
}

/* ---- file locks ---- */

static bool waits_for_lock(int command)
{
	return command == F_SETLKW || command == F_OFD_SETLKW;
}

static bool sets_lock(int command)
{
	return command == F_SETLK || command == F_OFD_SETLK;
}

/* The third argument is an int, a pointer, or not there: a word in any case. */
#define PACED_FCNTL(symbol)                                                                        \
	PACED_ORIGINAL(symbol);                                                                    \
	static int paced_##symbol(int fd, int command, ...)                                        \
	{                                                                                          \
		struct causal_wait wait;                                                           \
		va_list list;                                                                      \
		long argument;                                                                     \
		int result;                                                                        \
		va_start(list, command);                                                           \
		argument = va_arg(list, long);                                                     \
		va_end(list);                                                                      \
		if (causal_on() && sets_lock(command))                                             \
			causal_pay_at(CAUSAL_SITE);                                                \
		if (!causal_on() || !waits_for_lock(command))                                      \
			return ORIGINAL(symbol)(fd, command, argument);                            \
		causal_before_wait(&wait);                                                         \
		result = ORIGINAL(symbol)(fd, command, argument);                                  \
		causal_after_wait_at(&wait, paced_waker(!result), CAUSAL_SITE);                    \
		return result;                                                                     \
	}

PACED_FCNTL(fcntl)
PACED_FCNTL(fcntl64)
PACED_WAIT(int, flock, !result, (int fd, int operation), (fd, operation))
PACED_WAIT(int, lockf, !result, (int fd, int operation, off_t size), (fd, operation, size))
PACED_WAIT(int, lockf64, !result, (int fd, int operation, off64_t size), (fd, operation, size))

int causal_closes_add(void)
{
	static struct got_wrapper rows[] = {
		{.symbol = "fileno", .original = &original_fileno, .library = CAUSAL_LIBC},
		PACED_ROW(close),
		PACED_ROW(fclose),
		PACED_ROW(freopen),
		PACED_ROW(freopen64),
		PACED_ROW(dup2),
		PACED_ROW(dup3),
		PACED_ROW(listen),
		PACED_ROW(bind),
		PACED_ROW(shutdown),
		PACED_ROW(close_range),
		PACED_ROW(closefrom),
		PACED_ROW(fcntl),
		PACED_ROW(fcntl64),
		PACED_ROW(flock),
		PACED_ROW(lockf),
		PACED_ROW(lockf64)};

	return got_add(TABLE(rows));
}

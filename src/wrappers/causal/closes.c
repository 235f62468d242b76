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

#include "wrappers/causal/descriptors.h"
#include "wrappers/causal/paced.h"

/* In each wrapper for itself: CAUSAL_GET_CALL_SITE is its caller. */
__attribute__((always_inline)) static inline void publish_wakeup_and_forget_descriptor(int fd)
{
	struct causal_descriptor_hashes descriptor;

	if (!causal_is_active() || fd < 0)
		return;
	descriptor = causal_get_descriptor_hashes(fd);
	if (descriptor.departure_hash > CAUSAL_HASH_WOKEN_OUTSIDE) {
		causal_pay_delay_at_site(CAUSAL_GET_CALL_SITE);
		causal_publish_wakeup_to_session(descriptor.departure_hash);
	}
	causal_descriptor_forget(fd);
}

#define DEFINE_PACED_CLOSE(type, symbol, fd, parameters, arguments)                                \
	DEFINE_ORIGINAL_POINTER(symbol);                                                           \
	static type paced_##symbol parameters                                                      \
	{                                                                                          \
		publish_wakeup_and_forget_descriptor(fd);                                          \
		return ORIGINAL(symbol) arguments;                                                 \
	}

DEFINE_ORIGINAL_POINTER(fileno);

static int stream_to_descriptor(FILE *stream)
{
	int error = errno, fd = ORIGINAL(fileno) ? ORIGINAL(fileno)(stream) : -1;

	errno = error;
	return fd;
}

DEFINE_PACED_CLOSE(int, close, fd, (int fd), (fd))
DEFINE_PACED_CLOSE(int, fclose, stream_to_descriptor(stream), (FILE * stream), (stream))
DEFINE_PACED_CLOSE(FILE *, freopen, stream_to_descriptor(stream),
		   (const char *path, const char *mode, FILE *stream), (path, mode, stream))
DEFINE_PACED_CLOSE(FILE *, freopen64, stream_to_descriptor(stream),
		   (const char *path, const char *mode, FILE *stream), (path, mode, stream))
DEFINE_PACED_CLOSE(int, dup2, fd, (int from, int fd), (from, fd))
DEFINE_PACED_CLOSE(int, dup3, fd, (int from, int fd, int flags), (from, fd, flags))
DEFINE_PACED_CLOSE(int, listen, fd, (int fd, int count), (fd, count))
DEFINE_PACED_CLOSE(int, bind, fd, (int fd, const struct sockaddr *address, socklen_t size),
		   (fd, address, size))

DEFINE_ORIGINAL_POINTER(shutdown);
static int paced_shutdown(int fd, int how)
{
	struct causal_descriptor_hashes descriptor;

	if (causal_is_active()) {
		descriptor = causal_get_descriptor_hashes(fd);
		causal_pay_delay_at_site(CAUSAL_GET_CALL_SITE);
		if (descriptor.departure_hash > CAUSAL_HASH_WOKEN_OUTSIDE)
			causal_publish_wakeup_to_session(descriptor.departure_hash);
	}
	return ORIGINAL(shutdown)(fd, how);
}

DEFINE_ORIGINAL_POINTER(close_range);
static int paced_close_range(unsigned first, unsigned last, int flags)
{
	if (causal_is_active())
		causal_descriptor_range_forget(first, last);
	return ORIGINAL(close_range)(first, last, flags);
}

DEFINE_ORIGINAL_POINTER(closefrom);
static void paced_closefrom(int first)
{
	if (causal_is_active())
		causal_descriptor_range_forget(first < 0 ? 0 : (unsigned)first, UINT32_MAX);
	ORIGINAL(closefrom)(first);
}

/* ---- file locks ---- */

static bool command_waits_for_lock(int command)
{
	return command == F_SETLKW || command == F_OFD_SETLKW;
}

static bool command_sets_lock(int command)
{
	return command == F_SETLK || command == F_OFD_SETLK;
}

/* The third argument is an int, a pointer, or not there: a word in any case. */
#define DEFINE_PACED_FCNTL(symbol)                                                                 \
	DEFINE_ORIGINAL_POINTER(symbol);                                                           \
	static int paced_##symbol(int fd, int command, ...)                                        \
	{                                                                                          \
		struct causal_wait_state wait;                                                     \
		va_list list;                                                                      \
		long argument;                                                                     \
		int result;                                                                        \
		va_start(list, command);                                                           \
		argument = va_arg(list, long);                                                     \
		va_end(list);                                                                      \
		if (causal_is_active() && command_sets_lock(command))                              \
			causal_pay_delay_at_site(CAUSAL_GET_CALL_SITE);                            \
		if (!causal_is_active() || !command_waits_for_lock(command))                       \
			return ORIGINAL(symbol)(fd, command, argument);                            \
		causal_apply_delay_and_begin_wait(&wait);                                          \
		result = ORIGINAL(symbol)(fd, command, argument);                                  \
		causal_end_wait_at_site(&wait, paced_woken_by_us_to_waker_kind(!result),           \
					CAUSAL_GET_CALL_SITE);                                     \
		return result;                                                                     \
	}

DEFINE_PACED_FCNTL(fcntl)
DEFINE_PACED_FCNTL(fcntl64)
DEFINE_PACED_WAIT(int, flock, !result, (int fd, int operation), (fd, operation))
DEFINE_PACED_WAIT(int, lockf, !result, (int fd, int operation, off_t size), (fd, operation, size))
DEFINE_PACED_WAIT(int, lockf64, !result, (int fd, int operation, off64_t size),
		  (fd, operation, size))

int causal_add_close_wrappers(void)
{
	static struct got_wrapper rows[] = {{.symbol = "fileno",
					     .original = &original_fileno,
					     .library = CAUSAL_LIBC_FILE_NAME_PREFIXES},
					    PACED_TABLE_ROW(close),
					    PACED_TABLE_ROW(fclose),
					    PACED_TABLE_ROW(freopen),
					    PACED_TABLE_ROW(freopen64),
					    PACED_TABLE_ROW(dup2),
					    PACED_TABLE_ROW(dup3),
					    PACED_TABLE_ROW(listen),
					    PACED_TABLE_ROW(bind),
					    PACED_TABLE_ROW(shutdown),
					    PACED_TABLE_ROW(close_range),
					    PACED_TABLE_ROW(closefrom),
					    PACED_TABLE_ROW(fcntl),
					    PACED_TABLE_ROW(fcntl64),
					    PACED_TABLE_ROW(flock),
					    PACED_TABLE_ROW(lockf),
					    PACED_TABLE_ROW(lockf64)};

	return got_add_wrappers(TABLE_ROWS_AND_COUNT(rows));
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Wrappers of sleeps and of input and output: descriptor at the begin, bytes or error at the end.
 * Names that the C library's headers put in place of the plain ones (64-bit offsets,
 * _FORTIFY_SOURCE) are recorded under the plain name.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "common/array.h"
#include "wrappers/wrapped.h"
#include "wrappers/wrappers.h"

#define DEFINE_TRANSFER_WRAPPER(symbol, shown, parameters, arguments)                              \
	DEFINE_RESULT_WRAPPER(                                                                     \
		ssize_t, symbol, shown, REGION_IO, wrapped_number_to_value("fd", fd), "bytes",     \
		PARENTHESIZED_PARAMETERS parameters, PARENTHESIZED_ARGUMENTS arguments)
#define DEFINE_POLL_WRAPPER(symbol, shown, parameters, arguments)                                  \
	DEFINE_RESULT_WRAPPER(                                                                     \
		int, symbol, shown, REGION_IO, wrapped_number_to_value("fds", (int64_t)count),     \
		"ready", PARENTHESIZED_PARAMETERS parameters, PARENTHESIZED_ARGUMENTS arguments)
#define DEFINE_FD_CALL_WRAPPER(symbol, parameters, arguments)                                      \
	DEFINE_RESULT_WRAPPER(int, symbol, #symbol, REGION_IO, wrapped_number_to_value("fd", fd),  \
			      "result", PARENTHESIZED_PARAMETERS parameters,                       \
			      PARENTHESIZED_ARGUMENTS arguments)

/* ---- sleeps ---- */

DEFINE_RESULT_WRAPPER(unsigned, sleep, "sleep", REGION_SLEEP,
		      wrapped_number_to_value("seconds", seconds), "left",
		      PARENTHESIZED_PARAMETERS(unsigned seconds), PARENTHESIZED_ARGUMENTS(seconds))
DEFINE_RESULT_WRAPPER(int, usleep, "usleep", REGION_SLEEP,
		      wrapped_number_to_value("microseconds", time), "result",
		      PARENTHESIZED_PARAMETERS(useconds_t time), PARENTHESIZED_ARGUMENTS(time))
DEFINE_RESULT_WRAPPER(int, pause, "pause", REGION_SLEEP, wrapped_number_to_value("seconds", -1),
		      "result", PARENTHESIZED_PARAMETERS(void), PARENTHESIZED_ARGUMENTS())

DEFINE_WRAPPED_FUNCTION_STATE(nanosleep, REGION_SLEEP);
static int wrapped_nanosleep(const struct timespec *time, struct timespec *left)
{
	region_id region = wrapped_get_region_if_recording(&call_nanosleep);
	int result;

	if (!region)
		return ORIGINAL(nanosleep)(time, left);
	region_begin_around_call(region);
	result = ORIGINAL(nanosleep)(time, left);
	wrapped_end_region_with_result(region, "result", result);
	return result;
}

DEFINE_WRAPPED_FUNCTION_STATE(clock_nanosleep, REGION_SLEEP);
static int wrapped_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
				   struct timespec *left)
{
	region_id region = wrapped_get_region_if_recording(&call_clock_nanosleep);
	int error;

	if (!region)
		return ORIGINAL(clock_nanosleep)(clock, flags, time, left);
	wrapped_begin_region(region, wrapped_number_to_value("clock", clock));
	error = ORIGINAL(clock_nanosleep)(clock, flags, time, left);
	wrapped_end_region_with_error(region, error);
	return error;
}

/* ---- bytes ---- */

/* Fortified names (glibc, debug/): the plain arguments and the size of the buffer. */
ssize_t __read_chk(int fd, void *data, size_t size, size_t room);
ssize_t __pread_chk(int fd, void *data, size_t size, off_t at, size_t room);
ssize_t __pread64_chk(int fd, void *data, size_t size, off64_t at, size_t room);
ssize_t __recv_chk(int fd, void *data, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *data, size_t size, size_t room, int flags,
		       struct sockaddr *from, socklen_t *from_size);
int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t room);
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		const sigset_t *mask, size_t room);
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int fd, const char *path, int flags);
int __openat64_2(int fd, const char *path, int flags);

DEFINE_TRANSFER_WRAPPER(read, "read", (int fd, void *data, size_t size), (fd, data, size))
DEFINE_TRANSFER_WRAPPER(__read_chk, "read", (int fd, void *data, size_t size, size_t room),
			(fd, data, size, room))
DEFINE_TRANSFER_WRAPPER(write, "write", (int fd, const void *data, size_t size), (fd, data, size))
DEFINE_TRANSFER_WRAPPER(pread, "pread", (int fd, void *data, size_t size, off_t at),
			(fd, data, size, at))
DEFINE_TRANSFER_WRAPPER(pread64, "pread", (int fd, void *data, size_t size, off64_t at),
			(fd, data, size, at))
DEFINE_TRANSFER_WRAPPER(__pread_chk, "pread",
			(int fd, void *data, size_t size, off_t at, size_t room),
			(fd, data, size, at, room))
DEFINE_TRANSFER_WRAPPER(__pread64_chk, "pread",
			(int fd, void *data, size_t size, off64_t at, size_t room),
			(fd, data, size, at, room))
DEFINE_TRANSFER_WRAPPER(pwrite, "pwrite", (int fd, const void *data, size_t size, off_t at),
			(fd, data, size, at))
DEFINE_TRANSFER_WRAPPER(pwrite64, "pwrite", (int fd, const void *data, size_t size, off64_t at),
			(fd, data, size, at))
DEFINE_TRANSFER_WRAPPER(readv, "readv", (int fd, const struct iovec *parts, int count),
			(fd, parts, count))
DEFINE_TRANSFER_WRAPPER(writev, "writev", (int fd, const struct iovec *parts, int count),
			(fd, parts, count))
DEFINE_TRANSFER_WRAPPER(preadv, "preadv", (int fd, const struct iovec *parts, int count, off_t at),
			(fd, parts, count, at))
DEFINE_TRANSFER_WRAPPER(preadv64, "preadv",
			(int fd, const struct iovec *parts, int count, off64_t at),
			(fd, parts, count, at))
DEFINE_TRANSFER_WRAPPER(pwritev, "pwritev",
			(int fd, const struct iovec *parts, int count, off_t at),
			(fd, parts, count, at))
DEFINE_TRANSFER_WRAPPER(pwritev64, "pwritev",
			(int fd, const struct iovec *parts, int count, off64_t at),
			(fd, parts, count, at))
DEFINE_TRANSFER_WRAPPER(preadv2, "preadv2",
			(int fd, const struct iovec *parts, int count, off_t at, int flags),
			(fd, parts, count, at, flags))
DEFINE_TRANSFER_WRAPPER(pwritev2, "pwritev2",
			(int fd, const struct iovec *parts, int count, off_t at, int flags),
			(fd, parts, count, at, flags))
DEFINE_TRANSFER_WRAPPER(recv, "recv", (int fd, void *data, size_t size, int flags),
			(fd, data, size, flags))
DEFINE_TRANSFER_WRAPPER(__recv_chk, "recv",
			(int fd, void *data, size_t size, size_t room, int flags),
			(fd, data, size, room, flags))
DEFINE_TRANSFER_WRAPPER(recvfrom, "recvfrom",
			(int fd, void *data, size_t size, int flags, struct sockaddr *from,
			 socklen_t *from_size),
			(fd, data, size, flags, from, from_size))
DEFINE_TRANSFER_WRAPPER(__recvfrom_chk, "recvfrom",
			(int fd, void *data, size_t size, size_t room, int flags,
			 struct sockaddr *from, socklen_t *from_size),
			(fd, data, size, room, flags, from, from_size))
DEFINE_TRANSFER_WRAPPER(recvmsg, "recvmsg", (int fd, struct msghdr *message, int flags),
			(fd, message, flags))
DEFINE_TRANSFER_WRAPPER(send, "send", (int fd, const void *data, size_t size, int flags),
			(fd, data, size, flags))
DEFINE_TRANSFER_WRAPPER(sendto, "sendto",
			(int fd, const void *data, size_t size, int flags,
			 const struct sockaddr *to, socklen_t to_size),
			(fd, data, size, flags, to, to_size))
DEFINE_TRANSFER_WRAPPER(sendmsg, "sendmsg", (int fd, const struct msghdr *message, int flags),
			(fd, message, flags))
DEFINE_TRANSFER_WRAPPER(sendfile, "sendfile", (int to, int fd, off_t *at, size_t size),
			(to, fd, at, size))
DEFINE_TRANSFER_WRAPPER(sendfile64, "sendfile", (int to, int fd, off64_t *at, size_t size),
			(to, fd, at, size))
DEFINE_TRANSFER_WRAPPER(splice, "splice",
			(int fd, off64_t *at, int to, off64_t *to_at, size_t size, unsigned flags),
			(fd, at, to, to_at, size, flags))
DEFINE_TRANSFER_WRAPPER(copy_file_range, "copy_file_range",
			(int fd, off64_t *at, int to, off64_t *to_at, size_t size, unsigned flags),
			(fd, at, to, to_at, size, flags))

/* ---- waiting for descriptors ---- */

DEFINE_POLL_WRAPPER(poll, "poll", (struct pollfd * fds, nfds_t count, int timeout),
		    (fds, count, timeout))
DEFINE_POLL_WRAPPER(__poll_chk, "poll",
		    (struct pollfd * fds, nfds_t count, int timeout, size_t room),
		    (fds, count, timeout, room))
DEFINE_POLL_WRAPPER(ppoll, "ppoll",
		    (struct pollfd * fds, nfds_t count, const struct timespec *timeout,
		     const sigset_t *mask),
		    (fds, count, timeout, mask))
DEFINE_POLL_WRAPPER(__ppoll_chk, "ppoll",
		    (struct pollfd * fds, nfds_t count, const struct timespec *timeout,
		     const sigset_t *mask, size_t room),
		    (fds, count, timeout, mask, room))
DEFINE_POLL_WRAPPER(select, "select",
		    (int count, fd_set *to_read, fd_set *to_write, fd_set *other,
		     struct timeval *timeout),
		    (count, to_read, to_write, other, timeout))
DEFINE_POLL_WRAPPER(pselect, "pselect",
		    (int count, fd_set *to_read, fd_set *to_write, fd_set *other,
		     const struct timespec *timeout, const sigset_t *mask),
		    (count, to_read, to_write, other, timeout, mask))
DEFINE_POLL_WRAPPER(epoll_wait, "epoll_wait",
		    (int epoll, struct epoll_event *events, int count, int timeout),
		    (epoll, events, count, timeout))
DEFINE_POLL_WRAPPER(epoll_pwait, "epoll_pwait",
		    (int epoll, struct epoll_event *events, int count, int timeout,
		     const sigset_t *mask),
		    (epoll, events, count, timeout, mask))
DEFINE_POLL_WRAPPER(epoll_pwait2, "epoll_pwait2",
		    (int epoll, struct epoll_event *events, int count,
		     const struct timespec *timeout, const sigset_t *mask),
		    (epoll, events, count, timeout, mask))

/* ---- descriptors ---- */

DEFINE_FD_CALL_WRAPPER(connect, (int fd, const struct sockaddr *to, socklen_t size), (fd, to, size))
DEFINE_FD_CALL_WRAPPER(accept, (int fd, struct sockaddr *from, socklen_t *size), (fd, from, size))
DEFINE_FD_CALL_WRAPPER(accept4, (int fd, struct sockaddr *from, socklen_t *size, int flags),
		       (fd, from, size, flags))
DEFINE_FD_CALL_WRAPPER(fsync, (int fd), (fd))
DEFINE_FD_CALL_WRAPPER(fdatasync, (int fd), (fd))
DEFINE_FD_CALL_WRAPPER(flock, (int fd, int operation), (fd, operation))
DEFINE_FD_CALL_WRAPPER(close, (int fd), (fd))

/* The mode is there only when a file can be made (open(2)). */
#define OPEN_FLAGS_NEED_MODE(flags) ((flags)&O_CREAT || ((flags)&O_TMPFILE) == O_TMPFILE)

static mode_t read_optional_mode_argument(int flags, va_list list)
{
	return OPEN_FLAGS_NEED_MODE(flags) ? va_arg(list, mode_t) : 0;
}

static void begin_region_of_file_open(region_id region, const char *path)
{
	char text[256];

	wrapped_begin_region(region,
			     wrapped_text_to_value(
				     "path", wrapped_copy_readable_text(text, sizeof(text), path)));
}

#define DEFINE_VARIADIC_OPEN_WRAPPER(symbol, shown, parameters, arguments)                         \
	DEFINE_WRAPPED_FUNCTION_STATE_AS(symbol, shown, REGION_IO);                                \
	static int wrapped_##symbol parameters                                                     \
	{                                                                                          \
		region_id region = wrapped_get_region_if_recording(&call_##symbol);                \
		mode_t mode;                                                                       \
		va_list list;                                                                      \
		int fd;                                                                            \
		va_start(list, flags);                                                             \
		mode = read_optional_mode_argument(flags, list);                                   \
		va_end(list);                                                                      \
		if (!region)                                                                       \
			return ORIGINAL(symbol) arguments;                                         \
		begin_region_of_file_open(region, path);                                           \
		fd = ORIGINAL(symbol) arguments;                                                   \
		wrapped_end_region_with_result(region, "fd", fd);                                  \
		return fd;                                                                         \
	}

DEFINE_VARIADIC_OPEN_WRAPPER(open, "open",
			     PARENTHESIZED_PARAMETERS(const char *path, int flags, ...),
			     PARENTHESIZED_ARGUMENTS(path, flags, mode))
DEFINE_VARIADIC_OPEN_WRAPPER(open64, "open",
			     PARENTHESIZED_PARAMETERS(const char *path, int flags, ...),
			     PARENTHESIZED_ARGUMENTS(path, flags, mode))
DEFINE_VARIADIC_OPEN_WRAPPER(openat, "openat",
			     PARENTHESIZED_PARAMETERS(int directory, const char *path, int flags,
						      ...),
			     PARENTHESIZED_ARGUMENTS(directory, path, flags, mode))
DEFINE_VARIADIC_OPEN_WRAPPER(openat64, "openat",
			     PARENTHESIZED_PARAMETERS(int directory, const char *path, int flags,
						      ...),
			     PARENTHESIZED_ARGUMENTS(directory, path, flags, mode))

#define DEFINE_FIXED_OPEN_WRAPPER(symbol, shown, parameters, arguments)                            \
	DEFINE_WRAPPED_FUNCTION_STATE_AS(symbol, shown, REGION_IO);                                \
	static int wrapped_##symbol parameters                                                     \
	{                                                                                          \
		region_id region = wrapped_get_region_if_recording(&call_##symbol);                \
		int fd;                                                                            \
		if (!region)                                                                       \
			return ORIGINAL(symbol) arguments;                                         \
		begin_region_of_file_open(region, path);                                           \
		fd = ORIGINAL(symbol) arguments;                                                   \
		wrapped_end_region_with_result(region, "fd", fd);                                  \
		return fd;                                                                         \
	}

DEFINE_FIXED_OPEN_WRAPPER(creat, "creat", PARENTHESIZED_PARAMETERS(const char *path, mode_t mode),
			  PARENTHESIZED_ARGUMENTS(path, mode))
DEFINE_FIXED_OPEN_WRAPPER(creat64, "creat", PARENTHESIZED_PARAMETERS(const char *path, mode_t mode),
			  PARENTHESIZED_ARGUMENTS(path, mode))
DEFINE_FIXED_OPEN_WRAPPER(__open_2, "open", PARENTHESIZED_PARAMETERS(const char *path, int flags),
			  PARENTHESIZED_ARGUMENTS(path, flags))
DEFINE_FIXED_OPEN_WRAPPER(__open64_2, "open", PARENTHESIZED_PARAMETERS(const char *path, int flags),
			  PARENTHESIZED_ARGUMENTS(path, flags))
DEFINE_FIXED_OPEN_WRAPPER(__openat_2, "openat",
			  PARENTHESIZED_PARAMETERS(int directory, const char *path, int flags),
			  PARENTHESIZED_ARGUMENTS(directory, path, flags))
DEFINE_FIXED_OPEN_WRAPPER(__openat64_2, "openat",
			  PARENTHESIZED_PARAMETERS(int directory, const char *path, int flags),
			  PARENTHESIZED_ARGUMENTS(directory, path, flags))

static struct got_wrapper sleep_wrappers[] = {
	WRAPPER_TABLE_ROW(sleep), WRAPPER_TABLE_ROW(usleep), WRAPPER_TABLE_ROW(pause),
	WRAPPER_TABLE_ROW(nanosleep), WRAPPER_TABLE_ROW(clock_nanosleep)};
static struct got_wrapper transfer_wrappers[] = {
	WRAPPER_TABLE_ROW(read),           WRAPPER_TABLE_ROW(__read_chk),
	WRAPPER_TABLE_ROW(write),          WRAPPER_TABLE_ROW(pread),
	WRAPPER_TABLE_ROW(pread64),        WRAPPER_TABLE_ROW(__pread_chk),
	WRAPPER_TABLE_ROW(__pread64_chk),  WRAPPER_TABLE_ROW(pwrite),
	WRAPPER_TABLE_ROW(pwrite64),       WRAPPER_TABLE_ROW(readv),
	WRAPPER_TABLE_ROW(writev),         WRAPPER_TABLE_ROW(preadv),
	WRAPPER_TABLE_ROW(preadv64),       WRAPPER_TABLE_ROW(pwritev),
	WRAPPER_TABLE_ROW(pwritev64),      WRAPPER_TABLE_ROW(preadv2),
	WRAPPER_TABLE_ROW(pwritev2),       WRAPPER_TABLE_ROW(recv),
	WRAPPER_TABLE_ROW(__recv_chk),     WRAPPER_TABLE_ROW(recvfrom),
	WRAPPER_TABLE_ROW(__recvfrom_chk), WRAPPER_TABLE_ROW(recvmsg),
	WRAPPER_TABLE_ROW(send),           WRAPPER_TABLE_ROW(sendto),
	WRAPPER_TABLE_ROW(sendmsg),        WRAPPER_TABLE_ROW(sendfile),
	WRAPPER_TABLE_ROW(sendfile64),     WRAPPER_TABLE_ROW(splice),
	WRAPPER_TABLE_ROW(copy_file_range)};
static struct got_wrapper descriptor_wrappers[] = {
	WRAPPER_TABLE_ROW(poll),         WRAPPER_TABLE_ROW(__poll_chk),
	WRAPPER_TABLE_ROW(ppoll),        WRAPPER_TABLE_ROW(__ppoll_chk),
	WRAPPER_TABLE_ROW(select),       WRAPPER_TABLE_ROW(pselect),
	WRAPPER_TABLE_ROW(epoll_wait),   WRAPPER_TABLE_ROW(epoll_pwait),
	WRAPPER_TABLE_ROW(epoll_pwait2), WRAPPER_TABLE_ROW(connect),
	WRAPPER_TABLE_ROW(accept),       WRAPPER_TABLE_ROW(accept4),
	WRAPPER_TABLE_ROW(fsync),        WRAPPER_TABLE_ROW(fdatasync),
	WRAPPER_TABLE_ROW(flock),        WRAPPER_TABLE_ROW(close),
	WRAPPER_TABLE_ROW(open),         WRAPPER_TABLE_ROW(open64),
	WRAPPER_TABLE_ROW(openat),       WRAPPER_TABLE_ROW(openat64),
	WRAPPER_TABLE_ROW(creat),        WRAPPER_TABLE_ROW(creat64),
	WRAPPER_TABLE_ROW(__open_2),     WRAPPER_TABLE_ROW(__open64_2),
	WRAPPER_TABLE_ROW(__openat_2),   WRAPPER_TABLE_ROW(__openat64_2)};

#define ROWS_AND_COUNT(rows) rows, ARRAY_SIZE(rows)

int wrappers_waits_add(const struct wrapper_options *options)
{
	int error = options->wrap_sleep ? got_add_wrappers(ROWS_AND_COUNT(sleep_wrappers)) : 0;

	if (!error && options->wrap_io)
		error = got_add_wrappers(ROWS_AND_COUNT(transfer_wrappers));
	if (!error && options->wrap_io)
		error = got_add_wrappers(ROWS_AND_COUNT(descriptor_wrappers));
	return error;
}

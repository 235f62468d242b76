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

#include "wrappers/wrapped.h"
#include "wrappers/wrappers.h"

#define WRAPPED_BYTES(symbol, shown, parameters, arguments)                                        \
	WRAPPED_RESULT(ssize_t, symbol, shown, REGION_IO, wrapped_number("fd", fd), "bytes",       \
		       PARAMETERS parameters, ARGUMENTS arguments)
#define WRAPPED_READY(symbol, shown, parameters, arguments)                                        \
	WRAPPED_RESULT(int, symbol, shown, REGION_IO, wrapped_number("fds", (int64_t)count),       \
		       "ready", PARAMETERS parameters, ARGUMENTS arguments)
#define WRAPPED_FD(symbol, parameters, arguments)                                                  \
	WRAPPED_RESULT(int, symbol, #symbol, REGION_IO, wrapped_number("fd", fd), "result",        \
		       PARAMETERS parameters, ARGUMENTS arguments)

/* ---- sleeps ---- */

WRAPPED_RESULT(unsigned, sleep, "sleep", REGION_SLEEP, wrapped_number("seconds", seconds), "left",
	       PARAMETERS(unsigned seconds), ARGUMENTS(seconds))
WRAPPED_RESULT(int, usleep, "usleep", REGION_SLEEP, wrapped_number("microseconds", time), "result",
	       PARAMETERS(useconds_t time), ARGUMENTS(time))
WRAPPED_RESULT(int, pause, "pause", REGION_SLEEP, wrapped_number("seconds", -1), "result",
	       PARAMETERS(void), ARGUMENTS())

WRAPPED_CALL(nanosleep, REGION_SLEEP);
static int wrapped_nanosleep(const struct timespec *time, struct timespec *left)
{
	region_id region = wrapped_recording(&call_nanosleep);
	int result;

	if (!region)
		return ORIGINAL(nanosleep)(time, left);
	region_begin_call(region);
	result = ORIGINAL(nanosleep)(time, left);
	wrapped_end_result(region, "result", result);
	return result;
}

WRAPPED_CALL(clock_nanosleep, REGION_SLEEP);
static int wrapped_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
				   struct timespec *left)
{
	region_id region = wrapped_recording(&call_clock_nanosleep);
	int error;

	if (!region)
		return ORIGINAL(clock_nanosleep)(clock, flags, time, left);
	wrapped_begin(region, wrapped_number("clock", clock));
	error = ORIGINAL(clock_nanosleep)(clock, flags, time, left);
	wrapped_end_error(region, error);
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

WRAPPED_BYTES(read, "read", (int fd, void *data, size_t size), (fd, data, size))
WRAPPED_BYTES(__read_chk, "read", (int fd, void *data, size_t size, size_t room),
	      (fd, data, size, room))
WRAPPED_BYTES(write, "write", (int fd, const void *data, size_t size), (fd, data, size))
WRAPPED_BYTES(pread, "pread", (int fd, void *data, size_t size, off_t at), (fd, data, size, at))
WRAPPED_BYTES(pread64, "pread", (int fd, void *data, size_t size, off64_t at), (fd, data, size, at))
WRAPPED_BYTES(__pread_chk, "pread", (int fd, void *data, size_t size, off_t at, size_t room),
	      (fd, data, size, at, room))
WRAPPED_BYTES(__pread64_chk, "pread", (int fd, void *data, size_t size, off64_t at, size_t room),
	      (fd, data, size, at, room))
WRAPPED_BYTES(pwrite, "pwrite", (int fd, const void *data, size_t size, off_t at),
	      (fd, data, size, at))
WRAPPED_BYTES(pwrite64, "pwrite", (int fd, const void *data, size_t size, off64_t at),
	      (fd, data, size, at))
WRAPPED_BYTES(readv, "readv", (int fd, const struct iovec *parts, int count), (fd, parts, count))
WRAPPED_BYTES(writev, "writev", (int fd, const struct iovec *parts, int count), (fd, parts, count))
WRAPPED_BYTES(preadv, "preadv", (int fd, const struct iovec *parts, int count, off_t at),
	      (fd, parts, count, at))
WRAPPED_BYTES(preadv64, "preadv", (int fd, const struct iovec *parts, int count, off64_t at),
	      (fd, parts, count, at))
WRAPPED_BYTES(pwritev, "pwritev", (int fd, const struct iovec *parts, int count, off_t at),
	      (fd, parts, count, at))
WRAPPED_BYTES(pwritev64, "pwritev", (int fd, const struct iovec *parts, int count, off64_t at),
	      (fd, parts, count, at))
WRAPPED_BYTES(preadv2, "preadv2",
	      (int fd, const struct iovec *parts, int count, off_t at, int flags),
	      (fd, parts, count, at, flags))
WRAPPED_BYTES(pwritev2, "pwritev2",
	      (int fd, const struct iovec *parts, int count, off_t at, int flags),
	      (fd, parts, count, at, flags))
WRAPPED_BYTES(recv, "recv", (int fd, void *data, size_t size, int flags), (fd, data, size, flags))
WRAPPED_BYTES(__recv_chk, "recv", (int fd, void *data, size_t size, size_t room, int flags),
	      (fd, data, size, room, flags))
WRAPPED_BYTES(recvfrom, "recvfrom",
	      (int fd, void *data, size_t size, int flags, struct sockaddr *from,
	       socklen_t *from_size),
	      (fd, data, size, flags, from, from_size))
WRAPPED_BYTES(__recvfrom_chk, "recvfrom",
	      (int fd, void *data, size_t size, size_t room, int flags, struct sockaddr *from,
	       socklen_t *from_size),
	      (fd, data, size, room, flags, from, from_size))
WRAPPED_BYTES(recvmsg, "recvmsg", (int fd, struct msghdr *message, int flags), (fd, message, flags))
WRAPPED_BYTES(send, "send", (int fd, const void *data, size_t size, int flags),
	      (fd, data, size, flags))
WRAPPED_BYTES(sendto, "sendto",
	      (int fd, const void *data, size_t size, int flags, const struct sockaddr *to,
	       socklen_t to_size),
	      (fd, data, size, flags, to, to_size))
WRAPPED_BYTES(sendmsg, "sendmsg", (int fd, const struct msghdr *message, int flags),
	      (fd, message, flags))
WRAPPED_BYTES(sendfile, "sendfile", (int to, int fd, off_t *at, size_t size), (to, fd, at, size))
WRAPPED_BYTES(sendfile64, "sendfile", (int to, int fd, off64_t *at, size_t size),
	      (to, fd, at, size))
WRAPPED_BYTES(splice, "splice",
	      (int fd, off64_t *at, int to, off64_t *to_at, size_t size, unsigned flags),
	      (fd, at, to, to_at, size, flags))
WRAPPED_BYTES(copy_file_range, "copy_file_range",
	      (int fd, off64_t *at, int to, off64_t *to_at, size_t size, unsigned flags),
	      (fd, at, to, to_at, size, flags))

/* ---- waiting for descriptors ---- */

WRAPPED_READY(poll, "poll", (struct pollfd * fds, nfds_t count, int timeout), (fds, count, timeout))
WRAPPED_READY(__poll_chk, "poll", (struct pollfd * fds, nfds_t count, int timeout, size_t room),
	      (fds, count, timeout, room))
WRAPPED_READY(ppoll, "ppoll",
	      (struct pollfd * fds, nfds_t count, const struct timespec *timeout,
	       const sigset_t *mask),
	      (fds, count, timeout, mask))
WRAPPED_READY(__ppoll_chk, "ppoll",
	      (struct pollfd * fds, nfds_t count, const struct timespec *timeout,
	       const sigset_t *mask, size_t room),
	      (fds, count, timeout, mask, room))
WRAPPED_READY(select, "select",
	      (int count, fd_set *to_read, fd_set *to_write, fd_set *other,
	       struct timeval *timeout),
	      (count, to_read, to_write, other, timeout))
WRAPPED_READY(pselect, "pselect",
	      (int count, fd_set *to_read, fd_set *to_write, fd_set *other,
	       const struct timespec *timeout, const sigset_t *mask),
	      (count, to_read, to_write, other, timeout, mask))
WRAPPED_READY(epoll_wait, "epoll_wait",
	      (int epoll, struct epoll_event *events, int count, int timeout),
	      (epoll, events, count, timeout))
WRAPPED_READY(epoll_pwait, "epoll_pwait",
	      (int epoll, struct epoll_event *events, int count, int timeout, const sigset_t *mask),
	      (epoll, events, count, timeout, mask))
WRAPPED_READY(epoll_pwait2, "epoll_pwait2",
	      (int epoll, struct epoll_event *events, int count, const struct timespec *timeout,
	       const sigset_t *mask),
	      (epoll, events, count, timeout, mask))

/* ---- descriptors ---- */

WRAPPED_FD(connect, (int fd, const struct sockaddr *to, socklen_t size), (fd, to, size))
WRAPPED_FD(accept, (int fd, struct sockaddr *from, socklen_t *size), (fd, from, size))
WRAPPED_FD(accept4, (int fd, struct sockaddr *from, socklen_t *size, int flags),
	   (fd, from, size, flags))
WRAPPED_FD(fsync, (int fd), (fd))
WRAPPED_FD(fdatasync, (int fd), (fd))
WRAPPED_FD(flock, (int fd, int operation), (fd, operation))
WRAPPED_FD(close, (int fd), (fd))

/* The mode is there only when a file can be made (open(2)). */
#define WITH_MODE(flags) ((flags)&O_CREAT || ((flags)&O_TMPFILE) == O_TMPFILE)

static mode_t mode_of(int flags, va_list list)
{
	return WITH_MODE(flags) ? va_arg(list, mode_t) : 0;
}

static void begin_open(region_id region, const char *path)
{
	char text[256];

	wrapped_begin(region, wrapped_text("path", wrapped_copy_text(text, sizeof(text), path)));
}

#define WRAPPED_OPEN(symbol, shown, parameters, arguments)                                         \
	WRAPPED_CALL_AS(symbol, shown, REGION_IO);                                                 \
	static int wrapped_##symbol parameters                                                     \
	{                                                                                          \
		region_id region = wrapped_recording(&call_##symbol);                              \
		mode_t mode;                                                                       \
		va_list list;                                                                      \
		int fd;                                                                            \
		va_start(list, flags);                                                             \
		mode = mode_of(flags, list);                                                       \
		va_end(list);                                                                      \
		if (!region)                                                                       \
			return ORIGINAL(symbol) arguments;                                         \
		begin_open(region, path);                                                          \
		fd = ORIGINAL(symbol) arguments;                                                   \
		wrapped_end_result(region, "fd", fd);                                              \
		return fd;                                                                         \
	}

WRAPPED_OPEN(open, "open", PARAMETERS(const char *path, int flags, ...),
	     ARGUMENTS(path, flags, mode))
WRAPPED_OPEN(open64, "open", PARAMETERS(const char *path, int flags, ...),
	     ARGUMENTS(path, flags, mode))
WRAPPED_OPEN(openat, "openat", PARAMETERS(int directory, const char *path, int flags, ...),
	     ARGUMENTS(directory, path, flags, mode))
WRAPPED_OPEN(openat64, "openat", PARAMETERS(int directory, const char *path, int flags, ...),
	     ARGUMENTS(directory, path, flags, mode))

#define WRAPPED_OPEN_PLAIN(symbol, shown, parameters, arguments)                                   \
	WRAPPED_CALL_AS(symbol, shown, REGION_IO);                                                 \
	static int wrapped_##symbol parameters                                                     \
	{                                                                                          \
		region_id region = wrapped_recording(&call_##symbol);                              \
		int fd;                                                                            \
		if (!region)                                                                       \
			return ORIGINAL(symbol) arguments;                                         \
		begin_open(region, path);                                                          \
		fd = ORIGINAL(symbol) arguments;                                                   \
		wrapped_end_result(region, "fd", fd);                                              \
		return fd;                                                                         \
	}

WRAPPED_OPEN_PLAIN(creat, "creat", PARAMETERS(const char *path, mode_t mode), ARGUMENTS(path, mode))
WRAPPED_OPEN_PLAIN(creat64, "creat", PARAMETERS(const char *path, mode_t mode),
		   ARGUMENTS(path, mode))
WRAPPED_OPEN_PLAIN(__open_2, "open", PARAMETERS(const char *path, int flags),
		   ARGUMENTS(path, flags))
WRAPPED_OPEN_PLAIN(__open64_2, "open", PARAMETERS(const char *path, int flags),
		   ARGUMENTS(path, flags))
WRAPPED_OPEN_PLAIN(__openat_2, "openat", PARAMETERS(int directory, const char *path, int flags),
		   ARGUMENTS(directory, path, flags))
WRAPPED_OPEN_PLAIN(__openat64_2, "openat", PARAMETERS(int directory, const char *path, int flags),
		   ARGUMENTS(directory, path, flags))

static struct got_wrapper sleeps[] = {WRAPPED_ROW(sleep), WRAPPED_ROW(usleep), WRAPPED_ROW(pause),
				      WRAPPED_ROW(nanosleep), WRAPPED_ROW(clock_nanosleep)};
static struct got_wrapper transfers[] = {
	WRAPPED_ROW(read),          WRAPPED_ROW(__read_chk),     WRAPPED_ROW(write),
	WRAPPED_ROW(pread),         WRAPPED_ROW(pread64),        WRAPPED_ROW(__pread_chk),
	WRAPPED_ROW(__pread64_chk), WRAPPED_ROW(pwrite),         WRAPPED_ROW(pwrite64),
	WRAPPED_ROW(readv),         WRAPPED_ROW(writev),         WRAPPED_ROW(preadv),
	WRAPPED_ROW(preadv64),      WRAPPED_ROW(pwritev),        WRAPPED_ROW(pwritev64),
	WRAPPED_ROW(preadv2),       WRAPPED_ROW(pwritev2),       WRAPPED_ROW(recv),
	WRAPPED_ROW(__recv_chk),    WRAPPED_ROW(recvfrom),       WRAPPED_ROW(__recvfrom_chk),
	WRAPPED_ROW(recvmsg),       WRAPPED_ROW(send),           WRAPPED_ROW(sendto),
	WRAPPED_ROW(sendmsg),       WRAPPED_ROW(sendfile),       WRAPPED_ROW(sendfile64),
	WRAPPED_ROW(splice),        WRAPPED_ROW(copy_file_range)};
static struct got_wrapper descriptors[] = {
	WRAPPED_ROW(poll),        WRAPPED_ROW(__poll_chk),  WRAPPED_ROW(ppoll),
	WRAPPED_ROW(__ppoll_chk), WRAPPED_ROW(select),      WRAPPED_ROW(pselect),
	WRAPPED_ROW(epoll_wait),  WRAPPED_ROW(epoll_pwait), WRAPPED_ROW(epoll_pwait2),
	WRAPPED_ROW(connect),     WRAPPED_ROW(accept),      WRAPPED_ROW(accept4),
	WRAPPED_ROW(fsync),       WRAPPED_ROW(fdatasync),   WRAPPED_ROW(flock),
	WRAPPED_ROW(close),       WRAPPED_ROW(open),        WRAPPED_ROW(open64),
	WRAPPED_ROW(openat),      WRAPPED_ROW(openat64),    WRAPPED_ROW(creat),
	WRAPPED_ROW(creat64),     WRAPPED_ROW(__open_2),    WRAPPED_ROW(__open64_2),
	WRAPPED_ROW(__openat_2),  WRAPPED_ROW(__openat64_2)};

#define TABLE(rows) rows, sizeof(rows) / sizeof(rows[0])

int wrappers_waits_add(const struct options_wrappers *options)
{
	int error = options->sleep ? got_add(TABLE(sleeps)) : 0;

	if (!error && options->io)
		error = got_add(TABLE(transfers));
	if (!error && options->io)
		error = got_add(TABLE(descriptors));
	return error;
}

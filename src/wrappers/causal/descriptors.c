/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See descriptors.h. Raw system calls only: the program's errno and cancellation are its
 * own. Two threads that look at the same descriptor find the same.
 */
#include "wrappers/causal/descriptors.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "common/syscalls.h"
#include "core/base/text.h"

#define CACHED_DESCRIPTORS_MAX          65536u
#define EARLY_WAKEUP_MARGINS_PER_SECOND 5000u

enum { KIND_PIPE = 1, KIND_ADDRESS, KIND_CONNECTION, KIND_UNIX, KIND_EVENT, KIND_SIGNAL };

enum { DESCRIPTOR_IS_SOCKET = 1, DESCRIPTOR_IS_ACCEPTED = 2, DESCRIPTOR_HAS_REQUEST = 4 };

/* 0: not looked at. `arrives` is written last. */
struct cached_descriptor {
	_Atomic uint64_t arrival_hash, departure_hash;
	_Atomic uint32_t flags;
};

static struct cached_descriptor cached_descriptor_table[CACHED_DESCRIPTORS_MAX];

/* ---- hashes: never one of the small numbers with a meaning ---- */

static uint64_t mix_hash(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
	return (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9u;
}

uint64_t causal_hash_kind_and_number(uint64_t kind, uint64_t number)
{
	uint64_t hash = mix_hash(mix_hash(0, kind), number);

	return (hash ^ hash >> 32) | 1ull << 63;
}

uint64_t causal_hash_signals_to_pid(uint32_t pid)
{
	return causal_hash_kind_and_number(KIND_SIGNAL, pid);
}

uint64_t causal_hash_room_to_write(uint64_t hash)
{
	return causal_hash_kind_and_number(hash, 1);
}

static uint64_t hash_bytes(const void *data, size_t size)
{
	const uint8_t *byte = data;
	uint64_t hash = size;

	for (size_t i = 0; i < size; i++)
		hash = mix_hash(hash, byte[i]);
	return hash;
}

/* A name's text; an abstract one is as long as the address. Unbound: 0. */
static uint64_t hash_unix_address(const struct sockaddr_un *address, socklen_t size)
{
	size_t length = size > offsetof(struct sockaddr_un, sun_path)
				? size - offsetof(struct sockaddr_un, sun_path)
				: 0;

	if (length > sizeof(address->sun_path))
		length = sizeof(address->sun_path);
	for (size_t i = 0; i < length && address->sun_path[0]; i++) {
		if (!address->sun_path[i])
			length = i;
	}
	return length ? hash_bytes(address->sun_path, length) : 0;
}

static uint32_t read_address_port(const struct sockaddr *address, socklen_t size)
{
	if (address->sa_family == AF_INET && size >= sizeof(struct sockaddr_in))
		return ((const struct sockaddr_in *)(const void *)address)->sin_port;
	if (address->sa_family == AF_INET6 && size >= sizeof(struct sockaddr_in6))
		return ((const struct sockaddr_in6 *)(const void *)address)->sin6_port;
	return 0;
}

/* IPv4 addresses in IPv6 are what they are: the other end may see them so. */
static uint64_t hash_internet_address(const struct sockaddr *address, socklen_t size)
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	const struct sockaddr_in *v4 = (const void *)address;
	const struct sockaddr_in6 *v6 = (const void *)address;
	uint64_t hash = 0;

	if (address->sa_family == AF_INET && size >= sizeof(*v4))
		hash = hash_bytes(&v4->sin_addr, sizeof(v4->sin_addr));
	else if (address->sa_family == AF_INET6 && size >= sizeof(*v6))
		hash = memcmp(&v6->sin6_addr, mapped, sizeof(mapped))
			       ? hash_bytes(&v6->sin6_addr, sizeof(v6->sin6_addr))
			       : hash_bytes((const uint8_t *)&v6->sin6_addr + 12, 4);
	return mix_hash(hash, read_address_port(address, size));
}

uint64_t causal_hash_socket_address(const struct sockaddr *address, socklen_t size)
{
	uint64_t name;

	if (!address || size < (socklen_t)sizeof(sa_family_t))
		return 0;
	if (address->sa_family == AF_UNIX) {
		name = hash_unix_address((const void *)address, size);
		return name ? causal_hash_kind_and_number(KIND_ADDRESS, name) : 0;
	}
	return read_address_port(address, size)
		       ? causal_hash_kind_and_number(KIND_ADDRESS, read_address_port(address, size))
		       : 0;
}

/* ---- what a descriptor is ---- */

struct socket_address_pair {
	struct sockaddr_storage own_address, peer_address;
	socklen_t own_address_size, peer_address_size;
	int type;
};

static bool get_socket_addresses(int fd, struct socket_address_pair *ret)
{
	socklen_t size = sizeof(ret->type);

	ret->own_address_size = ret->peer_address_size = sizeof(ret->own_address);
	if (sys_call6(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, (long)&ret->type, (long)&size, 0) ||
	    sys_call3(SYS_getsockname, fd, (long)&ret->own_address, (long)&ret->own_address_size))
		return false;
	if (sys_call3(SYS_getpeername, fd, (long)&ret->peer_address, (long)&ret->peer_address_size))
		ret->peer_address_size = 0;
	return true;
}

static bool socket_is_listening(int fd)
{
	int listening = 0;
	socklen_t size = sizeof(listening);

	return !sys_call6(SYS_getsockopt, fd, SOL_SOCKET, SO_ACCEPTCONN, (long)&listening,
			  (long)&size, 0) &&
	       listening;
}

/* Each end sees the same two names the other way round. */
static struct causal_descriptor_hashes compute_connection_hashes(uint64_t kind, uint64_t own,
								 uint64_t peer)
{
	uint64_t both = mix_hash(own + peer, kind);
	uint64_t upper = causal_hash_kind_and_number(both, KIND_CONNECTION),
		 lower = causal_hash_kind_and_number(both, KIND_UNIX);

	return (struct causal_descriptor_hashes){.arrival_hash = own > peer ? upper : lower,
						 .departure_hash = own > peer ? lower : upper,
						 .is_socket = true};
}

static struct causal_descriptor_hashes compute_socket_hashes(int fd)
{
	struct causal_descriptor_hashes ret = {.is_socket = true};
	struct socket_address_pair ends;
	uint64_t own, peer;

	if (!get_socket_addresses(fd, &ends))
		return ret;
	if (socket_is_listening(fd)) {
		ret.arrival_hash = causal_hash_socket_address((void *)&ends.own_address,
							      ends.own_address_size);
		ret.departure_hash = CAUSAL_HASH_WOKEN_OUTSIDE;
		return ret;
	}
	switch (ends.own_address.ss_family) {
	case AF_UNIX:
		own = hash_unix_address((void *)&ends.own_address, ends.own_address_size);
		peer = ends.peer_address_size ? hash_unix_address((void *)&ends.peer_address,
								  ends.peer_address_size)
					      : 0;
		if (own != peer)
			return compute_connection_hashes(KIND_UNIX, own, peer);
		ret.arrival_hash = ret.departure_hash = causal_hash_kind_and_number(KIND_UNIX, 0);
		return ret;
	case AF_INET:
	case AF_INET6:
		if (ends.type == SOCK_DGRAM) {
			ret.arrival_hash = causal_hash_socket_address((void *)&ends.own_address,
								      ends.own_address_size);
			ret.departure_hash =
				ends.peer_address_size
					? causal_hash_socket_address((void *)&ends.peer_address,
								     ends.peer_address_size)
					: CAUSAL_HASH_WOKEN_OUTSIDE;
			return ret;
		}
		if (!ends.peer_address_size)
			return ret;
		return compute_connection_hashes(
			KIND_ADDRESS,
			hash_internet_address((void *)&ends.own_address, ends.own_address_size),
			hash_internet_address((void *)&ends.peer_address, ends.peer_address_size));
	default:
		ret.arrival_hash = ret.departure_hash = CAUSAL_HASH_WOKEN_OUTSIDE;
		return ret;
	}
}

/* eventfd, timerfd and their like have one inode; their names tell (proc(5)). */
static uint64_t hash_anon_inode_by_link_name(int fd)
{
	char path[48], name[64];
	struct text_buffer text = text_buffer_init(path, sizeof(path));
	long length;

	text_append_string(&text, "/proc/self/fd/");
	text_append_unsigned(&text, (uint64_t)fd);
	length = sys_call4(SYS_readlinkat, SYS_WORKING_DIRECTORY_FD, (long)path, (long)name,
			   sizeof(name) - 1);
	if (length <= 0)
		return CAUSAL_HASH_WOKEN_OUTSIDE;
	name[length] = 0;
	if (strstr(name, "[eventfd]"))
		return causal_hash_kind_and_number(KIND_EVENT, 0);
	return strstr(name, "[signalfd]") ? causal_hash_signals_to_pid(kymo_process.pid)
					  : CAUSAL_HASH_WOKEN_OUTSIDE;
}

static struct causal_descriptor_hashes compute_descriptor_hashes(int fd)
{
	struct causal_descriptor_hashes ret = {.arrival_hash = CAUSAL_HASH_WOKEN_OUTSIDE};
	struct stat status;

	if (process_has_seccomp_thread())
		return ret;
	if (sys_call2(SYS_fstat, fd, (long)&status))
		return (struct causal_descriptor_hashes){.arrival_hash = 0};
	switch (status.st_mode & S_IFMT) {
	case S_IFSOCK:
		return compute_socket_hashes(fd);
	case S_IFIFO:
		ret.arrival_hash = causal_hash_kind_and_number(mix_hash(KIND_PIPE, status.st_dev),
							       status.st_ino);
		break;
	case S_IFCHR:
		break;
	case 0:
		ret.arrival_hash = hash_anon_inode_by_link_name(fd);
		break;
	default:
		ret.arrival_hash = CAUSAL_HASH_NOT_AWAITED;
		break;
	}
	ret.departure_hash = ret.arrival_hash;
	return ret;
}

struct causal_descriptor_hashes causal_get_descriptor_hashes(int fd)
{
	struct causal_descriptor_hashes ret;
	struct cached_descriptor *place =
		(unsigned)fd < CACHED_DESCRIPTORS_MAX ? &cached_descriptor_table[fd] : NULL;

	if (place) {
		ret.arrival_hash = atomic_load_explicit(&place->arrival_hash, memory_order_acquire);
		ret.departure_hash =
			atomic_load_explicit(&place->departure_hash, memory_order_relaxed);
		ret.is_socket = atomic_load_explicit(&place->flags, memory_order_relaxed) &
				DESCRIPTOR_IS_SOCKET;
		if (ret.arrival_hash)
			return ret;
	}
	ret = compute_descriptor_hashes(fd);
	if (place && ret.arrival_hash) {
		if (ret.is_socket)
			atomic_fetch_or_explicit(&place->flags, DESCRIPTOR_IS_SOCKET,
						 memory_order_relaxed);
		atomic_store_explicit(&place->departure_hash, ret.departure_hash,
				      memory_order_relaxed);
		atomic_store_explicit(&place->arrival_hash, ret.arrival_hash, memory_order_release);
	}
	if (!ret.arrival_hash)
		ret.arrival_hash = CAUSAL_HASH_WOKEN_OUTSIDE;
	return ret;
}

void causal_descriptor_forget(int fd)
{
	if ((unsigned)fd >= CACHED_DESCRIPTORS_MAX)
		return;
	atomic_store_explicit(&cached_descriptor_table[fd].arrival_hash, 0, memory_order_relaxed);
	atomic_store_explicit(&cached_descriptor_table[fd].flags, 0, memory_order_relaxed);
}

void causal_descriptor_range_forget(unsigned first, unsigned last)
{
	for (unsigned fd = first; fd < CACHED_DESCRIPTORS_MAX && fd <= last; fd++) {
		if (atomic_load_explicit(&cached_descriptor_table[fd].arrival_hash,
					 memory_order_relaxed) ||
		    atomic_load_explicit(&cached_descriptor_table[fd].flags, memory_order_relaxed))
			causal_descriptor_forget((int)fd);
	}
}

/* ---- waits ---- */

/* What was marked just before has been done meanwhile. */
static uint64_t early_wakeup_margin_ticks; /* ticks */

void causal_set_early_wakeup_margin(uint64_t ticks_per_second)
{
	early_wakeup_margin_ticks = ticks_per_second / EARLY_WAKEUP_MARGINS_PER_SECOND;
}

bool causal_wait_was_ended_by_hash(uint64_t hash, const struct causal_wait_state *wait)
{
	return wait->epoch && hash > CAUSAL_HASH_WOKEN_OUTSIDE &&
	       causal_wakeup_was_published_since(hash, wait->ticks - early_wakeup_margin_ticks);
}

/* ---- requests ---- */

void causal_mark_descriptor_accepted(int fd)
{
	if ((unsigned)fd >= CACHED_DESCRIPTORS_MAX)
		return;
	causal_descriptor_forget(fd);
	atomic_store_explicit(&cached_descriptor_table[fd].flags, DESCRIPTOR_IS_ACCEPTED,
			      memory_order_relaxed);
}

void causal_mark_request_arrived(int fd)
{
	if ((unsigned)fd < CACHED_DESCRIPTORS_MAX &&
	    (atomic_load_explicit(&cached_descriptor_table[fd].flags, memory_order_relaxed) &
	     (DESCRIPTOR_IS_ACCEPTED | DESCRIPTOR_HAS_REQUEST)) == DESCRIPTOR_IS_ACCEPTED)
		atomic_fetch_or_explicit(&cached_descriptor_table[fd].flags, DESCRIPTOR_HAS_REQUEST,
					 memory_order_relaxed);
}

void causal_count_answered_request(int fd)
{
	static _Atomic uint32_t known; /* index of the point + 1 */
	uint32_t point;

	if ((unsigned)fd >= CACHED_DESCRIPTORS_MAX ||
	    !(atomic_load_explicit(&cached_descriptor_table[fd].flags, memory_order_relaxed) &
	      DESCRIPTOR_HAS_REQUEST))
		return;
	atomic_fetch_and_explicit(&cached_descriptor_table[fd].flags,
				  ~(uint32_t)DESCRIPTOR_HAS_REQUEST, memory_order_relaxed);
	point = atomic_load_explicit(&known, memory_order_relaxed);
	if (!point) {
		point = causal_find_or_add_point("requests", CAUSAL_POINT_PROGRESS,
						 CAUSAL_ORIGIN_AUTOMATIC) +
			1;
		atomic_store_explicit(&known, point, memory_order_relaxed);
	}
	if (point)
		causal_record_visit(point - 1);
}

/* ---- epoll ---- */

#define EPOLL_TABLE_LENGTH 8192u /* power of two; what is crowded out is unknown */

static struct {
	_Atomic uint64_t key;
	_Atomic int fd;
} epoll_table[EPOLL_TABLE_LENGTH];

static uint64_t compute_epoll_event_key(int epoll, uint64_t data)
{
	return causal_hash_kind_and_number((uint64_t)epoll, data);
}

void causal_remember_fd_of_epoll_event(int epoll, int fd, uint64_t data)
{
	uint64_t key = compute_epoll_event_key(epoll, data);

	atomic_store_explicit(&epoll_table[key % EPOLL_TABLE_LENGTH].fd, fd, memory_order_relaxed);
	atomic_store_explicit(&epoll_table[key % EPOLL_TABLE_LENGTH].key, key,
			      memory_order_release);
}

int causal_find_fd_of_epoll_event(int epoll, uint64_t data)
{
	uint64_t key = compute_epoll_event_key(epoll, data);

	if (atomic_load_explicit(&epoll_table[key % EPOLL_TABLE_LENGTH].key,
				 memory_order_acquire) != key)
		return -1;
	return atomic_load_explicit(&epoll_table[key % EPOLL_TABLE_LENGTH].fd,
				    memory_order_relaxed);
}

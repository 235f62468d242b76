/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See causal_descriptors.h. Raw system calls only: the program's errno and cancellation are its
 * own. Two threads that look at the same descriptor find the same.
 */
#include "wrappers/causal_descriptors.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "common/syscalls.h"
#include "core/text.h"

#define KEPT              65536u
#define MARGIN_PER_SECOND 5000u

enum { KIND_PIPE = 1, KIND_ADDRESS, KIND_CONNECTION, KIND_UNIX, KIND_EVENT, KIND_SIGNAL };

enum { IS_SOCKET = 1, IS_ACCEPTED = 2, HAS_REQUEST = 4 };

/* 0: not looked at. `arrives` is written last. */
struct kept {
	_Atomic uint64_t arrives, leaves;
	_Atomic uint32_t flags;
};

static struct kept kept[KEPT];

/* ---- hashes: never one of the small numbers with a meaning ---- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
	return (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9u;
}

uint64_t causal_number_hash(uint64_t kind, uint64_t number)
{
	uint64_t hash = mix(mix(0, kind), number);

	return (hash ^ hash >> 32) | 1ull << 63;
}

uint64_t causal_signal_hash(uint32_t pid)
{
	return causal_number_hash(KIND_SIGNAL, pid);
}

uint64_t causal_room(uint64_t hash)
{
	return causal_number_hash(hash, 1);
}

static uint64_t hash_bytes(const void *data, size_t size)
{
	const uint8_t *byte = data;
	uint64_t hash = size;

	for (size_t i = 0; i < size; i++)
		hash = mix(hash, byte[i]);
	return hash;
}

/* A name's text; an abstract one is as long as the address. Unbound: 0. */
static uint64_t hash_unix(const struct sockaddr_un *address, socklen_t size)
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

static uint32_t port_of(const struct sockaddr *address, socklen_t size)
{
	if (address->sa_family == AF_INET && size >= sizeof(struct sockaddr_in))
		return ((const struct sockaddr_in *)(const void *)address)->sin_port;
	if (address->sa_family == AF_INET6 && size >= sizeof(struct sockaddr_in6))
		return ((const struct sockaddr_in6 *)(const void *)address)->sin6_port;
	return 0;
}

/* IPv4 addresses in IPv6 are what they are: the other end may see them so. */
static uint64_t hash_internet(const struct sockaddr *address, socklen_t size)
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
	return mix(hash, port_of(address, size));
}

uint64_t causal_address_hash(const struct sockaddr *address, socklen_t size)
{
	uint64_t name;

	if (!address || size < (socklen_t)sizeof(sa_family_t))
		return 0;
	if (address->sa_family == AF_UNIX) {
		name = hash_unix((const void *)address, size);
		return name ? causal_number_hash(KIND_ADDRESS, name) : 0;
	}
	return port_of(address, size) ? causal_number_hash(KIND_ADDRESS, port_of(address, size))
				      : 0;
}

/* ---- what a descriptor is ---- */

struct ends {
	struct sockaddr_storage own, peer;
	socklen_t own_size, peer_size;
	int type;
};

static bool get_ends(int fd, struct ends *ret)
{
	socklen_t size = sizeof(ret->type);

	ret->own_size = ret->peer_size = sizeof(ret->own);
	if (sys_call6(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, (long)&ret->type, (long)&size, 0) ||
	    sys_call3(SYS_getsockname, fd, (long)&ret->own, (long)&ret->own_size))
		return false;
	if (sys_call3(SYS_getpeername, fd, (long)&ret->peer, (long)&ret->peer_size))
		ret->peer_size = 0;
	return true;
}

static bool is_listening(int fd)
{
	int listening = 0;
	socklen_t size = sizeof(listening);

	return !sys_call6(SYS_getsockopt, fd, SOL_SOCKET, SO_ACCEPTCONN, (long)&listening,
			  (long)&size, 0) &&
	       listening;
}

/* Each end sees the same two names the other way round. */
static struct causal_descriptor of_connection(uint64_t kind, uint64_t own, uint64_t peer)
{
	uint64_t both = mix(own + peer, kind);
	uint64_t upper = causal_number_hash(both, KIND_CONNECTION),
		 lower = causal_number_hash(both, KIND_UNIX);

	return (struct causal_descriptor){.arrives = own > peer ? upper : lower,
					  .leaves = own > peer ? lower : upper,
					  .is_socket = true};
}

static struct causal_descriptor of_socket(int fd)
{
	struct causal_descriptor ret = {.is_socket = true};
	struct ends ends;
	uint64_t own, peer;

	if (!get_ends(fd, &ends))
		return ret;
	if (is_listening(fd)) {
		ret.arrives = causal_address_hash((void *)&ends.own, ends.own_size);
		ret.leaves = CAUSAL_OUTSIDE;
		return ret;
	}
	switch (ends.own.ss_family) {
	case AF_UNIX:
		own = hash_unix((void *)&ends.own, ends.own_size);
		peer = ends.peer_size ? hash_unix((void *)&ends.peer, ends.peer_size) : 0;
		if (own != peer)
			return of_connection(KIND_UNIX, own, peer);
		ret.arrives = ret.leaves = causal_number_hash(KIND_UNIX, 0);
		return ret;
	case AF_INET:
	case AF_INET6:
		if (ends.type == SOCK_DGRAM) {
			ret.arrives = causal_address_hash((void *)&ends.own, ends.own_size);
			ret.leaves = ends.peer_size ? causal_address_hash((void *)&ends.peer,
									  ends.peer_size)
						    : CAUSAL_OUTSIDE;
			return ret;
		}
		if (!ends.peer_size)
			return ret;
		return of_connection(KIND_ADDRESS, hash_internet((void *)&ends.own, ends.own_size),
				     hash_internet((void *)&ends.peer, ends.peer_size));
	default:
		ret.arrives = ret.leaves = CAUSAL_OUTSIDE;
		return ret;
	}
}

/* eventfd, timerfd and their like have one inode; their names tell (proc(5)). */
static uint64_t of_anonymous(int fd)
{
	char path[48], name[64];
	struct text text = text_on(path, sizeof(path));
	long length;

	text_string(&text, "/proc/self/fd/");
	text_unsigned(&text, (uint64_t)fd);
	length = sys_call4(SYS_readlinkat, SYS_AT_WORKING_DIRECTORY, (long)path, (long)name,
			   sizeof(name) - 1);
	if (length <= 0)
		return CAUSAL_OUTSIDE;
	name[length] = 0;
	if (strstr(name, "[eventfd]"))
		return causal_number_hash(KIND_EVENT, 0);
	return strstr(name, "[signalfd]") ? causal_signal_hash(kymo_runtime.pid) : CAUSAL_OUTSIDE;
}

static struct causal_descriptor look_at(int fd)
{
	struct causal_descriptor ret = {.arrives = CAUSAL_OUTSIDE};
	struct stat status;

	if (kymo_runtime.sealed)
		return ret;
	if (sys_call2(SYS_fstat, fd, (long)&status))
		return (struct causal_descriptor){.arrives = 0};
	switch (status.st_mode & S_IFMT) {
	case S_IFSOCK:
		return of_socket(fd);
	case S_IFIFO:
		ret.arrives = causal_number_hash(mix(KIND_PIPE, status.st_dev), status.st_ino);
		break;
	case S_IFCHR:
		break;
	case 0:
		ret.arrives = of_anonymous(fd);
		break;
	default:
		ret.arrives = CAUSAL_NOT_WAITED;
		break;
	}
	ret.leaves = ret.arrives;
	return ret;
}

struct causal_descriptor causal_descriptor(int fd)
{
	struct causal_descriptor ret;
	struct kept *place = (unsigned)fd < KEPT ? &kept[fd] : NULL;

	if (place) {
		ret.arrives = atomic_load_explicit(&place->arrives, memory_order_acquire);
		ret.leaves = atomic_load_explicit(&place->leaves, memory_order_relaxed);
		ret.is_socket =
			atomic_load_explicit(&place->flags, memory_order_relaxed) & IS_SOCKET;
		if (ret.arrives)
			return ret;
	}
	ret = look_at(fd);
	if (place && ret.arrives) {
		if (ret.is_socket)
			atomic_fetch_or_explicit(&place->flags, IS_SOCKET, memory_order_relaxed);
		atomic_store_explicit(&place->leaves, ret.leaves, memory_order_relaxed);
		atomic_store_explicit(&place->arrives, ret.arrives, memory_order_release);
	}
	if (!ret.arrives)
		ret.arrives = CAUSAL_OUTSIDE;
	return ret;
}

void causal_descriptor_forget(int fd)
{
	if ((unsigned)fd >= KEPT)
		return;
	atomic_store_explicit(&kept[fd].arrives, 0, memory_order_relaxed);
	atomic_store_explicit(&kept[fd].flags, 0, memory_order_relaxed);
}

void causal_descriptors_forget(unsigned first, unsigned last)
{
	for (unsigned fd = first; fd < KEPT && fd <= last; fd++) {
		if (atomic_load_explicit(&kept[fd].arrives, memory_order_relaxed) ||
		    atomic_load_explicit(&kept[fd].flags, memory_order_relaxed))
			causal_descriptor_forget((int)fd);
	}
}

/* ---- waits ---- */

bool causal_ended_by(uint64_t hash, const struct causal_wait *wait)
{
	/* What was marked just before has been done meanwhile. */
	uint64_t margin = kymo_runtime.sampling.tick_hz / MARGIN_PER_SECOND;

	return wait->epoch && hash > CAUSAL_OUTSIDE &&
	       causal_marked_since(hash, wait->ticks - margin);
}

/* ---- requests ---- */

void causal_connection_accepted(int fd)
{
	if ((unsigned)fd >= KEPT)
		return;
	causal_descriptor_forget(fd);
	atomic_store_explicit(&kept[fd].flags, IS_ACCEPTED, memory_order_relaxed);
}

void causal_request_came(int fd)
{
	if ((unsigned)fd < KEPT && (atomic_load_explicit(&kept[fd].flags, memory_order_relaxed) &
				    (IS_ACCEPTED | HAS_REQUEST)) == IS_ACCEPTED)
		atomic_fetch_or_explicit(&kept[fd].flags, HAS_REQUEST, memory_order_relaxed);
}

void causal_request_answered(int fd)
{
	static _Atomic uint32_t known; /* index of the point + 1 */
	uint32_t point;

	if ((unsigned)fd >= KEPT ||
	    !(atomic_load_explicit(&kept[fd].flags, memory_order_relaxed) & HAS_REQUEST))
		return;
	atomic_fetch_and_explicit(&kept[fd].flags, ~(uint32_t)HAS_REQUEST, memory_order_relaxed);
	point = atomic_load_explicit(&known, memory_order_relaxed);
	if (!point) {
		point = causal_point("requests", CAUSAL_POINT_PROGRESS, CAUSAL_ORIGIN_AUTOMATIC) +
			1;
		atomic_store_explicit(&known, point, memory_order_relaxed);
	}
	if (point)
		causal_visit(point - 1);
}

/* ---- epoll ---- */

#define EVENTS 8192u /* power of two; what is crowded out is unknown */

static struct {
	_Atomic uint64_t key;
	_Atomic int fd;
} events[EVENTS];

static uint64_t event_key(int epoll, uint64_t data)
{
	return causal_number_hash((uint64_t)epoll, data);
}

void causal_epoll_added(int epoll, int fd, uint64_t data)
{
	uint64_t key = event_key(epoll, data);

	atomic_store_explicit(&events[key % EVENTS].fd, fd, memory_order_relaxed);
	atomic_store_explicit(&events[key % EVENTS].key, key, memory_order_release);
}

int causal_epoll_descriptor(int epoll, uint64_t data)
{
	uint64_t key = event_key(epoll, data);

	if (atomic_load_explicit(&events[key % EVENTS].key, memory_order_acquire) != key)
		return -1;
	return atomic_load_explicit(&events[key % EVENTS].fd, memory_order_relaxed);
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See file.h. The file is mapped in windows; each is reserved on disk before it is mapped, so that
 * a full disk is a counted loss and no SIGBUS.
 */
#include "libkymo-gpu/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define WINDOW       (4u << 20)
#define STRINGS      16384u /* places of the table at first */
#define IMAGES_MAX   1000
#define LONGEST_TEXT 4096u
#define RETRY_NS     1000000000u /* on a full disk */

struct known_string {
	uint64_t hash;
	uint32_t id;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned waiting; /* threads that want the lock */
static struct gpu_file_header *header;
static int descriptor = -1;
static char *window; /* the mapped part of the records */
static size_t window_size;
static uint64_t window_from; /* its offset behind the header */
static uint64_t retry_at;    /* no window before this time: the disk is full */
static struct known_string *strings;
static uint32_t string_count, string_room;

uint64_t gpu_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Field 22 of /proc/self/stat; the name in field 2 may have blanks and brackets. */
static uint64_t process_start(void)
{
	char text[1024];
	int stat = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	ssize_t length = stat < 0 ? 0 : read(stat, text, sizeof(text) - 1);
	char *at;

	if (stat >= 0)
		close(stat);
	text[length > 0 ? length : 0] = '\0';
	at = strrchr(text, ')');
	for (unsigned field = 2; at != NULL && field < 22; field++) {
		at = strchr(at + 1, ' ');
	}
	return at != NULL ? strtoull(at, NULL, 10) : 0;
}

static int make_file(const char *directory, uint32_t *image)
{
	char path[PATH_MAX];
	int made = -1;

	for (*image = 0; made < 0 && *image < IMAGES_MAX; ++*image) {
		snprintf(path, sizeof(path), "%s/%d-%u.gpu", directory, (int)getpid(), *image);
		made = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (made < 0 && errno != EEXIST)
			break;
	}
	--*image;
	return made;
}

static void fill_header(uint32_t image)
{
	struct timespec real;

	clock_gettime(CLOCK_REALTIME, &real);
	memcpy(header->magic, GPU_MAGIC, sizeof(header->magic));
	header->version_major = GPU_VERSION_MAJOR;
	header->version_minor = GPU_VERSION_MINOR;
	header->header_size = GPU_HEADER_SIZE;
	header->pid = (uint32_t)getpid();
	header->image = image;
	header->process_start = process_start();
	header->start_boottime_ns = gpu_now();
	header->start_realtime_ns = (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec;
	header->state = GPU_FILE_OPEN;
}

static void forget(void)
{
	header = NULL;
	window = NULL;
	window_from = 0;
	if (descriptor >= 0)
		close(descriptor);
	descriptor = -1;
}

bool gpu_file_open(void)
{
	const char *directory = getenv("KYMO_SPOOL_DIRECTORY");
	uint32_t image = 0;
	void *mapped;

	if (header != NULL)
		return true;
	if (directory == NULL || directory[0] == '\0')
		return false;
	descriptor = make_file(directory, &image);
	if (descriptor < 0 || posix_fallocate(descriptor, 0, GPU_HEADER_SIZE) != 0) {
		fprintf(stderr, "kymo: devices are not recorded: no file in '%s': %s\n", directory,
			strerror(errno));
		forget();
		return false;
	}
	mapped = mmap(NULL, GPU_HEADER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
	if (mapped == MAP_FAILED) {
		forget();
		return false;
	}
	header = mapped;
	fill_header(image);
	return true;
}

/* The parent's mappings stay the parent's: the child drops them. */
void gpu_file_forked(void)
{
	pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	lock = fresh;
	atomic_store(&waiting, 0);
	if (window != NULL)
		munmap(window, window_size);
	if (header != NULL)
		munmap(header, GPU_HEADER_SIZE);
	forget();
	free(strings);
	strings = NULL;
	string_count = string_room = 0;
}

void gpu_file_close(void)
{
	pthread_mutex_lock(&lock);
	if (header != NULL) {
		header->state = GPU_FILE_CLOSED;
		if (ftruncate(descriptor, (off_t)(GPU_HEADER_SIZE + header->committed)) != 0)
			header->state =
				GPU_FILE_CLOSED; /* the rest of the window stays, as zeros */
	}
	pthread_mutex_unlock(&lock);
}

void gpu_file_lock(void)
{
	atomic_fetch_add_explicit(&waiting, 1, memory_order_relaxed);
	pthread_mutex_lock(&lock);
	atomic_fetch_sub_explicit(&waiting, 1, memory_order_relaxed);
}

/* Who is woken by the unlocking finds the lock taken again if that comes at once. */
void gpu_file_give_way(void)
{
	if (atomic_load_explicit(&waiting, memory_order_relaxed) == 0)
		return;
	pthread_mutex_unlock(&lock);
	sched_yield();
	pthread_mutex_lock(&lock);
}

void gpu_file_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void gpu_file_lost(enum gpu_loss loss, uint64_t count)
{
	if (header != NULL)
		__atomic_fetch_add(&header->losses[loss], count, __ATOMIC_RELAXED);
}

void gpu_file_filtered(uint64_t kernels)
{
	if (header != NULL)
		__atomic_fetch_add(&header->filtered, kernels, __ATOMIC_RELAXED);
}

void gpu_file_cpu(uint64_t ns)
{
	if (header != NULL)
		__atomic_fetch_add(&header->own_cpu_ns, ns, __ATOMIC_RELAXED);
}

/* NULL: the disk is full. To find that out the file system may take and clear all pages that it
 * has left (tmpfs does), too much for each record. What is left of a disk is used in small parts,
 * each of which has room for the longest record, wherever in its first page that begins. */
static void *map_window(uint64_t from, size_t *size)
{
	static const size_t sizes[] = {WINDOW, WINDOW / 8, UINT16_MAX + 1 + 4096};
	off_t offset = (off_t)(GPU_HEADER_SIZE + from);
	void *mapped = MAP_FAILED;

	if (retry_at != 0 && gpu_now() < retry_at)
		return NULL;
	for (size_t i = 0; mapped == MAP_FAILED && i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		*size = sizes[i];
		if (posix_fallocate(descriptor, offset, (off_t)*size) == 0)
			mapped = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor,
				      offset);
	}
	retry_at = mapped == MAP_FAILED ? gpu_now() + RETRY_NS : 0;
	return mapped == MAP_FAILED ? NULL : mapped;
}

/* Where `size` bytes at the end of the file go; records do not span windows: a window ends with a
 * notice of no text that is skipped. */
static char *room_for(uint32_t size)
{
	uint64_t at = header->committed;
	size_t fresh_size = 0;
	void *mapped;

	if (window != NULL && at + size <= window_from + window_size)
		return window + (at - window_from);
	mapped = map_window(at / 4096 * 4096, &fresh_size);
	if (mapped == NULL)
		return NULL;
	if (window != NULL)
		munmap(window, window_size);
	window = mapped;
	window_size = fresh_size;
	window_from = at / 4096 * 4096;
	return window + (at - window_from);
}

static void count(const struct gpu_record_head *head)
{
	if (head->kind == GPU_RECORD_KERNEL)
		header->kernels++;
	else if (head->kind == GPU_RECORD_COPY)
		header->copies++;
	else if (head->kind == GPU_RECORD_CALL)
		header->calls++;
	else if (head->kind == GPU_RECORD_COUNTED)
		header->counted++;
	else if (head->kind == GPU_RECORD_READING)
		header->readings++;
}

void gpu_file_write(const struct gpu_record_head *head)
{
	uint32_t padded = (head->size + 7u) & ~7u;
	struct gpu_record_head *place;

	if (header == NULL || header->state == GPU_FILE_CLOSED)
		return;
	place = (struct gpu_record_head *)(void *)room_for(padded);
	if (place == NULL) {
		gpu_file_lost(GPU_LOSS_DISK_FULL, 1);
		return;
	}
	memcpy(place, head, head->size);
	memset((char *)place + head->size, 0, padded - head->size);
	place->size = (uint16_t)padded;
	count(head);
	__atomic_store_n(&header->committed, header->committed + padded, __ATOMIC_RELEASE);
}

static void write_text(enum gpu_record_kind kind, uint32_t id, const char *text)
{
	union {
		struct gpu_string string;
		char bytes[sizeof(struct gpu_string) + LONGEST_TEXT + 1];
	} record;
	size_t length = strnlen(text, LONGEST_TEXT);

	record.string.head.kind = (uint16_t)kind;
	record.string.head.size = (uint16_t)(sizeof(struct gpu_string) + length + 1);
	record.string.head.id = id;
	memcpy(record.bytes + sizeof(struct gpu_string), text, length);
	record.bytes[sizeof(struct gpu_string) + length] = '\0';
	gpu_file_write(&record.string.head);
}

void gpu_file_notice(const char *text)
{
	pthread_mutex_lock(&lock);
	write_text(GPU_RECORD_NOTICE, 0, text);
	pthread_mutex_unlock(&lock);
}

/* FNV-1a; 64 bits tell the strings of a process apart. */
static uint64_t hash_of(const char *text)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	while (*text != '\0')
		hash = (hash ^ (unsigned char)*text++) * UINT64_C(0x100000001b3);
	return hash != 0 ? hash : 1;
}

static struct known_string *string_place(struct known_string *table, uint32_t room, uint64_t hash)
{
	uint32_t i = (uint32_t)(hash % room);

	while (table[i].hash != 0 && table[i].hash != hash)
		i = (i + 1) % room;
	return &table[i];
}

static bool grow_strings(void)
{
	uint32_t room = string_room != 0 ? string_room * 2 : STRINGS;
	struct known_string *larger = calloc(room, sizeof(*larger));

	if (larger == NULL)
		return false;
	for (uint32_t i = 0; i < string_room; i++) {
		if (strings[i].hash != 0)
			*string_place(larger, room, strings[i].hash) = strings[i];
	}
	free(strings);
	strings = larger;
	string_room = room;
	return true;
}

uint32_t gpu_file_string(const char *text)
{
	uint64_t hash = hash_of(text);
	struct known_string *place;

	if (string_count * 2 >= string_room && !grow_strings())
		return 0;
	place = string_place(strings, string_room, hash);
	if (place->hash == 0) {
		place->hash = hash;
		place->id = ++string_count;
		write_text(GPU_RECORD_STRING, place->id, text);
	}
	return place->id;
}

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

#include "common/array.h"
#include "common/text_hash.h"

#define FILE_WINDOW_BYTES               (4u << 20)
#define STRING_TABLE_INITIAL_SLOT_COUNT 16384u /* places of the table at first */
#define GPU_FILES_OF_PROCESS_MAX        1000
#define RECORD_TEXT_BYTES_MAX           4096u
#define DISK_FULL_RETRY_INTERVAL_NS     1000000000u /* on a full disk */

struct written_string {
	uint64_t hash;
	uint32_t id;
};

static pthread_mutex_t gpu_file_mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned lock_waiting_thread_count; /* threads that want the lock */
static struct gpu_file_header *file_header;
static int file_descriptor = -1;
static char *current_mapped_window_address; /* the mapped part of the records */
static size_t current_mapped_window_bytes;
static uint64_t current_mapped_window_offset; /* its offset behind the header */
static uint64_t disk_full_retry_time_ns;      /* no window before this time: the disk is full */
static struct written_string *written_string_table;
static uint32_t written_string_count, string_table_slot_count;

uint64_t gpu_read_boottime_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Field 22 of /proc/self/stat; the name in field 2 may have blanks and brackets. */
static uint64_t read_process_start_ticks(void)
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

static int create_gpu_file(const char *directory, uint32_t *image)
{
	char path[PATH_MAX];
	int made = -1;

	for (*image = 0; made < 0 && *image < GPU_FILES_OF_PROCESS_MAX; ++*image) {
		snprintf(path, sizeof(path), "%s/%d-%u.gpu", directory, (int)getpid(), *image);
		made = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (made < 0 && errno != EEXIST)
			break;
	}
	--*image;
	return made;
}

static void fill_file_header(uint32_t image)
{
	struct timespec real;

	clock_gettime(CLOCK_REALTIME, &real);
	memcpy(file_header->magic, GPU_MAGIC, sizeof(file_header->magic));
	file_header->version_major = GPU_VERSION_MAJOR;
	file_header->version_minor = GPU_VERSION_MINOR;
	file_header->header_size = GPU_HEADER_SIZE;
	file_header->pid = (uint32_t)getpid();
	file_header->image = image;
	file_header->process_start = read_process_start_ticks();
	file_header->start_boottime_ns = gpu_read_boottime_ns();
	file_header->start_realtime_ns =
		(uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec;
	file_header->state = GPU_FILE_OPEN;
}

static void forget_and_close_file(void)
{
	file_header = NULL;
	current_mapped_window_address = NULL;
	current_mapped_window_offset = 0;
	if (file_descriptor >= 0)
		close(file_descriptor);
	file_descriptor = -1;
}

bool gpu_file_open(void)
{
	const char *directory = secure_getenv("KYMO_SPOOL_DIRECTORY");
	uint32_t image = 0;
	void *mapped;

	if (file_header != NULL)
		return true;
	if (directory == NULL || directory[0] == '\0')
		return false;
	file_descriptor = create_gpu_file(directory, &image);
	if (file_descriptor < 0 || posix_fallocate(file_descriptor, 0, GPU_HEADER_SIZE) != 0) {
		fprintf(stderr, "kymo: devices are not recorded: no file in '%s': %s\n", directory,
			strerror(errno));
		forget_and_close_file();
		return false;
	}
	mapped =
		mmap(NULL, GPU_HEADER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file_descriptor, 0);
	if (mapped == MAP_FAILED) {
		forget_and_close_file();
		return false;
	}
	file_header = mapped;
	fill_file_header(image);
	return true;
}

/* The parent's mappings stay the parent's: the child drops them. */
void gpu_file_drop_after_fork(void)
{
	pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	gpu_file_mutex = fresh;
	atomic_store(&lock_waiting_thread_count, 0);
	if (current_mapped_window_address != NULL)
		munmap(current_mapped_window_address, current_mapped_window_bytes);
	if (file_header != NULL)
		munmap(file_header, GPU_HEADER_SIZE);
	forget_and_close_file();
	free(written_string_table);
	written_string_table = NULL;
	written_string_count = string_table_slot_count = 0;
}

void gpu_file_close(void)
{
	pthread_mutex_lock(&gpu_file_mutex);
	if (file_header != NULL) {
		file_header->state = GPU_FILE_CLOSED;
		if (ftruncate(file_descriptor, (off_t)(GPU_HEADER_SIZE + file_header->committed)) !=
		    0)
			file_header->state =
				GPU_FILE_CLOSED; /* the rest of the window stays, as zeros */
	}
	pthread_mutex_unlock(&gpu_file_mutex);
}

void gpu_file_lock(void)
{
	atomic_fetch_add_explicit(&lock_waiting_thread_count, 1, memory_order_relaxed);
	pthread_mutex_lock(&gpu_file_mutex);
	atomic_fetch_sub_explicit(&lock_waiting_thread_count, 1, memory_order_relaxed);
}

/* Who is woken by the unlocking finds the lock taken again if that comes at once. */
void gpu_file_yield_lock_if_awaited(void)
{
	if (atomic_load_explicit(&lock_waiting_thread_count, memory_order_relaxed) == 0)
		return;
	pthread_mutex_unlock(&gpu_file_mutex);
	sched_yield();
	pthread_mutex_lock(&gpu_file_mutex);
}

void gpu_file_unlock(void)
{
	pthread_mutex_unlock(&gpu_file_mutex);
}

void gpu_file_add_loss_count(enum gpu_loss loss, uint64_t count)
{
	if (file_header != NULL)
		__atomic_fetch_add(&file_header->losses[loss], count, __ATOMIC_RELAXED);
}

void gpu_file_add_filtered_kernel_count(uint64_t kernels)
{
	if (file_header != NULL)
		__atomic_fetch_add(&file_header->filtered, kernels, __ATOMIC_RELAXED);
}

void gpu_file_add_own_cpu_time(uint64_t ns)
{
	if (file_header != NULL)
		__atomic_fetch_add(&file_header->own_cpu_ns, ns, __ATOMIC_RELAXED);
}

/* NULL: the disk is full. To find that out the file system may take and clear all pages that it
 * has left (tmpfs does), too much for each record. What is left of a disk is used in small parts,
 * each of which has room for the longest record, wherever in its first page that begins. */
static void *map_file_window(uint64_t from, size_t *size)
{
	static const size_t sizes[] = {FILE_WINDOW_BYTES, FILE_WINDOW_BYTES / 8,
				       UINT16_MAX + 1 + 4096};
	off_t offset = (off_t)(GPU_HEADER_SIZE + from);
	void *mapped = MAP_FAILED;

	if (disk_full_retry_time_ns != 0 && gpu_read_boottime_ns() < disk_full_retry_time_ns)
		return NULL;
	for (size_t i = 0; mapped == MAP_FAILED && i < ARRAY_SIZE(sizes); i++) {
		*size = sizes[i];
		if (posix_fallocate(file_descriptor, offset, (off_t)*size) == 0)
			mapped = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED,
				      file_descriptor, offset);
	}
	disk_full_retry_time_ns =
		mapped == MAP_FAILED ? gpu_read_boottime_ns() + DISK_FULL_RETRY_INTERVAL_NS : 0;
	return mapped == MAP_FAILED ? NULL : mapped;
}

/* Where `size` bytes at the end of the file go; records do not span windows: a window ends with a
 * notice of no text that is skipped. */
static char *reserve_record_bytes_in_window(uint32_t size)
{
	uint64_t at = file_header->committed;
	size_t fresh_size = 0;
	void *mapped;

	if (current_mapped_window_address != NULL &&
	    at + size <= current_mapped_window_offset + current_mapped_window_bytes)
		return current_mapped_window_address + (at - current_mapped_window_offset);
	mapped = map_file_window(at / 4096 * 4096, &fresh_size);
	if (mapped == NULL)
		return NULL;
	if (current_mapped_window_address != NULL)
		munmap(current_mapped_window_address, current_mapped_window_bytes);
	current_mapped_window_address = mapped;
	current_mapped_window_bytes = fresh_size;
	current_mapped_window_offset = at / 4096 * 4096;
	return current_mapped_window_address + (at - current_mapped_window_offset);
}

static void count_record_in_header(const struct gpu_record_head *head)
{
	if (head->kind == GPU_RECORD_KERNEL)
		file_header->kernels++;
	else if (head->kind == GPU_RECORD_COPY)
		file_header->copies++;
	else if (head->kind == GPU_RECORD_CALL)
		file_header->calls++;
	else if (head->kind == GPU_RECORD_COUNTED)
		file_header->counted++;
	else if (head->kind == GPU_RECORD_READING)
		file_header->readings++;
}

void gpu_file_write_record(const struct gpu_record_head *head)
{
	uint32_t padded = (head->size + 7u) & ~7u;
	struct gpu_record_head *place;

	if (file_header == NULL || file_header->state == GPU_FILE_CLOSED)
		return;
	place = (struct gpu_record_head *)(void *)reserve_record_bytes_in_window(padded);
	if (place == NULL) {
		gpu_file_add_loss_count(GPU_LOSS_DISK_FULL, 1);
		return;
	}
	memcpy(place, head, head->size);
	memset((char *)place + head->size, 0, padded - head->size);
	place->size = (uint16_t)padded;
	count_record_in_header(head);
	__atomic_store_n(&file_header->committed, file_header->committed + padded,
			 __ATOMIC_RELEASE);
}

static void write_text_record(enum gpu_record_kind kind, uint32_t id, const char *text)
{
	union {
		struct gpu_string string;
		char bytes[sizeof(struct gpu_string) + RECORD_TEXT_BYTES_MAX + 1];
	} record;
	size_t length = strlen(text);

	if (length > RECORD_TEXT_BYTES_MAX)
		length = RECORD_TEXT_BYTES_MAX;
	record.string.head.kind = (uint16_t)kind;
	record.string.head.size = (uint16_t)(sizeof(struct gpu_string) + length + 1);
	record.string.head.id = id;
	memcpy(record.bytes + sizeof(struct gpu_string), text, length);
	record.bytes[sizeof(struct gpu_string) + length] = '\0';
	gpu_file_write_record(&record.string.head);
}

void gpu_file_write_notice(const char *text)
{
	pthread_mutex_lock(&gpu_file_mutex);
	write_text_record(GPU_RECORD_NOTICE, 0, text);
	pthread_mutex_unlock(&gpu_file_mutex);
}

/* 64 bits tell the strings of a process apart; 0 is an empty place. */
static uint64_t hash_text(const char *text)
{
	uint64_t hash = text_hash_append(TEXT_HASH_OF_NOTHING, text);

	return hash != 0 ? hash : 1;
}

static struct written_string *find_string_slot(struct written_string *table, uint32_t room,
					       uint64_t hash)
{
	uint32_t i = (uint32_t)(hash % room);

	while (table[i].hash != 0 && table[i].hash != hash)
		i = (i + 1) % room;
	return &table[i];
}

static bool grow_string_table(void)
{
	uint32_t room = string_table_slot_count != 0 ? string_table_slot_count * 2
						     : STRING_TABLE_INITIAL_SLOT_COUNT;
	struct written_string *larger = calloc(room, sizeof(*larger));

	if (larger == NULL)
		return false;
	for (uint32_t i = 0; i < string_table_slot_count; i++) {
		if (written_string_table[i].hash != 0)
			*find_string_slot(larger, room, written_string_table[i].hash) =
				written_string_table[i];
	}
	free(written_string_table);
	written_string_table = larger;
	string_table_slot_count = room;
	return true;
}

uint32_t gpu_file_find_or_write_string(const char *text)
{
	uint64_t hash = hash_text(text);
	struct written_string *place;

	if (written_string_count * 2 >= string_table_slot_count && !grow_string_table())
		return 0;
	place = find_string_slot(written_string_table, string_table_slot_count, hash);
	if (place->hash == 0) {
		place->hash = hash;
		place->id = ++written_string_count;
		write_text_record(GPU_RECORD_STRING, place->id, text);
	}
	return place->id;
}

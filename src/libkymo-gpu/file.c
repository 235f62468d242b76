/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See file.h. Records are gathered under the lock and are in the file before it is let go of, so
 * that they survive the process. The file is not mapped (common/own_file.h): somebody may shorten
 * it, or its disk may be full. What others refer to (strings, agents, shapes, counters) is kept in
 * memory as well: a file that was shortened begins again with that, and what is lost is counted.
 */
#include "libkymo-gpu/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/own_file.h"
#include "common/text_hash.h"

#define GATHERED_BYTES_MAX              (256u << 10) /* more than the longest record */
#define STRING_TABLE_INITIAL_SLOT_COUNT 16384u       /* places of the table at first */
#define GPU_FILES_OF_PROCESS_MAX        1000
#define RECORD_TEXT_BYTES_MAX           4096u

struct written_string {
	uint64_t hash;
	uint32_t id;
};

static pthread_mutex_t gpu_file_mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned lock_waiting_thread_count; /* threads that want the lock */
static struct gpu_file_header file_header;
static bool file_is_open, file_is_closed;
static struct own_file gpu_file;
static int file_descriptor = -1;
static _Alignas(8) char gathered_records[GATHERED_BYTES_MAX]; /* that are not in the file yet */
static size_t gathered_bytes;
static char *introductions; /* records that others refer to, all that are in the file */
static size_t introduction_bytes, introduction_capacity;
static uint64_t other_record_count; /* in the file */
static uint64_t last_records_offset;
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
	int made = -1;

	for (*image = 0; made < 0 && *image < GPU_FILES_OF_PROCESS_MAX; ++*image) {
		snprintf(gpu_file.path, sizeof(gpu_file.path), "%s/%d-%u.gpu", directory,
			 (int)getpid(), *image);
		made = open(gpu_file.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (made < 0 && errno != EEXIST)
			break;
	}
	--*image;
	if (made >= 0)
		own_file_identify(&gpu_file, made);
	return made;
}

static void fill_file_header(uint32_t image)
{
	struct timespec real;

	clock_gettime(CLOCK_REALTIME, &real);
	memcpy(file_header.magic, GPU_MAGIC, sizeof(file_header.magic));
	file_header.version_major = GPU_VERSION_MAJOR;
	file_header.version_minor = GPU_VERSION_MINOR;
	file_header.header_size = GPU_HEADER_SIZE;
	file_header.pid = (uint32_t)getpid();
	file_header.image = image;
	file_header.process_start = read_process_start_ticks();
	file_header.start_boottime_ns = gpu_read_boottime_ns();
	file_header.start_realtime_ns =
		(uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec;
	file_header.state = GPU_FILE_OPEN;
}

static void forget_and_close_file(void)
{
	memset(&file_header, 0, sizeof(file_header));
	file_is_open = file_is_closed = false;
	gathered_bytes = introduction_bytes = 0;
	other_record_count = 0;
	if (file_descriptor >= 0 && own_file_get_size(&gpu_file, file_descriptor) >= 0)
		close(file_descriptor);
	file_descriptor = -1;
}

static bool write_file_header(void)
{
	return own_file_write(file_descriptor, &file_header, sizeof(file_header), 0) ==
	       sizeof(file_header);
}

bool gpu_file_open(void)
{
	const char *directory = secure_getenv("KYMO_SPOOL_DIRECTORY");
	uint32_t image = 0;

	if (file_is_open)
		return true;
	if (directory == NULL || directory[0] == '\0')
		return false;
	errno = 0;
	file_descriptor = create_gpu_file(directory, &image);
	if (file_descriptor >= 0) {
		fill_file_header(image);
		file_is_open = write_file_header();
	}
	if (!file_is_open) {
		fprintf(stderr, "kymo: devices are not recorded: no file in '%s': %s\n", directory,
			strerror(errno != 0 ? errno : ENOSPC));
		forget_and_close_file();
	}
	return file_is_open;
}

/* ---- what was gathered goes into the file ---- */

static bool is_introduction(const struct gpu_record_head *head)
{
	return head->kind == GPU_RECORD_STRING || head->kind == GPU_RECORD_AGENT ||
	       head->kind == GPU_RECORD_SHAPE || head->kind == GPU_RECORD_COUNTER;
}

/* Without memory for it the rest of a file that is shortened later has no name. */
static void keep_introduction(const struct gpu_record_head *head)
{
	size_t wanted = introduction_bytes + head->size;

	if (wanted > introduction_capacity) {
		char *larger = realloc(introductions, 2 * wanted);

		if (larger == NULL)
			return;
		introductions = larger;
		introduction_capacity = 2 * wanted;
	}
	memcpy(introductions + introduction_bytes, head, head->size);
	introduction_bytes = wanted;
}

static void count_record_in_header(const struct gpu_record_head *head)
{
	if (head->kind == GPU_RECORD_KERNEL)
		file_header.kernels++;
	else if (head->kind == GPU_RECORD_COPY)
		file_header.copies++;
	else if (head->kind == GPU_RECORD_CALL)
		file_header.calls++;
	else if (head->kind == GPU_RECORD_COUNTED)
		file_header.counted++;
	else if (head->kind == GPU_RECORD_READING)
		file_header.readings++;
	if (is_introduction(head))
		keep_introduction(head);
	else
		other_record_count++;
}

/* The records that the first `written` bytes hold whole are there, the others are lost. */
static void settle_gathered_records(size_t written)
{
	uint64_t lost = 0;

	for (size_t at = 0; at < gathered_bytes;) {
		const struct gpu_record_head *head = (const void *)(gathered_records + at);

		at += head->size;
		if (at <= written) {
			count_record_in_header(head);
			file_header.committed += head->size;
		} else {
			lost++;
		}
	}
	gpu_file_add_loss_count(GPU_LOSS_DISK_FULL, lost);
	gathered_bytes = 0;
}

/* The file was shortened: what is in memory still is written again, the rest is counted. */
static void begin_file_again(void)
{
	size_t written =
		own_file_write(file_descriptor, introductions, introduction_bytes, GPU_HEADER_SIZE);

	gpu_file_add_loss_count(GPU_LOSS_SHORTENED, other_record_count);
	if (written < introduction_bytes)
		gpu_file_add_loss_count(GPU_LOSS_DISK_FULL, 1);
	other_record_count = 0;
	file_header.kernels = file_header.copies = file_header.calls = 0;
	file_header.counted = file_header.readings = 0;
	file_header.committed = written;
	last_records_offset = GPU_HEADER_SIZE;
}

/* The program closes descriptors that are not its own, and opens others by the same number. */
static bool find_own_descriptor(int64_t *ret_size)
{
	*ret_size = own_file_get_size(&gpu_file, file_descriptor);
	if (*ret_size >= 0)
		return true;
	file_descriptor = own_file_reopen(&gpu_file);
	*ret_size = own_file_get_size(&gpu_file, file_descriptor);
	return *ret_size >= 0;
}

/* What was cut has grown again when it is not noticed at once. */
static bool last_record_is_there(void)
{
	uint64_t head = 0;

	return file_header.committed == 0 || (pread(file_descriptor, &head, sizeof(head),
						    (off_t)last_records_offset) == sizeof(head) &&
					      head != 0);
}

/* With the lock held. First the records, then the header, which says how many there are. */
static void flush_gathered_records(void)
{
	uint64_t before;
	int64_t size;

	if (!file_is_open || file_is_closed)
		return;
	if (!find_own_descriptor(&size)) {
		settle_gathered_records(0);
		return;
	}
	if ((uint64_t)size < GPU_HEADER_SIZE + file_header.committed || !last_record_is_there())
		begin_file_again();
	before = file_header.committed;
	settle_gathered_records(own_file_write(file_descriptor, gathered_records, gathered_bytes,
					       GPU_HEADER_SIZE + file_header.committed));
	if (file_header.committed > before)
		last_records_offset = GPU_HEADER_SIZE + before;
	write_file_header();
}

/* The parent's file stays the parent's. */
void gpu_file_drop_after_fork(void)
{
	pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	gpu_file_mutex = fresh;
	atomic_store(&lock_waiting_thread_count, 0);
	forget_and_close_file();
	free(introductions);
	introductions = NULL;
	introduction_capacity = 0;
	free(written_string_table);
	written_string_table = NULL;
	written_string_count = string_table_slot_count = 0;
}

void gpu_file_close(void)
{
	pthread_mutex_lock(&gpu_file_mutex);
	if (file_is_open) {
		file_header.state = GPU_FILE_CLOSED;
		flush_gathered_records();
		file_is_closed = true;
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
	flush_gathered_records();
	pthread_mutex_unlock(&gpu_file_mutex);
	sched_yield();
	pthread_mutex_lock(&gpu_file_mutex);
}

void gpu_file_unlock(void)
{
	flush_gathered_records();
	pthread_mutex_unlock(&gpu_file_mutex);
}

/* By threads with and without the lock; in the file with the next records, or when it is closed. */
void gpu_file_add_loss_count(enum gpu_loss loss, uint64_t count)
{
	__atomic_fetch_add(&file_header.losses[loss], count, __ATOMIC_RELAXED);
}

void gpu_file_add_filtered_kernel_count(uint64_t kernels)
{
	__atomic_fetch_add(&file_header.filtered, kernels, __ATOMIC_RELAXED);
}

void gpu_file_add_own_cpu_time(uint64_t ns)
{
	__atomic_fetch_add(&file_header.own_cpu_ns, ns, __ATOMIC_RELAXED);
}

void gpu_file_write_record(const struct gpu_record_head *head)
{
	uint32_t padded = (head->size + 7u) & ~7u;
	struct gpu_record_head *place;

	if (!file_is_open || file_is_closed)
		return;
	if (gathered_bytes + padded > sizeof(gathered_records))
		flush_gathered_records();
	place = (struct gpu_record_head *)(void *)(gathered_records + gathered_bytes);
	memcpy(place, head, head->size);
	memset((char *)place + head->size, 0, padded - head->size);
	place->size = (uint16_t)padded;
	gathered_bytes += padded;
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
	gpu_file_unlock();
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

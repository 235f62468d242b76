/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See short_process.h. Nothing of /proc but one link is read: what a process looks up there, the
 * kernel throws away at its end, in the time of the parent that waits for it.
 */
#include "core/spool/short_process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>

#include "common/leb128.h"
#include "common/syscalls.h"
#include "core/base/fork_state.h"
#include "core/base/own_work.h"
#include "core/base/text.h"
#include "core/base/ticks.h"

#define TASK_NAME_BYTES           16 /* TASK_COMM_LEN */
#define RECORD_HEAD_BYTES_MAX     (1 + LEB128_BYTES_MAX)
#define ENTRY_PARTS_MAX           (2 + DESCRIPTION_PARTS) /* the head, the records */
#define DESCRIPTION_PARTS         7
#define SPOOL_DIRECTORY_NAME      "spool"
#define MAIN_THREAD_INTERNAL_ID   0 /* its internal id */
#define ENCODED_NUMBERS_BYTES_MAX (8 * LEB128_BYTES_MAX)

/* An entry, in the pieces that it is written from. */
struct entry {
	struct {
		uint8_t header[SPOOL_SHORT_HEADER];
		struct spool_chunk_header chunk;
	} head;
	struct iovec iovecs[ENTRY_PARTS_MAX];
	unsigned iovec_count;
};

KYMO_FORK_CODE static void append_entry_part(struct entry *entry, const void *bytes, size_t size)
{
	entry->iovecs[entry->iovec_count++] = (struct iovec){(void *)bytes, size};
}

KYMO_FORK_CODE static uint8_t *encode_counted_bytes(uint8_t *at, const char *bytes, size_t size)
{
	at = leb128_write(at, size);
	memcpy(at, bytes, size);
	return at + size;
}

bool short_process_is_usable_spool_directory(const char *directory)
{
	size_t length = strlen(directory), name = strlen("/" SPOOL_DIRECTORY_NAME);

	return length > name && length + sizeof(SPOOL_SHORT_NAME) < PATH_MAX &&
	       !strcmp(directory + length - name, "/" SPOOL_DIRECTORY_NAME);
}

/* Beside the directory of the spool files. */
void short_process_set_path(char path[SHORT_PROCESS_PATH_BYTES], const char *directory)
{
	struct text_buffer text = text_buffer_init(path, SHORT_PROCESS_PATH_BYTES);

	text_append_string(&text, directory);
	text.length -= strlen(SPOOL_DIRECTORY_NAME);
	text_append_string(&text, SPOOL_SHORT_NAME);
}

KYMO_FORK_CODE static long open_short_process_file(const char *path, int flags)
{
	return sys_open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags,
			0600);
}

bool short_process_create_file(const char *path)
{
	long fd = open_short_process_file(path, O_CREAT | O_EXCL);

	if (fd < 0)
		return false;
	if (sys_is_file_size_allowed(sizeof(SPOOL_SHORT_MAGIC)))
		sys_write((int)fd, SPOOL_SHORT_MAGIC, sizeof(SPOOL_SHORT_MAGIC));
	sys_close((int)fd);
	return true;
}

/* More than the size limit of files would be a signal to the program (SIGXFSZ). */
KYMO_FORK_CODE static bool append_entry_to_file(const struct short_process *process,
						const struct entry *entry, size_t size)
{
	long fd = open_short_process_file(process->path, 0), written;
	struct stat status;

	if (fd < 0)
		return false;
	if (sys_call2(SYS_fstat, fd, (long)&status) || !S_ISREG(status.st_mode) ||
	    !sys_is_file_size_allowed((uint64_t)status.st_size + size))
		written = -1;
	else
		written = sys_call3(SYS_writev, fd, (long)entry->iovecs, entry->iovec_count);
	sys_close((int)fd);
	return written == (long)size;
}

/* The times at which the process began are those of its first entry. */
KYMO_FORK_CODE static void fill_header_start_times(struct spool_file_header *header)
{
	uint64_t since = read_posix_clock_ns(CLOCK_MONOTONIC) - header->start_ticks;

	header->start_monotonic_ns = header->start_ticks;
	header->start_boottime_ns = read_posix_clock_ns(CLOCK_BOOTTIME) - since;
	header->start_realtime_ns = read_posix_clock_ns(CLOCK_REALTIME) - since;
}

/* The parts behind the first are the records. */
KYMO_FORK_CODE static bool write_entry(const struct short_process *process, struct entry *entry,
				       enum spool_state state, bool first)
{
	struct spool_file_header header;
	size_t records = 0;

	for (unsigned i = 1; i < entry->iovec_count; i++)
		records += entry->iovecs[i].iov_len;
	memset(&header, 0, sizeof(entry->head.header));
	memcpy(header.magic, SPOOL_MAGIC, sizeof(header.magic));
	header.version_major = SPOOL_VERSION_MAJOR;
	header.version_minor = SPOOL_VERSION_MINOR;
	header.header_size = SPOOL_SHORT_HEADER;
	header.pid = process->pid;
	header.parent_pid = process->parent_pid;
	header.tick_clock = 1;
	header.tick_hz = 1000000000u;
	header.start_ticks = process->start_ns;
	if (first)
		fill_header_start_times(&header);
	header.state = (uint32_t)state;
	header.exit_status = -1;
	header.end_ticks = read_posix_clock_ns(CLOCK_MONOTONIC);
	header.file_size = sizeof(entry->head) + records;
	header.threads = 1;
	own_work_write_to_header(&header);
	if (process->own_work_begun_cpu_ns)
		header.own_work_ns += own_work_read_clock_ns() - process->own_work_begun_cpu_ns;
	header.own_work_ns += process->entry_write_ns;
	memcpy(entry->head.header, &header, sizeof(entry->head.header));
	entry->head.chunk =
		(struct spool_chunk_header){.magic = SPOOL_CHUNK_MAGIC,
					    .size = (uint32_t)(sizeof(entry->head.chunk) + records),
					    .committed = (uint32_t)records,
					    .state = 3,
					    .sequence = header.end_ticks};
	return append_entry_to_file(process, entry, sizeof(entry->head) + records);
}

KYMO_FORK_CODE static void init_entry(struct entry *entry)
{
	entry->iovec_count = 0;
	append_entry_part(entry, &entry->head, sizeof(entry->head));
}

/* ---- the beginning ---- */

KYMO_FORK_CODE static uint8_t *encode_thread_start_record(uint8_t *at, uint64_t start_ns,
							  uint32_t tid)
{
	char name[TASK_NAME_BYTES] = "";
	uint8_t payload[ENCODED_NUMBERS_BYTES_MAX + TASK_NAME_BYTES], *end = payload;

	sys_call2(SYS_prctl, PR_GET_NAME, (long)name);
	end = write_fixed64_little_endian(end, start_ns);
	end = leb128_write(end, MAIN_THREAD_INTERNAL_ID);
	end = leb128_write(end, 0); /* sequent id */
	end = leb128_write(end, tid);
	end = leb128_write(end, 0); /* parent */
	end = leb128_write(end, 0); /* entry */
	end = encode_counted_bytes(end, name, strnlen(name, sizeof(name)));
	end = leb128_write(end, 0); /* the main thread */
	*at++ = SPOOL_RECORD_THREAD_START;
	return encode_counted_bytes(at, (const char *)payload, (size_t)(end - payload));
}

/* The process's description is written from where its texts are: what is copied in a forked child
 * is memory that it touches (core/base/fork_state.h). */
struct process_description {
	uint8_t numbers[ENCODED_NUMBERS_BYTES_MAX], arguments_size[LEB128_BYTES_MAX],
		directory_size[LEB128_BYTES_MAX],
		tail[LEB128_BYTES_MAX + SHORT_PROCESS_HOST_BYTES + 1];
	size_t size; /* of all parts */
};

KYMO_FORK_CODE static void append_description_part(struct entry *entry,
						   struct process_description *text,
						   const void *bytes, size_t size)
{
	append_entry_part(entry, bytes, size);
	text->size += size;
}

void short_process_read_host_name(char host[SHORT_PROCESS_HOST_BYTES])
{
	struct utsname name = {0};

	sys_call1(SYS_uname, (long)&name);
	memcpy(host, name.nodename, strnlen(name.nodename, SHORT_PROCESS_HOST_BYTES - 1));
}

KYMO_FORK_CODE static void append_process_description(struct entry *entry,
						      struct process_description *text,
						      struct short_process *process)
{
	static char directory[PATH_MAX]; /* not on the stack of a thread that forks */
	size_t executable = strnlen(process->executable, PATH_MAX), length;
	long with_zero = sys_call2(SYS_getcwd, (long)directory, sizeof(directory));
	uint8_t *at = text->numbers;

	text->size = 0;
	at = leb128_write(at, process->pid);
	at = leb128_write(at, process->parent_pid);
	at = leb128_write(at, (uint64_t)sys_call0(SYS_getuid));
	at = leb128_write(at, (uint64_t)sys_call0(SYS_getgid));
	at = leb128_write(at, executable);
	append_description_part(entry, text, text->numbers, (size_t)(at - text->numbers));
	append_description_part(entry, text, process->executable, executable);
	at = leb128_write(text->arguments_size, process->arguments_bytes);
	append_description_part(entry, text, text->arguments_size,
				(size_t)(at - text->arguments_size));
	append_description_part(entry, text, process->arguments, process->arguments_bytes);
	length = with_zero > 0 ? (size_t)with_zero - 1 : 0;
	at = leb128_write(text->directory_size, length);
	append_description_part(entry, text, text->directory_size,
				(size_t)(at - text->directory_size));
	append_description_part(entry, text, directory, length);
	at = encode_counted_bytes(text->tail, process->host,
				  strnlen(process->host, SHORT_PROCESS_HOST_BYTES - 1));
	at = leb128_write(at, 0); /* the environment is that of the session's others */
	append_description_part(entry, text, text->tail, (size_t)(at - text->tail));
}

KYMO_FORK_CODE bool short_process_write_start(struct short_process *process)
{
	uint8_t records[2 * ENCODED_NUMBERS_BYTES_MAX + TASK_NAME_BYTES +
			2 * RECORD_HEAD_BYTES_MAX],
		*at;
	struct process_description text;
	uint64_t before_ns;
	struct entry entry;
	bool written;

	process->own_work_begun_cpu_ns = process->entry_write_ns = 0;
	process->pid = (uint32_t)sys_getpid();
	process->parent_pid = (uint32_t)sys_call0(SYS_getppid);
	process->start_ns = read_posix_clock_ns(CLOCK_MONOTONIC);
	init_entry(&entry);
	append_entry_part(&entry, records, 0); /* its size is known when all is there */
	append_process_description(&entry, &text, process);
	at = encode_thread_start_record(records, process->start_ns, (uint32_t)sys_gettid());
	*at++ = SPOOL_RECORD_PROCESS;
	at = leb128_write(at, text.size);
	entry.iovecs[1].iov_len = (size_t)(at - records);
	before_ns = own_work_read_clock_ns();
	written = write_entry(process, &entry, SPOOL_STATE_OPEN, true);
	process->entry_write_ns = own_work_read_clock_ns() - before_ns;
	return written;
}

/* ---- what comes later ---- */

/* The thread may have named itself since the first entry. */
KYMO_FORK_CODE static uint8_t *encode_thread_name_record(uint8_t *at)
{
	char name[TASK_NAME_BYTES] = "";
	uint8_t payload[ENCODED_NUMBERS_BYTES_MAX + TASK_NAME_BYTES], *end = payload;

	sys_call2(SYS_prctl, PR_GET_NAME, (long)name);
	end = leb128_write(end, MAIN_THREAD_INTERNAL_ID);
	end = encode_counted_bytes(end, name, strnlen(name, sizeof(name)));
	*at++ = SPOOL_RECORD_THREAD_NAME;
	return encode_counted_bytes(at, (const char *)payload, (size_t)(end - payload));
}

KYMO_FORK_CODE bool short_process_write_end(const struct short_process *process,
					    enum spool_state state, uint64_t cpu_ns)
{
	uint8_t payload[ENCODED_NUMBERS_BYTES_MAX], *end = payload;
	uint8_t record[2 * (ENCODED_NUMBERS_BYTES_MAX + RECORD_HEAD_BYTES_MAX) + TASK_NAME_BYTES];
	uint8_t *at = record;
	struct entry entry;

	end = write_fixed64_little_endian(end, read_posix_clock_ns(CLOCK_MONOTONIC));
	end = leb128_write(end, MAIN_THREAD_INTERNAL_ID);
	end = leb128_write(end, cpu_ns);
	end = leb128_write(end, 0); /* covered by samples */
	end = leb128_write(end, 0); /* samples */
	end = leb128_write(end, 0); /* signals */
	end = leb128_write(end, process->start_cpu_ns);
	*at++ = SPOOL_RECORD_THREAD_END;
	at = encode_counted_bytes(at, (const char *)payload, (size_t)(end - payload));
	if (state != SPOOL_STATE_MOVED)
		at = encode_thread_name_record(at);
	init_entry(&entry);
	append_entry_part(&entry, record, (size_t)(at - record));
	return write_entry(process, &entry, state, false);
}

bool short_process_write_notice(const struct short_process *process, enum spool_state state,
				const struct short_process_notice *notice)
{
	size_t text = strlen(notice->text), more = notice->more ? strlen(notice->more) : 0;
	uint8_t payload[ENCODED_NUMBERS_BYTES_MAX],
		record[ENCODED_NUMBERS_BYTES_MAX + RECORD_HEAD_BYTES_MAX], *end = payload,
									   *at = record;
	struct entry entry;

	end = write_fixed64_little_endian(end, read_posix_clock_ns(CLOCK_MONOTONIC));
	end = leb128_write(end, notice->kind);
	end = leb128_write(end, notice->argument);
	end = leb128_write(end, text + more);
	*at++ = SPOOL_RECORD_NOTICE;
	at = leb128_write(at, (uint64_t)(end - payload) + text + more);
	memcpy(at, payload, (size_t)(end - payload));
	at += end - payload;
	init_entry(&entry);
	append_entry_part(&entry, record, (size_t)(at - record));
	append_entry_part(&entry, notice->text, text);
	append_entry_part(&entry, notice->more ? notice->more : "", more);
	return write_entry(process, &entry, state, false);
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See call_trace.h. The words of a start, by kind:
 *   COLLECTIVE, P2P, CE_COLLECTIVE  function type count root sequence channels warps algorithm
 *                                   protocol group
 *   COLLECTIVE_API, P2P_API         function type count root stream captured
 *   GROUP_API                       depth captured
 *   KERNEL_LAUNCH                   stream
 *   PROXY_OP                        pid channel peer steps chunk_size is_send
 *   PROXY_STEP                      step
 *   KERNEL_CHANNEL, KERNEL_PHASE    channel phase gpu_time
 *   others                          none
 * A missing name is "-". In versions 1 to 3 operations have hash and name of the communicator
 * behind these.
 */
#include "nccl/call_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/syscalls.h"
#include "nccl/clock.h"
#include "nccl/communicators.h"
#include "nccl/log.h"
#include "nccl/options.h"
#include "nccl/recorder.h"

#define FILE_SIZE_ROOM_FOR_OTHER_THREADS_BYTES 65536u

int call_trace_file_descriptor = -1;
static _Atomic int last_write_error;

int call_trace_open(const char *path)
{
	int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);

	if (descriptor < 0)
		return -errno;
	__atomic_store_n(&call_trace_file_descriptor, descriptor, __ATOMIC_RELAXED);
	return 0;
}

void call_trace_turn_off(void)
{
	__atomic_store_n(&call_trace_file_descriptor, -1, __ATOMIC_RELAXED);
}

/* Other threads may be just about to write as well. */
static bool is_within_file_size_limit(void)
{
	struct stat status;

	return sys_call2(SYS_fstat, call_trace_file_descriptor, (long)&status) ||
	       !S_ISREG(status.st_mode) ||
	       sys_is_file_size_allowed((uint64_t)status.st_size +
					FILE_SIZE_ROOM_FOR_OTHER_THREADS_BYTES);
}

/* O_APPEND: lines of several threads stay whole. */
__attribute__((format(printf, 1, 2))) static void write_trace_line(const char *format, ...)
{
	char line[1024];
	va_list arguments;
	ssize_t written;
	int length = snprintf(line, sizeof(line), "%" PRIu64 " %u ",
			      nccl_clock_read_ns(CLOCK_MONOTONIC), recorder_get_thread_id());

	va_start(arguments, format);
	length += vsnprintf(line + length, sizeof(line) - (size_t)length - 1, format, arguments);
	va_end(arguments);
	if (length > (int)sizeof(line) - 2)
		length = (int)sizeof(line) - 2;
	line[length++] = '\n';
	if (is_within_file_size_limit()) {
		written = write(call_trace_file_descriptor, line, (size_t)length);
	} else {
		written = -1;
		errno = EFBIG;
	}
	if (written == length)
		return;
	store_count_loss(NCCL_LOSS_CALL_TRACE);
	/* A part of it: the disk has become full. */
	atomic_store_explicit(&last_write_error, written < 0 ? errno : ENOSPC,
			      memory_order_relaxed);
}

void call_trace_report_write_error_once(void)
{
	static bool reported;
	int error = atomic_load_explicit(&last_write_error, memory_order_relaxed);

	if (!error || reported)
		return;
	reported = true;
	log_report_on_stderr(
		"KYMO_NCCL_CALL_TRACE: '%s' cannot be written: %s; calls that are not in it are "
		"counted in the results",
		options.call_trace_path, strerror(error));
}

static uint64_t pointer_to_number(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

static const char *get_word_or_dash(const char *name)
{
	return name && *name ? name : "-";
}

static const char *escape_word_or_dash(const char *name, char *buffer, size_t size)
{
	size_t length = 0;

	for (; name && *name && length + 5 < size; name++) {
		unsigned char c = (unsigned char)*name;

		if (c <= ' ' || c == '\\' || c >= 0x7f)
			length += (size_t)snprintf(buffer + length, size - length, "\\x%02x", c);
		else
			buffer[length++] = *name;
	}
	buffer[length] = 0;
	return length ? buffer : "-";
}

void call_trace_write_init_call(const void *context, const struct communicator_identity *identity)
{
	char name[256];

	write_trace_line("init %" PRIx64 " %u %d %d %d %" PRIx64 " %u %s",
			 pointer_to_number(context), identity->api, identity->rank,
			 identity->rank_count, identity->node_count, identity->hash,
			 identity->event_mask,
			 escape_word_or_dash(identity->name, name, sizeof(name)));
}

static void format_operation_words(const struct plugin_event_start_arguments *event, char *words,
				   size_t size)
{
	char name[128];
	int length = snprintf(words, size, "%s %s %" PRIu64 " %d %" PRIu64 " %u %u %s %s %" PRIx64,
			      get_word_or_dash(event->function), get_word_or_dash(event->data_type),
			      event->count, event->root, event->sequence, event->channel_count,
			      event->warp_count, get_word_or_dash(event->algorithm),
			      get_word_or_dash(event->protocol), pointer_to_number(event->group));

	if (event->api < 4 && length > 0 && (size_t)length < size)
		snprintf(words + length, size - (size_t)length, " %" PRIx64 " %s",
			 event->communicator_hash,
			 escape_word_or_dash(event->communicator_name, name, sizeof(name)));
}

static void format_event_words(const struct plugin_event_start_arguments *event, char *words,
			       size_t size)
{
	words[0] = 0;
	switch (event->kind) {
	case NCCL_KIND_COLLECTIVE:
	case NCCL_KIND_P2P:
	case NCCL_KIND_CE_COLLECTIVE:
		format_operation_words(event, words, size);
		break;
	case NCCL_KIND_COLLECTIVE_API:
	case NCCL_KIND_P2P_API:
		snprintf(words, size, "%s %s %" PRIu64 " %d %" PRIx64 " %d",
			 get_word_or_dash(event->function), get_word_or_dash(event->data_type),
			 event->count, event->root, pointer_to_number(event->stream),
			 event->is_captured);
		break;
	case NCCL_KIND_GROUP_API:
		snprintf(words, size, "%d %d", event->depth, event->is_captured);
		break;
	case NCCL_KIND_KERNEL_LAUNCH:
		snprintf(words, size, "%" PRIx64, pointer_to_number(event->stream));
		break;
	case NCCL_KIND_PROXY_OP:
		snprintf(words, size, "%d %u %d %d %d %d", event->pid, event->channel, event->root,
			 event->steps, event->chunk_bytes, event->is_send);
		break;
	case NCCL_KIND_PROXY_STEP:
		snprintf(words, size, "%d", event->step);
		break;
	case NCCL_KIND_KERNEL_CHANNEL:
	case NCCL_KIND_KERNEL_PHASE:
		snprintf(words, size, "%u %u %" PRIu64, event->channel,
			 event->kind == NCCL_KIND_KERNEL_PHASE ? event->phase : 0,
			 event->gpu_timestamp);
		break;
	default:
		break;
	}
}

void call_trace_write_event_start(const void *context, const void *handle,
				  const struct plugin_event_start_arguments *event)
{
	char words[512];

	format_event_words(event, words, sizeof(words));
	write_trace_line("start %" PRIx64 " %" PRIx64 " %u %" PRIx64 " %d %s",
			 pointer_to_number(context), pointer_to_number(handle), event->kind,
			 pointer_to_number(event->parent), event->rank, words);
}

void call_trace_write_event_stop(const void *handle)
{
	write_trace_line("stop %" PRIx64, pointer_to_number(handle));
}

void call_trace_write_event_state(const void *handle, int state,
				  const struct event_state_arguments *arguments)
{
	uint64_t value = arguments->gpu_time + arguments->bytes + (uint64_t)arguments->appended;

	write_trace_line("state %" PRIx64 " %d %d %" PRIu64, pointer_to_number(handle), state,
			 arguments->known, value);
}

void call_trace_write_finalize_call(const void *context)
{
	write_trace_line("final %" PRIx64, pointer_to_number(context));
}

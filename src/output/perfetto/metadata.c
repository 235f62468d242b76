/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The packets before and after the data: clocks, identity, machine, attributes; and at the end what
 * is missing, in the form for which Perfetto shows its data-loss banner.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/utsname.h>

#include "output/perfetto/perfetto.h"

enum {
	CLOCK_ID_REALTIME = 1,
	CLOCK_ID_BOOTTIME = 6,
};

static void write_clock_reading(struct protobuf_writer *writer, unsigned clock, uint64_t time_ns)
{
	protobuf_open_message(writer, 1);
	protobuf_write_uint(writer, 1, clock);
	protobuf_write_uint(writer, 2, time_ns);
	protobuf_close_message(writer);
}

/* Needs no timestamp of its own. BOOTTIME is the clock of every packet in the file. */
static void write_clock_snapshot(struct perfetto_trace *trace, uint64_t time_ns)
{
	struct protobuf_writer *writer = &trace->writer;
	int64_t offset = trace->session->realtime_minus_boottime_ns;

	perfetto_open_metadata_packet(trace, 0);
	protobuf_open_message(writer, PACKET_FIELD_CLOCK_SNAPSHOT);
	write_clock_reading(writer, CLOCK_ID_BOOTTIME, time_ns);
	if (offset > 0)
		write_clock_reading(writer, CLOCK_ID_REALTIME, time_ns + (uint64_t)offset);
	protobuf_write_uint(writer, 2, CLOCK_ID_BOOTTIME);
	protobuf_close_message(writer);
	perfetto_close_metadata_packet(trace);
}

/* FNV-1a. The uuid depends on what ran only, so that converting twice gives the same trace. */
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static void write_trace_uuid(struct perfetto_trace *trace)
{
	const struct session *session = trace->session;
	uint64_t low = UINT64_C(0xcbf29ce484222325), high;

	low = hash_bytes(low, &session->start_ns, sizeof(session->start_ns));
	for (uint32_t i = 0; i < session->process_count; i++) {
		const struct model_process *process = &session->processes[i];
		low = hash_bytes(low, &process->pid, sizeof(process->pid));
		low = hash_bytes(low, &process->process_start, sizeof(process->process_start));
		low = hash_bytes(low, process->host, strlen(process->host));
	}
	high = hash_bytes(low, &session->realtime_minus_boottime_ns,
			  sizeof(session->realtime_minus_boottime_ns));
	perfetto_open_metadata_packet(trace, 0);
	protobuf_open_message(&trace->writer, PACKET_FIELD_TRACE_UUID);
	protobuf_write_uint(&trace->writer, 1, high);
	protobuf_write_uint(&trace->writer, 2, low);
	protobuf_close_message(&trace->writer);
	perfetto_close_metadata_packet(trace);
}

/* The kernel's version is known only where the trace is written on the machine that ran. */
static void write_system_info(struct perfetto_trace *trace)
{
	struct protobuf_writer *writer = &trace->writer;
	const struct session *session = trace->session;
	const char *host = session->process_count != 0 ? session->processes[0].host : "";
	struct utsname names;

	perfetto_open_metadata_packet(trace, 0);
	protobuf_open_message(writer, PACKET_FIELD_SYSTEM_INFO);
	if (uname(&names) == 0 && strcmp(names.nodename, host) == 0) {
		protobuf_open_message(writer, 1);
		protobuf_write_string(writer, 1, names.sysname);
		protobuf_write_string(writer, 2, names.version);
		protobuf_write_string(writer, 3, names.release);
		protobuf_write_string(writer, 4, names.machine);
		protobuf_close_message(writer);
	}
	protobuf_write_string(writer, 4, "kymo " KYMO_VERSION);
	if (host[0] != '\0')
		protobuf_write_string(writer, 17, host);
	protobuf_close_message(writer);
	perfetto_close_metadata_packet(trace);
}

static void write_string_attribute(struct protobuf_writer *writer, const char *key,
				   const char *value)
{
	protobuf_open_message(writer, 1);
	protobuf_write_string(writer, 1, key);
	protobuf_write_string(writer, 3, value);
	protobuf_close_message(writer);
}

static void write_number_attribute(struct protobuf_writer *writer, const char *key, uint64_t value)
{
	protobuf_open_message(writer, 1);
	protobuf_write_string(writer, 1, key);
	protobuf_write_uint(writer, 2, value);
	protobuf_close_message(writer);
}

struct all_process_totals {
	uint64_t samples, cpu_covered_ns, handler_ns, helper_cpu_ns, torn_bytes, torn_chunks;
	uint64_t unknown_records, region_events;
	uint64_t losses_by_kind[32], stacks_by_end[16];
};

static struct all_process_totals sum_process_totals(const struct session *session)
{
	struct all_process_totals totals = {0};

	for (uint32_t i = 0; i < session->process_count; i++) {
		const struct model_process *process = &session->processes[i];
		totals.samples += process->samples;
		totals.cpu_covered_ns += process->cpu_covered_ns;
		totals.handler_ns += process->handler_ns;
		totals.helper_cpu_ns += process->helper_cpu_ns;
		totals.torn_bytes += process->torn_bytes;
		totals.torn_chunks += process->torn_chunks;
		totals.unknown_records += process->unknown_records;
		totals.region_events += process->region_events;
		for (unsigned loss = 0; loss < 32; loss++)
			totals.losses_by_kind[loss] += process->losses[loss];
		for (unsigned end = 0; end < 16; end++)
			totals.stacks_by_end[end] += process->stacks[end];
	}
	return totals;
}

static void write_loss_attributes(struct protobuf_writer *writer,
				  const struct all_process_totals *totals)
{
	char key[64];

	for (unsigned loss = 0; loss < SPOOL_LOSS_COUNT; loss++) {
		if (totals->losses_by_kind[loss] == 0)
			continue;
		snprintf(key, sizeof(key), "kymo.loss.%s", spool_loss_name(loss));
		write_number_attribute(writer, key, totals->losses_by_kind[loss]);
	}
	for (unsigned end = SPOOL_STACK_COMPLETE + 1; end < SPOOL_STACK_END_COUNT; end++) {
		if (totals->stacks_by_end[end] == 0)
			continue;
		snprintf(key, sizeof(key), "kymo.truncated.%s", spool_stack_end_get_name(end));
		write_number_attribute(writer, key, totals->stacks_by_end[end]);
	}
	if (totals->torn_bytes != 0)
		write_number_attribute(writer, "kymo.torn_bytes", totals->torn_bytes);
	if (totals->torn_chunks != 0)
		write_number_attribute(writer, "kymo.torn_chunks", totals->torn_chunks);
	if (totals->unknown_records != 0)
		write_number_attribute(writer, "kymo.unknown_records", totals->unknown_records);
}

static void write_trace_attributes(struct perfetto_trace *trace)
{
	struct protobuf_writer *writer = &trace->writer;
	const struct session *session = trace->session;
	struct all_process_totals totals = sum_process_totals(session);

	perfetto_open_metadata_packet(trace, 0);
	protobuf_open_message(writer, PACKET_FIELD_TRACE_ATTRIBUTES);
	write_string_attribute(writer, "kymo.version", KYMO_VERSION);
	write_string_attribute(writer, "kymo.command_line", session->command_line);
	if (session->process_count != 0) {
		const struct model_process *first = &session->processes[0];
		write_string_attribute(writer, "kymo.cpu_source",
				       spool_cpu_source_get_name(first->cpu_source));
		if (first->cpu_source_reason != NULL)
			write_string_attribute(writer, "kymo.cpu_source_reason",
					       first->cpu_source_reason);
	}
	write_number_attribute(writer, "kymo.processes", session->process_count);
	write_number_attribute(writer, "kymo.threads", session->thread_count);
	write_number_attribute(writer, "kymo.samples", totals.samples);
	write_number_attribute(writer, "kymo.cpu_covered_ns", totals.cpu_covered_ns);
	write_number_attribute(writer, "kymo.handler_ns", totals.handler_ns);
	write_number_attribute(writer, "kymo.helper_cpu_ns", totals.helper_cpu_ns);
	if (totals.region_events != 0)
		write_number_attribute(writer, "kymo.region_events", totals.region_events);
	if (session->unreadable_file_count != 0)
		write_number_attribute(writer, "kymo.unreadable_files",
				       session->unreadable_file_count);
	write_loss_attributes(writer, &totals);
	protobuf_close_message(writer);
	perfetto_close_metadata_packet(trace);
}

/* Readers ignore track events on a sequence that never said where its state begins. */
static void write_metadata_sequence_begin(struct perfetto_trace *trace)
{
	perfetto_open_metadata_packet(trace, 0);
	protobuf_write_uint(&trace->writer, PACKET_FIELD_SEQUENCE_FLAGS,
			    SEQUENCE_FLAG_STATE_CLEARED);
	perfetto_close_metadata_packet(trace);
}

void perfetto_write_preamble(struct perfetto_trace *trace)
{
	write_metadata_sequence_begin(trace);
	write_clock_snapshot(trace, trace->session->start_ns);
	write_trace_uuid(trace);
	write_system_info(trace);
	write_trace_attributes(trace);
}

/* True for losses that mean records are missing, not that something was done otherwise. */
static bool loss_drops_records(enum spool_loss loss)
{
	switch (loss) {
	case SPOOL_LOSS_NO_CHUNK:
	case SPOOL_LOSS_DISK_FULL:
	case SPOOL_LOSS_MEMORY_LIMIT:
	case SPOOL_LOSS_REENTRY:
	case SPOOL_LOSS_NO_THREAD_BLOCK:
	case SPOOL_LOSS_OVERSIZED:
	case SPOOL_LOSS_RING_OVERWRITE:
	case SPOOL_LOSS_REGION_REENTRY:
	case SPOOL_LOSS_REGION_NAMES:
	case SPOOL_LOSS_REGION_EVENTS:
		return true;
	default:
		return false;
	}
}

/* One "buffer" for each reason, so that traced_buf_trace_writer_packet_loss[i] is our counter i. */
void perfetto_write_losses(struct perfetto_trace *trace)
{
	struct protobuf_writer *writer = &trace->writer;
	struct all_process_totals totals = sum_process_totals(trace->session);

	if (trace->too_deep_region_count != 0) {
		perfetto_open_metadata_packet(trace, 0);
		protobuf_open_message(writer, PACKET_FIELD_TRACE_ATTRIBUTES);
		write_number_attribute(writer, "kymo.regions_too_deep",
				       trace->too_deep_region_count);
		protobuf_close_message(writer);
		perfetto_close_metadata_packet(trace);
	}
	write_clock_snapshot(trace, trace->session->end_ns);
	perfetto_open_metadata_packet(trace, trace->session->end_ns);
	protobuf_open_message(writer, PACKET_FIELD_TRACE_STATS);
	for (unsigned loss = 0; loss <= SPOOL_LOSS_REGION_EVENTS; loss++) {
		protobuf_open_message(writer, 1);
		protobuf_write_uint(writer, 19,
				    loss_drops_records(loss) ? totals.losses_by_kind[loss] : 0);
		protobuf_close_message(writer);
	}
	protobuf_close_message(writer);
	perfetto_close_metadata_packet(trace);
}

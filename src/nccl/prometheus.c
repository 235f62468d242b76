/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See prometheus.h. The format is Prometheus' text format 0.0.4: HELP and TYPE once a metric, all
 * samples of a metric together, label values escaped. Values are sums since the start: rates and
 * bandwidths are for the server to make (docs/reference/nccl.md has the queries).
 *
 * `%` keys are not replaced in FILE, but several ranks on a host need a file each: "{pid}" is the
 * process, "{rank}" the rank. Every series carries who its process is (identity.h): node_exporter
 * refuses a series that two files have.
 */
#include "nccl/prometheus.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nccl/communicators.h"
#include "nccl/identity.h"
#include "nccl/log.h"
#include "nccl/names.h"
#include "nccl/options.h"
#include "nccl/totals.h"

/* Labels of every series; set before each file is written. */
static char identity_labels[1024];

/* In the order of enum nccl_loss. */
static const char *const loss_reason_names[NCCL_LOSS_COUNT] = {
	"operation_no_room",
	"event_no_room",
	"communicator_no_room",
	"operation_overwritten",
	"event_overwritten",
	"no_parent",
	"late",
	"foreign_context",
	"foreign_parent",
	"foreign_handle",
	"stale_handle",
	"null_handle",
	"double_stop",
	"unknown_type",
	"unknown_state",
	"no_arguments",
	"names",
	"restarted",
	"finalized",
	"disk_full",
	"limit",
	"call_trace",
	"communicator_overwritten",
};

static void write_escaped_label_value(FILE *out, const char *text)
{
	char escaped[2];

	for (; *text; text++)
		fwrite(escaped, 1, identity_escape_label_character(*text, escaped), out);
}

static void write_communicator_labels(FILE *out,
				      const struct communicator_recording_state *communicator)
{
	const struct nccl_communicator_record *record = communicator->record;

	fprintf(out, "%scommunicator=\"", identity_labels);
	write_escaped_label_value(out, communicators_get_name(communicator));
	fprintf(out, "\",hash=\"%016" PRIx64 "\",creation=\"%" PRIu64 "\",rank=\"%d\",ranks=\"%d\"",
		RELAXED_LOAD(record->hash), record->creation, RELAXED_LOAD(record->rank),
		RELAXED_LOAD(record->ranks));
	if (*record->device_address)
		fprintf(out, ",device=\"%.*s\"", (int)sizeof(record->device_address),
			record->device_address);
}

static void write_metric_name_with_total_labels(FILE *out, const char *metric,
						const struct nccl_total *total, const char *more)
{
	const struct communicator_recording_state *communicator =
		communicators_get_by_creation_number(total->communicator);

	fprintf(out, "%s{", metric);
	write_communicator_labels(out, communicator);
	fputs(",function=\"", out);
	write_escaped_label_value(out, names_get_by_number(total->function));
	fprintf(out, "\",size_below=\"%" PRIu64 "\"%s} ",
		total->size_class < 64 ? (uint64_t)1 << total->size_class : UINT64_MAX, more);
}

static void write_metric_help_and_type(FILE *out, const char *metric, const char *type,
				       const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", metric, help, metric, type);
}

/* A counter that is a member of struct nccl_total, in units of `scale`. */
static void write_counter_metric_of_all_totals(FILE *out, const char *metric, const char *help,
					       size_t member, double scale)
{
	const struct nccl_total *total;

	write_metric_help_and_type(out, metric, "counter", help);
	for (uint32_t i = 0; (total = totals_get_by_number(i)); i++) {
		uint64_t value = *(const uint64_t *)((const char *)total + member);

		if (!communicators_get_by_creation_number(total->communicator))
			continue;
		write_metric_name_with_total_labels(out, metric, total, "");
		fprintf(out, "%.17g\n", (double)value * scale);
	}
}

static void write_gpu_duration_histogram(FILE *out)
{
	static const char metric[] = "kymo_nccl_gpu_seconds";
	const struct nccl_total *total;

	write_metric_help_and_type(
		out, metric, "histogram",
		"Time between first start and last end of an operation's kernel channels.");
	for (uint32_t i = 0; (total = totals_get_by_number(i)); i++) {
		uint64_t sum = 0;
		char more[64];

		if (!communicators_get_by_creation_number(total->communicator))
			continue;
		for (unsigned j = 0; j < 16; j++) {
			sum += total->buckets[j];
			snprintf(more, sizeof(more), ",le=\"%.9g\"", (double)(4000ull << j) * 1e-9);
			if (j == 15)
				strcpy(more, ",le=\"+Inf\"");
			write_metric_name_with_total_labels(out, "kymo_nccl_gpu_seconds_bucket",
							    total, more);
			fprintf(out, "%" PRIu64 "\n", sum);
		}
		write_metric_name_with_total_labels(out, "kymo_nccl_gpu_seconds_sum", total, "");
		fprintf(out, "%.9g\n", (double)total->gpu_ns * 1e-9);
		write_metric_name_with_total_labels(out, "kymo_nccl_gpu_seconds_count", total, "");
		fprintf(out, "%" PRIu64 "\n", sum);
	}
}

static void write_communicator_metrics(FILE *out, bool is_last)
{
	uint32_t count = communicators_get_count();

	write_metric_help_and_type(out, "kymo_nccl_operations_started_total", "counter",
				   "Operations that NCCL began to put into a stream.");
	for (uint32_t i = 1; i <= count; i++) {
		const struct communicator_recording_state *communicator =
			communicators_get_by_creation_number(i);

		if (!communicator)
			continue;
		fputs("kymo_nccl_operations_started_total{", out);
		write_communicator_labels(out, communicator);
		fprintf(out, "} %" PRIu64 "\n", RELAXED_LOAD(communicator->record->operations));
	}
	write_metric_help_and_type(
		out, "kymo_nccl_operations_in_flight", "gauge",
		"Operations that are not known to be over; 0 when the process has "
		"ended.");
	for (uint32_t i = 1; i <= count; i++) {
		const struct communicator_recording_state *communicator =
			communicators_get_by_creation_number(i);
		uint64_t started, gone;

		if (!communicator)
			continue;
		started = RELAXED_LOAD(communicator->record->operations);
		gone = communicator->finished_count +
		       RELAXED_LOAD(communicator->record->dropped_operations);
		fputs("kymo_nccl_operations_in_flight{", out);
		write_communicator_labels(out, communicator);
		fprintf(out, "} %" PRIu64 "\n", !is_last && started > gone ? started - gone : 0);
	}
}

static void write_process_metrics(FILE *out, bool is_last)
{
	write_metric_help_and_type(
		out, "kymo_nccl_not_recorded_total", "counter",
		"What is missing in the records or was not as it should be, by reason.");
	for (unsigned i = 0; i < NCCL_LOSS_COUNT && loss_reason_names[i]; i++)
		fprintf(out, "kymo_nccl_not_recorded_total{%sreason=\"%s\"} %" PRIu64 "\n",
			identity_labels, loss_reason_names[i],
			RELAXED_LOAD(store.header->losses[i]));
	write_metric_help_and_type(out, "kymo_nccl_stalled_operations", "gauge",
				   "Operations that make no progress for longer than NCCL_STALL.");
	fprintf(out, "kymo_nccl_stalled_operations{%.*s} %" PRIu64 "\n",
		(int)strlen(identity_labels) - 1, identity_labels,
		is_last ? 0 : RELAXED_LOAD(store.header->stalled));
}

static void write_all_metrics(FILE *out, bool is_last)
{
	identity_format_labels(identity_labels, sizeof(identity_labels));
	write_counter_metric_of_all_totals(out, "kymo_nccl_operations_total",
					   "Operations that are over.",
					   offsetof(struct nccl_total, operations), 1);
	write_counter_metric_of_all_totals(out, "kymo_nccl_bytes_total",
					   "Bytes of operations that are over.",
					   offsetof(struct nccl_total, bytes), 1);
	write_counter_metric_of_all_totals(out, "kymo_nccl_timed_bytes_total",
					   "Bytes of the operations in kymo_nccl_gpu_seconds.",
					   offsetof(struct nccl_total, timed_bytes), 1);
	write_counter_metric_of_all_totals(
		out, "kymo_nccl_network_seconds_total",
		"Time that network operations were under way for an operation.",
		offsetof(struct nccl_total, network_ns), 1e-9);
	write_counter_metric_of_all_totals(
		out, "kymo_nccl_incomplete_total",
		"Operations in flight when their communicator was finalized.",
		offsetof(struct nccl_total, incomplete), 1);
	write_counter_metric_of_all_totals(
		out, "kymo_nccl_batched_total",
		"Operations that share their GPU times with others, without a duration.",
		offsetof(struct nccl_total, batched), 1);
	write_gpu_duration_histogram(out);
	write_communicator_metrics(out, is_last);
	write_process_metrics(out, is_last);
}

/* {pid} and {rank} of the path. */
static bool expand_metrics_path(char *path, size_t size)
{
	size_t length = 0;
	int rank = RELAXED_LOAD(store.header->world_rank);

	for (const char *at = options.prometheus_path; *at; at++) {
		bool is_pid = !strncmp(at, "{pid}", 5), is_rank = !strncmp(at, "{rank}", 6);

		if (length + 24 > size)
			return false;
		if (is_pid || is_rank)
			length += (size_t)snprintf(path + length, size - length, "%ld",
						   is_pid ? (long)getpid() : (long)rank);
		else
			path[length++] = *at;
		at += is_pid ? 4 : is_rank ? 5 : 0;
	}
	path[length] = 0;
	return true;
}

static int write_metrics_file(bool is_last)
{
	char path[PATH_MAX], temporary[PATH_MAX + 32];
	struct stat status;
	FILE *out;
	int error = 0;

	if (!expand_metrics_path(path, sizeof(path)))
		return -ENAMETOOLONG;
	if (!stat(path, &status) && !S_ISREG(status.st_mode))
		return -EINVAL; /* renaming would replace /dev/null or /dev/stdout, as root */
	snprintf(temporary, sizeof(temporary), "%s.%ld.tmp", path, (long)getpid());
	unlink(temporary); /* of a process that was killed; no link of another user is followed */
	out = fopen(temporary, "wxe");
	if (!out)
		return -errno;
	write_all_metrics(out, is_last);
	if (ferror(out))
		error = EIO;
	if (fclose(out))
		error = errno;
	if (!error && rename(temporary, path))
		error = errno;
	if (error)
		unlink(temporary);
	return -error;
}

void prometheus_write_if_due(uint64_t now_ns, bool last)
{
	static uint64_t due_ns;
	static bool reported;
	int result;

	if (!*options.prometheus_path || (now_ns < due_ns && !last))
		return;
	due_ns = now_ns + options.prometheus_period_ns;
	result = write_metrics_file(last);
	if (result && !reported)
		log_report_on_stderr("KYMO_NCCL_PROMETHEUS: '%.200s' cannot be written: %s",
				     options.prometheus_path, strerror(-result));
	reported = result != 0;
}

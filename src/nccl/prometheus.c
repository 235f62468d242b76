/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See prometheus.h. The format is Prometheus' text format 0.0.4: HELP and TYPE once a metric, all
 * samples of a metric together, label values escaped. Values are sums since the start: rates and
 * bandwidths are for the server to make (docs/nccl.md has the queries).
 *
 * `%` keys are not replaced in FILE, but several ranks on a host need a file each: "{pid}" is the
 * process, "{rank}" the rank.
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
#include "nccl/log.h"
#include "nccl/names.h"
#include "nccl/options.h"
#include "nccl/totals.h"

/* In the order of enum nccl_loss. */
static const char *const losses[NCCL_LOSS_COUNT] = {
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
};

/* Backslash, quote and newline are escaped; other control characters and bytes that are no ASCII,
 * which need not be UTF-8, become question marks. */
static void put_value(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\\' || *text == '"')
			fprintf(out, "\\%c", *text);
		else if (*text == '\n')
			fputs("\\n", out);
		else
			fputc((unsigned char)*text < ' ' || (unsigned char)*text >= 0x7f ? '?'
											 : *text,
			      out);
	}
}

static void put_communicator(FILE *out, const struct communicator *communicator)
{
	const struct nccl_communicator *record = communicator->record;

	fputs("communicator=\"", out);
	put_value(out, communicators_name(communicator));
	fprintf(out, "\",hash=\"%016" PRIx64 "\",creation=\"%" PRIu64 "\",rank=\"%d\",ranks=\"%d\"",
		GET(record->hash), record->creation, GET(record->rank), GET(record->ranks));
}

static void put_total(FILE *out, const char *metric, const struct nccl_total *total,
		      const char *more)
{
	const struct communicator *communicator = communicators_get(total->communicator);

	fprintf(out, "%s{", metric);
	put_communicator(out, communicator);
	fputs(",function=\"", out);
	put_value(out, names_get(total->function));
	fprintf(out, "\",size_below=\"%" PRIu64 "\"%s} ",
		total->size_class < 64 ? (uint64_t)1 << total->size_class : UINT64_MAX, more);
}

static void put_head(FILE *out, const char *metric, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", metric, help, metric, type);
}

/* A counter that is a member of struct nccl_total, in units of `scale`. */
static void put_counter(FILE *out, const char *metric, const char *help, size_t member,
			double scale)
{
	const struct nccl_total *total;

	put_head(out, metric, "counter", help);
	for (uint32_t i = 0; (total = totals_get(i)); i++) {
		uint64_t value = *(const uint64_t *)((const char *)total + member);

		put_total(out, metric, total, "");
		fprintf(out, "%.17g\n", (double)value * scale);
	}
}

static void put_histogram(FILE *out)
{
	static const char metric[] = "kymo_nccl_gpu_seconds";
	const struct nccl_total *total;

	put_head(out, metric, "histogram",
		 "Time between first start and last end of an operation's kernel channels.");
	for (uint32_t i = 0; (total = totals_get(i)); i++) {
		uint64_t sum = 0;
		char more[64];

		for (unsigned j = 0; j < 16; j++) {
			sum += total->buckets[j];
			snprintf(more, sizeof(more), ",le=\"%.9g\"", (double)(4000ull << j) * 1e-9);
			if (j == 15)
				strcpy(more, ",le=\"+Inf\"");
			put_total(out, "kymo_nccl_gpu_seconds_bucket", total, more);
			fprintf(out, "%" PRIu64 "\n", sum);
		}
		put_total(out, "kymo_nccl_gpu_seconds_sum", total, "");
		fprintf(out, "%.9g\n", (double)total->gpu_ns * 1e-9);
		put_total(out, "kymo_nccl_gpu_seconds_count", total, "");
		fprintf(out, "%" PRIu64 "\n", sum);
	}
}

static void put_communicators(FILE *out)
{
	uint32_t count = communicators_count();

	put_head(out, "kymo_nccl_operations_started_total", "counter",
		 "Operations that NCCL began to put into a stream.");
	for (uint32_t i = 1; i <= count; i++) {
		fputs("kymo_nccl_operations_started_total{", out);
		put_communicator(out, communicators_get(i));
		fprintf(out, "} %" PRIu64 "\n", GET(communicators_get(i)->record->operations));
	}
	put_head(out, "kymo_nccl_operations_in_flight", "gauge",
		 "Operations that are not known to be over.");
	for (uint32_t i = 1; i <= count; i++) {
		const struct communicator *communicator = communicators_get(i);
		uint64_t started = GET(communicator->record->operations);
		uint64_t gone =
			communicator->finished + GET(communicator->record->dropped_operations);

		fputs("kymo_nccl_operations_in_flight{", out);
		put_communicator(out, communicator);
		fprintf(out, "} %" PRIu64 "\n", started > gone ? started - gone : 0);
	}
}

static void put_process(FILE *out)
{
	put_head(out, "kymo_nccl_not_recorded_total", "counter",
		 "What is missing in the records or was not as it should be, by reason.");
	for (unsigned i = 0; i < NCCL_LOSS_COUNT && losses[i]; i++)
		fprintf(out,
			"kymo_nccl_not_recorded_total{reason=\"%s\",pid=\"%ld\"} %" PRIu64 "\n",
			losses[i], (long)getpid(), GET(store.header->losses[i]));
	put_head(out, "kymo_nccl_stalled_operations", "gauge",
		 "Operations that make no progress for longer than NCCL_STALL.");
	fprintf(out, "kymo_nccl_stalled_operations{pid=\"%ld\"} %" PRIu64 "\n", (long)getpid(),
		GET(store.header->stalled));
}

static void put_all(FILE *out)
{
	put_counter(out, "kymo_nccl_operations_total", "Operations that are over.",
		    offsetof(struct nccl_total, operations), 1);
	put_counter(out, "kymo_nccl_bytes_total", "Bytes of operations that are over.",
		    offsetof(struct nccl_total, bytes), 1);
	put_counter(out, "kymo_nccl_timed_bytes_total",
		    "Bytes of the operations in kymo_nccl_gpu_seconds.",
		    offsetof(struct nccl_total, timed_bytes), 1);
	put_counter(out, "kymo_nccl_network_seconds_total",
		    "Time that network operations were under way for an operation.",
		    offsetof(struct nccl_total, network_ns), 1e-9);
	put_counter(out, "kymo_nccl_incomplete_total",
		    "Operations in flight when their communicator was finalized.",
		    offsetof(struct nccl_total, incomplete), 1);
	put_counter(out, "kymo_nccl_batched_total",
		    "Operations that share their GPU times with others, without a duration.",
		    offsetof(struct nccl_total, batched), 1);
	put_histogram(out);
	put_communicators(out);
	put_process(out);
}

/* {pid} and {rank} of the path. */
static bool expand(char *path, size_t size)
{
	size_t length = 0;
	int rank = GET(store.header->world_rank);

	for (const char *at = options.prometheus; *at; at++) {
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

static int write_file(void)
{
	char path[PATH_MAX], temporary[PATH_MAX + 32];
	struct stat status;
	FILE *out;
	int error = 0;

	if (!expand(path, sizeof(path)))
		return -ENAMETOOLONG;
	if (!stat(path, &status) && !S_ISREG(status.st_mode))
		return -EINVAL; /* renaming would replace /dev/null or /dev/stdout, as root */
	snprintf(temporary, sizeof(temporary), "%s.%ld.tmp", path, (long)getpid());
	out = fopen(temporary, "we");
	if (!out)
		return -errno;
	put_all(out);
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

void prometheus_round(uint64_t now_ns, bool last)
{
	static uint64_t due_ns;
	static bool told;
	int result;

	if (!*options.prometheus || (now_ns < due_ns && !last))
		return;
	due_ns = now_ns + options.prometheus_period_ns;
	result = write_file();
	if (result && !told)
		log_report("KYMO_NCCL_PROMETHEUS: '%.200s' cannot be written: %s",
			   options.prometheus, strerror(-result));
	told = result != 0;
}

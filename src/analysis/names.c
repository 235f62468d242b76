/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Names of the spool's enumerations, as they stand in JSON keys, traces and text. One table each,
 * so that all outputs say the same.
 */
#include "analysis/session.h"
#include "common/array.h"
#include "common/sampling_sources.h"

static const char *find_name_by_index(const char *const *names, size_t count, uint64_t index,
				      const char *otherwise)
{
	return index < count && names[index] ? names[index] : otherwise;
}

const char *spool_loss_name(enum spool_loss loss)
{
	static const char *const names[] = {
		[SPOOL_LOSS_NO_CHUNK] = "no_chunk",
		[SPOOL_LOSS_DISK_FULL] = "disk_full",
		[SPOOL_LOSS_MEMORY_LIMIT] = "memory_limit",
		[SPOOL_LOSS_REENTRY] = "reentry",
		[SPOOL_LOSS_NO_THREAD_BLOCK] = "no_thread_block",
		[SPOOL_LOSS_UNARMED_THREAD] = "unarmed_thread",
		[SPOOL_LOSS_MODULE_TABLE] = "module_table",
		[SPOOL_LOSS_STALE_MODULES] = "stale_modules",
		[SPOOL_LOSS_OVERSIZED] = "oversized",
		[SPOOL_LOSS_SIGNAL_BLOCKED] = "signal_blocked",
		[SPOOL_LOSS_SECCOMP] = "seccomp",
		[SPOOL_LOSS_THROTTLED] = "throttled",
		[SPOOL_LOSS_RING_OVERWRITE] = "ring_overwrite",
		[SPOOL_LOSS_REGION_REENTRY] = "region_reentry",
		[SPOOL_LOSS_REGION_DEPTH] = "region_depth",
		[SPOOL_LOSS_REGION_NAMES] = "region_names",
		[SPOOL_LOSS_REGION_EVENTS] = "region_events",
		[SPOOL_LOSS_PROFILE_NODES] = "profile_nodes",
		[SPOOL_LOSS_REGION_THROTTLED] = "region_throttled",
		[SPOOL_LOSS_REGION_UNBALANCED] = "region_unbalanced",
		[SPOOL_LOSS_WRAPPER] = "wrapper",
		[SPOOL_LOSS_CALL_EVENTS] = "call_events",
		[SPOOL_LOSS_CALL_DEPTH] = "call_depth",
		[SPOOL_LOSS_CALL_REENTRY] = "call_reentry",
		[SPOOL_LOSS_CALL_UNWOUND] = "call_unwound",
		[SPOOL_LOSS_INSTRUMENT] = "instrument",
		[SPOOL_LOSS_INTERPRETED_FRAMES] = "interpreted_frames",
		[SPOOL_LOSS_INTERPRETED_CODE] = "interpreted_code",
		[SPOOL_LOSS_INTERPRETERS] = "interpreters",
		[SPOOL_LOSS_PERF_RING] = "perf_ring",
		[SPOOL_LOSS_MPI_REQUESTS] = "mpi_requests",
	};
	return find_name_by_index(names, ARRAY_SIZE(names), loss, "unknown_loss");
}

const char *spool_stack_end_get_name(enum spool_stack_end end)
{
	static const char *const names[] = {
		[SPOOL_STACK_COMPLETE] = "complete",       [SPOOL_STACK_NO_TABLE] = "no_table",
		[SPOOL_STACK_BAD_READ] = "bad_read",       [SPOOL_STACK_BAD_CFA] = "bad_cfa",
		[SPOOL_STACK_UNSUPPORTED] = "unsupported", [SPOOL_STACK_DEPTH] = "depth",
		[SPOOL_STACK_BAD_PC] = "bad_pc",           [SPOOL_STACK_NOT_WALKED] = "not_walked",
	};
	return find_name_by_index(names, ARRAY_SIZE(names), end, "unknown_end");
}

const char *spool_stack_end_get_text(enum spool_stack_end end)
{
	static const char *const texts[] = {
		[SPOOL_STACK_COMPLETE] = "complete stack",
		[SPOOL_STACK_NO_TABLE] = "stack cut: no unwind information",
		[SPOOL_STACK_BAD_READ] = "stack cut: unreadable memory",
		[SPOOL_STACK_BAD_CFA] = "stack cut: wrong unwind information",
		[SPOOL_STACK_UNSUPPORTED] = "stack cut: unknown unwind rule",
		[SPOOL_STACK_DEPTH] = "stack cut: SAMPLING_MAX_DEPTH reached",
		[SPOOL_STACK_BAD_PC] = "stack cut: return address outside code",
		[SPOOL_STACK_NOT_WALKED] = "no stack: nothing to walk",
	};
	return find_name_by_index(texts, sizeof(texts) / sizeof(*texts), end,
				  "stack cut: unknown reason");
}

const char *spool_no_stack_get_reason_text(enum spool_no_stack reason)
{
	static const char *const texts[] = {
		[SPOOL_NO_STACK_BRIEF] = "waits too short to be seen",
		[SPOOL_NO_STACK_ENDED] = "the thread ended",
		[SPOOL_NO_STACK_UNSAMPLED] = "no CPU sample near it",
		[SPOOL_NO_STACK_KERNEL] = "the kernel started or ended the process",
	};
	return find_name_by_index(texts, sizeof(texts) / sizeof(*texts), reason, "unknown reason");
}

const char *spool_cpu_source_get_name(enum spool_cpu_source source)
{
#define SOURCE_NAME_ENTRY(identifier, number, text) [SPOOL_CPU_SOURCE_##number] = #identifier,
	static const char *const names[] = {[SPOOL_CPU_SOURCE_NONE] = "none",
					    SAMPLING_SOURCE_LIST_WITH_OUTSIDE(SOURCE_NAME_ENTRY)};
#undef SOURCE_NAME_ENTRY

	return find_name_by_index(names, ARRAY_SIZE(names), source, "unknown_source");
}

const char *spool_notice_get_name(enum spool_notice notice)
{
	static const char *const names[] = {
		[SPOOL_NOTICE_SOURCE] = "source",
		[SPOOL_NOTICE_FALLBACK] = "fallback",
		[SPOOL_NOTICE_THROTTLE] = "throttle",
		[SPOOL_NOTICE_WINDOW] = "window",
		[SPOOL_NOTICE_DISABLED] = "disabled",
		[SPOOL_NOTICE_EXEC] = "exec",
		[SPOOL_NOTICE_LOW_COVERAGE] = "low_coverage",
		[SPOOL_NOTICE_CONFLICT] = "conflict",
		[SPOOL_NOTICE_NOT_FOLLOWED] = "not_followed",
		[SPOOL_NOTICE_SOURCE_CHANGED] = "source_changed",
		[SPOOL_NOTICE_SWITCH_COST] = "switch_cost",
	};
	return find_name_by_index(names, ARRAY_SIZE(names), notice, "unknown_notice");
}

const char *spool_process_metric_get_name(uint32_t metric, const char **unit)
{
	static const struct {
		const char *name, *unit;
	} metrics[] = {
		[SPOOL_PROCESS_RSS_BYTES] = {"rss", "bytes"},
		[SPOOL_PROCESS_VIRTUAL_BYTES] = {"virtual_memory", "bytes"},
		[SPOOL_PROCESS_PEAK_RSS_BYTES] = {"peak_rss", "bytes"},
		[SPOOL_PROCESS_MINOR_FAULTS] = {"minor_faults", "count"},
		[SPOOL_PROCESS_MAJOR_FAULTS] = {"major_faults", "count"},
		[SPOOL_PROCESS_VOLUNTARY_SWITCHES] = {"voluntary_switches", "count"},
		[SPOOL_PROCESS_INVOLUNTARY_SWITCHES] = {"involuntary_switches", "count"},
		[SPOOL_PROCESS_USER_NS] = {"user_time", "ns"},
		[SPOOL_PROCESS_SYSTEM_NS] = {"system_time", "ns"},
		[SPOOL_PROCESS_THREADS] = {"threads", "count"},
		[SPOOL_PROCESS_READ_BYTES] = {"storage_read", "bytes"},
		[SPOOL_PROCESS_WRITTEN_BYTES] = {"storage_written", "bytes"},
		[SPOOL_PROCESS_READ_CHARS] = {"read", "bytes"},
		[SPOOL_PROCESS_WRITTEN_CHARS] = {"written", "bytes"},
		[SPOOL_HOST_CPU_BUSY_NS] = {"host_cpu_busy", "ns"},
		[SPOOL_HOST_CPU_TOTAL_NS] = {"host_cpu_total", "ns"},
		[SPOOL_CGROUP_CPU_LIMIT] = {"cgroup_cpu_limit", "thousandths"},
		[SPOOL_CGROUP_PERIODS] = {"cgroup_periods", "count"},
		[SPOOL_CGROUP_THROTTLED_PERIODS] = {"cgroup_throttled_periods", "count"},
		[SPOOL_CGROUP_THROTTLED_NS] = {"cgroup_throttled", "ns"},
	};
	const char *name = NULL, *its_unit = "count";

	if (metric >= SPOOL_HOST_CPU_FREQUENCY_KHZ) {
		name = "cpu_frequency";
		its_unit = "kHz";
	} else if (metric < ARRAY_SIZE(metrics) && metrics[metric].name) {
		name = metrics[metric].name;
		its_unit = metrics[metric].unit;
	}
	if (unit)
		*unit = its_unit;
	return name ? name : "unknown_metric";
}

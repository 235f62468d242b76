/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See options.h.
 *
 * The default events are the cheapest that give operations their real durations: kernel channels
 * from API version 5 on. With versions 3 and 4 (NCCL 2.26, 2.27) these can break a job (its proxy
 * connection has room for 64 of them at a time, NVIDIA/nccl#2039), and must be asked for; there,
 * and before, durations are those of the network.
 */
#include "nccl/options.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/settings_value.h"
#include "kymo/nccl_records.h"
#include "nccl/log.h"
#include "nccl/store.h"

#define EVENT_KIND_TO_MASK(kind) NCCL_KIND_MASK(NCCL_KIND_##kind)

struct plugin_options options;

static const struct {
	const char *name;
	uint32_t events;
} event_masks_by_name[] = {
	{"group", EVENT_KIND_TO_MASK(GROUP)},
	{"coll", EVENT_KIND_TO_MASK(COLLECTIVE)},
	{"collective", EVENT_KIND_TO_MASK(COLLECTIVE)},
	{"p2p", EVENT_KIND_TO_MASK(P2P)},
	{"proxy-op", EVENT_KIND_TO_MASK(PROXY_OP)},
	{"proxy-step", EVENT_KIND_TO_MASK(PROXY_STEP)},
	{"proxy-ctrl", EVENT_KIND_TO_MASK(PROXY_CONTROL)},
	{"proxy", EVENT_KIND_TO_MASK(PROXY_OP) | EVENT_KIND_TO_MASK(PROXY_STEP) |
			  EVENT_KIND_TO_MASK(PROXY_CONTROL)},
	{"kernel-channel", EVENT_KIND_TO_MASK(KERNEL_CHANNEL)},
	{"kernel-ch", EVENT_KIND_TO_MASK(KERNEL_CHANNEL)},
	{"net-plugin", EVENT_KIND_TO_MASK(NET_PLUGIN)},
	{"group-api", EVENT_KIND_TO_MASK(GROUP_API)},
	{"coll-api", EVENT_KIND_TO_MASK(COLLECTIVE_API)},
	{"p2p-api", EVENT_KIND_TO_MASK(P2P_API)},
	{"api", EVENT_KIND_TO_MASK(GROUP_API) | EVENT_KIND_TO_MASK(COLLECTIVE_API) |
			EVENT_KIND_TO_MASK(P2P_API)},
	{"kernel-launch", EVENT_KIND_TO_MASK(KERNEL_LAUNCH)},
	{"ce-coll", EVENT_KIND_TO_MASK(CE_COLLECTIVE)},
	{"ce-sync", EVENT_KIND_TO_MASK(CE_SYNC)},
	{"ce-batch", EVENT_KIND_TO_MASK(CE_BATCH)},
	{"ce", EVENT_KIND_TO_MASK(CE_COLLECTIVE) | EVENT_KIND_TO_MASK(CE_SYNC) |
		       EVENT_KIND_TO_MASK(CE_BATCH)},
	{"kernel-phase", EVENT_KIND_TO_MASK(KERNEL_PHASE)},
	{"light", EVENT_KIND_TO_MASK(COLLECTIVE) | EVENT_KIND_TO_MASK(P2P) |
			  EVENT_KIND_TO_MASK(PROXY_OP) | EVENT_KIND_TO_MASK(GROUP_API) |
			  EVENT_KIND_TO_MASK(COLLECTIVE_API) | EVENT_KIND_TO_MASK(P2P_API) |
			  EVENT_KIND_TO_MASK(KERNEL_LAUNCH) | EVENT_KIND_TO_MASK(CE_COLLECTIVE)},
	{"all", 0xffff},
	{"none", 0},
};

#define EVENT_NAMES_TEXT                                                                           \
	"default, light, all, none, group, coll, p2p, proxy-op, proxy-step, proxy-ctrl, "          \
	"kernel-channel, "                                                                         \
	"net-plugin, group-api, coll-api, p2p-api, kernel-launch, ce-coll, ce-sync, ce-batch, "    \
	"kernel-phase"

/* All events that a version of NCCL's interface has. */
static const uint32_t event_mask_table_by_api_version[] = {
	[1] = 0x3f, [2] = 0x3f, [3] = 0xff, [4] = 0xff, [5] = 0xfff, [6] = 0x7fff, [7] = 0xffff,
};
_Static_assert(ARRAY_SIZE(event_mask_table_by_api_version) == NCCL_API_LATEST_VERSION + 1,
	       "a version without its events");

static uint32_t get_default_event_mask(unsigned api)
{
	uint32_t mask = EVENT_KIND_TO_MASK(COLLECTIVE) | EVENT_KIND_TO_MASK(P2P) |
			EVENT_KIND_TO_MASK(PROXY_OP);

	if (api >= 5)
		mask |= EVENT_KIND_TO_MASK(GROUP_API) | EVENT_KIND_TO_MASK(COLLECTIVE_API) |
			EVENT_KIND_TO_MASK(P2P_API) | EVENT_KIND_TO_MASK(KERNEL_LAUNCH) |
			EVENT_KIND_TO_MASK(KERNEL_CHANNEL);
	if (api >= 6)
		mask |= EVENT_KIND_TO_MASK(CE_COLLECTIVE);
	return mask;
}

/* "default" stands for a bit of its own until the version is known. */
#define DEFAULT_EVENTS_BIT (1u << 31)

static void set_events_option_from_text(const char *text)
{
	struct text_slice rest = setting_slice_from_text(text), word;

	options.event_mask = 0;
	while (setting_next_list_word(&rest, &word)) {
		size_t i = 0, count = ARRAY_SIZE(event_masks_by_name);

		while (i < count && !setting_slice_equals_word(word, event_masks_by_name[i].name))
			i++;
		if (i < count) {
			options.event_mask |= event_masks_by_name[i].events;
			options.has_events_option = true;
		} else if (setting_slice_equals_word(word, "default")) {
			options.event_mask |= DEFAULT_EVENTS_BIT;
			options.has_events_option = true;
		} else {
			log_problem_to_nccl_and_stderr(
				"KYMO_NCCL_EVENTS: '%.*s' is not an event; the events "
				"are: " EVENT_NAMES_TEXT,
				(int)(word.length < 64 ? word.length : 64), word.text);
		}
	}
}

static const char *get_environment_or_empty(const char *name)
{
	const char *value = secure_getenv(name);

	return value ? value : "";
}

static void read_duration_option_from_environment(const char *name, uint64_t *ret)
{
	const char *text = get_environment_or_empty(name);
	int64_t value;

	if (!*text)
		return;
	if (setting_parse_duration(setting_slice_from_text(text), &value) || value < 0)
		log_problem_to_nccl_and_stderr(
			"%s: '%.64s' is not a duration (seconds, or a number with ns, us, ms, "
			"s, m or h) and is ignored",
			name, text);
	else
		*ret = (uint64_t)value;
}

static void set_size_option_from_environment(void)
{
	const char *text = get_environment_or_empty("KYMO_NCCL_SIZE");

	options.file_limit_bytes = 256ull << 20;
	if (*text && setting_parse_size(setting_slice_from_text(text), &options.file_limit_bytes))
		log_problem_to_nccl_and_stderr(
			"KYMO_NCCL_SIZE: '%.64s' is not a size (bytes, or a number with K, M "
			"or G) and is ignored",
			text);
	options.is_file_limit_adjusted = options.file_limit_bytes < STORE_FILE_LIMIT_BYTES_LEAST ||
					 options.file_limit_bytes > STORE_FILE_LIMIT_BYTES_MAX;
	if (!options.is_file_limit_adjusted)
		return;
	options.file_limit_bytes = options.file_limit_bytes < STORE_FILE_LIMIT_BYTES_LEAST
					   ? STORE_FILE_LIMIT_BYTES_LEAST
					   : STORE_FILE_LIMIT_BYTES_MAX;
	log_problem_to_nccl_and_stderr(
		"KYMO_NCCL_SIZE: '%.64s' is not from 4M to 16G; using %s", text,
		options.file_limit_bytes == STORE_FILE_LIMIT_BYTES_LEAST ? "4M" : "16G");
}

static void set_when_full_option_from_environment(void)
{
	const char *text = get_environment_or_empty("KYMO_NCCL_FULL");

	options.ring = true;
	if (setting_slice_equals_word(setting_slice_from_text(text), "stop"))
		options.ring = false;
	else if (*text && !setting_slice_equals_word(setting_slice_from_text(text), "ring"))
		log_problem_to_nccl_and_stderr(
			"KYMO_NCCL_FULL: '%.64s' is neither ring nor stop; using ring", text);
}

static void set_gpu_clock_option_from_environment(void)
{
	const char *text = get_environment_or_empty("KYMO_NCCL_GPU_CLOCK_HZ");
	int64_t value;

	options.gpu_clock_hz = 100000000; /* AMD's constant-rate clock */
	if (!*text)
		return;
	if (setting_parse_integer(setting_slice_from_text(text), &value) || value <= 0)
		log_problem_to_nccl_and_stderr(
			"KYMO_NCCL_GPU_CLOCK_HZ: '%.64s' is not a rate and is ignored", text);
	else
		options.gpu_clock_hz = (uint64_t)value;
}

static void set_cuda_graphs_option_from_environment(void)
{
	const char *text = get_environment_or_empty("KYMO_NCCL_GRAPHS");

	options.stops_kernel_channels_at_capture =
		setting_slice_equals_word(setting_slice_from_text(text), "fast");
	if (*text && !options.stops_kernel_channels_at_capture &&
	    !setting_slice_equals_word(setting_slice_from_text(text), "timed"))
		log_problem_to_nccl_and_stderr(
			"KYMO_NCCL_GRAPHS: '%.64s' is neither timed nor fast; using timed", text);
}

void options_read_environment(void)
{
	memset(&options, 0, sizeof(options));
	options.is_enabled = true;
	(void)setting_parse_bool(setting_slice_from_text(get_environment_or_empty("KYMO_ENABLED")),
				 &options.is_enabled);
	options.prometheus_period_ns = 15000000000u;
	options.prometheus_path = get_environment_or_empty("KYMO_NCCL_PROMETHEUS");
	options.call_trace_path = get_environment_or_empty("KYMO_NCCL_CALL_TRACE");
	options.spool = get_environment_or_empty("KYMO_SPOOL_DIRECTORY");
	set_events_option_from_text(get_environment_or_empty("KYMO_NCCL_EVENTS"));
	read_duration_option_from_environment("KYMO_NCCL_STALL", &options.stall_limit_ns);
	read_duration_option_from_environment("KYMO_NCCL_PROMETHEUS_PERIOD",
					      &options.prometheus_period_ns);
	if (options.prometheus_period_ns < 100000000)
		options.prometheus_period_ns = 100000000;
	set_size_option_from_environment();
	set_when_full_option_from_environment();
	set_gpu_clock_option_from_environment();
	set_cuda_graphs_option_from_environment();
}

uint32_t options_get_event_mask(unsigned api)
{
	uint32_t mask = options.has_events_option ? options.event_mask : DEFAULT_EVENTS_BIT;

	if (mask & DEFAULT_EVENTS_BIT)
		mask |= get_default_event_mask(api);
	return mask & event_mask_table_by_api_version[api];
}

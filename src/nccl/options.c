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

#include "common/settings_value.h"
#include "kymo/nccl_records.h"
#include "nccl/log.h"
#include "nccl/store.h"

#define BIT(kind) NCCL_KIND_MASK(NCCL_KIND_##kind)

struct options options;

static const struct {
	const char *name;
	uint32_t events;
} event_names[] = {
	{"group", BIT(GROUP)},
	{"coll", BIT(COLLECTIVE)},
	{"collective", BIT(COLLECTIVE)},
	{"p2p", BIT(P2P)},
	{"proxy-op", BIT(PROXY_OP)},
	{"proxy-step", BIT(PROXY_STEP)},
	{"proxy-ctrl", BIT(PROXY_CONTROL)},
	{"proxy", BIT(PROXY_OP) | BIT(PROXY_STEP) | BIT(PROXY_CONTROL)},
	{"kernel-channel", BIT(KERNEL_CHANNEL)},
	{"kernel-ch", BIT(KERNEL_CHANNEL)},
	{"net-plugin", BIT(NET_PLUGIN)},
	{"group-api", BIT(GROUP_API)},
	{"coll-api", BIT(COLLECTIVE_API)},
	{"p2p-api", BIT(P2P_API)},
	{"api", BIT(GROUP_API) | BIT(COLLECTIVE_API) | BIT(P2P_API)},
	{"kernel-launch", BIT(KERNEL_LAUNCH)},
	{"ce-coll", BIT(CE_COLLECTIVE)},
	{"ce-sync", BIT(CE_SYNC)},
	{"ce-batch", BIT(CE_BATCH)},
	{"ce", BIT(CE_COLLECTIVE) | BIT(CE_SYNC) | BIT(CE_BATCH)},
	{"kernel-phase", BIT(KERNEL_PHASE)},
	{"light", BIT(COLLECTIVE) | BIT(P2P) | BIT(PROXY_OP) | BIT(GROUP_API) |
			  BIT(COLLECTIVE_API) | BIT(P2P_API) | BIT(KERNEL_LAUNCH) |
			  BIT(CE_COLLECTIVE)},
	{"all", 0xffff},
	{"none", 0},
};

#define EVENT_NAMES                                                                                \
	"default, light, all, none, group, coll, p2p, proxy-op, proxy-step, proxy-ctrl, "          \
	"kernel-channel, "                                                                         \
	"net-plugin, group-api, coll-api, p2p-api, kernel-launch, ce-coll, ce-sync, ce-batch, "    \
	"kernel-phase"

static const uint32_t all_of_api[] = {0, 0x3f, 0x3f, 0xff, 0xff, 0xfff, 0x7fff, 0xffff};

static uint32_t default_mask(unsigned api)
{
	uint32_t mask = BIT(COLLECTIVE) | BIT(P2P) | BIT(PROXY_OP);

	if (api >= 5)
		mask |= BIT(GROUP_API) | BIT(COLLECTIVE_API) | BIT(P2P_API) | BIT(KERNEL_LAUNCH) |
			BIT(KERNEL_CHANNEL);
	if (api >= 6)
		mask |= BIT(CE_COLLECTIVE);
	return mask;
}

/* "default" stands for a bit of its own until the version is known. */
#define DEFAULT_EVENTS (1u << 31)

static void read_events(const char *text)
{
	struct setting_slice rest = setting_slice(text), word;

	options.events = 0;
	while (setting_list_next(&rest, &word)) {
		size_t i = 0, count = sizeof(event_names) / sizeof(event_names[0]);

		while (i < count && !setting_slice_is(word, event_names[i].name))
			i++;
		if (i < count) {
			options.events |= event_names[i].events;
			options.events_given = true;
		} else if (setting_slice_is(word, "default")) {
			options.events |= DEFAULT_EVENTS;
			options.events_given = true;
		} else {
			log_problem("KYMO_NCCL_EVENTS has '%.*s', which is no event; there "
				    "are: " EVENT_NAMES,
				    (int)(word.length < 64 ? word.length : 64), word.text);
		}
	}
}

static const char *value_of(const char *name)
{
	const char *value = getenv(name);

	return value ? value : "";
}

static void read_duration(const char *name, uint64_t *ret)
{
	const char *text = value_of(name);
	int64_t value;

	if (!*text)
		return;
	if (setting_parse_duration(setting_slice(text), &value) || value < 0)
		log_problem("%s is '%.64s', which is no duration: seconds, or a number with "
			    "ns, us, ms, s, m or h; it is not used",
			    name, text);
	else
		*ret = (uint64_t)value;
}

static void read_size(void)
{
	const char *text = value_of("KYMO_NCCL_SIZE");

	options.size = 256ull << 20;
	if (*text && setting_parse_size(setting_slice(text), &options.size))
		log_problem("KYMO_NCCL_SIZE is '%.64s', which is no size: bytes, or a number with "
			    "K, M or G; it is not used",
			    text);
	options.size_moved = options.size < STORE_SIZE_LEAST || options.size > STORE_SIZE_LARGEST;
	if (!options.size_moved)
		return;
	options.size = options.size < STORE_SIZE_LEAST ? STORE_SIZE_LEAST : STORE_SIZE_LARGEST;
	log_problem("KYMO_NCCL_SIZE is '%.64s', which is not from 4M to 16G; %s is used", text,
		    options.size == STORE_SIZE_LEAST ? "4M" : "16G");
}

static void read_full(void)
{
	const char *text = value_of("KYMO_NCCL_FULL");

	options.ring = true;
	if (setting_slice_is(setting_slice(text), "stop"))
		options.ring = false;
	else if (*text && !setting_slice_is(setting_slice(text), "ring"))
		log_problem("KYMO_NCCL_FULL is '%.64s', which is neither ring nor stop; ring is "
			    "used",
			    text);
}

static void read_gpu_clock(void)
{
	const char *text = value_of("KYMO_NCCL_GPU_CLOCK_HZ");
	int64_t value;

	options.gpu_clock_hz = 100000000; /* AMD's constant-rate clock */
	if (!*text)
		return;
	if (setting_parse_integer(setting_slice(text), &value) || value <= 0)
		log_problem("KYMO_NCCL_GPU_CLOCK_HZ is '%.64s', which is no rate; it is not used",
			    text);
	else
		options.gpu_clock_hz = (uint64_t)value;
}

static void read_graphs(void)
{
	const char *text = value_of("KYMO_NCCL_GRAPHS");

	options.graphs_fast = setting_slice_is(setting_slice(text), "fast");
	if (*text && !options.graphs_fast && !setting_slice_is(setting_slice(text), "timed"))
		log_problem("KYMO_NCCL_GRAPHS is '%.64s', which is neither timed nor fast; timed "
			    "is used",
			    text);
}

void options_read(void)
{
	memset(&options, 0, sizeof(options));
	options.enabled = true;
	(void)setting_parse_bool(setting_slice(value_of("KYMO_ENABLED")), &options.enabled);
	options.prometheus_period_ns = 15000000000u;
	options.prometheus = value_of("KYMO_NCCL_PROMETHEUS");
	options.call_trace = value_of("KYMO_NCCL_CALL_TRACE");
	options.spool = value_of("KYMO_SPOOL_DIRECTORY");
	read_events(value_of("KYMO_NCCL_EVENTS"));
	read_duration("KYMO_NCCL_STALL", &options.stall_ns);
	read_duration("KYMO_NCCL_PROMETHEUS_PERIOD", &options.prometheus_period_ns);
	if (options.prometheus_period_ns < 100000000)
		options.prometheus_period_ns = 100000000;
	read_size();
	read_full();
	read_gpu_clock();
	read_graphs();
}

uint32_t options_mask(unsigned api)
{
	uint32_t mask = options.events_given ? options.events : DEFAULT_EVENTS;

	if (mask & DEFAULT_EVENTS)
		mask |= default_mask(api);
	return mask & all_of_api[api];
}

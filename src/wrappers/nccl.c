/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions of NCCL, and of RCCL, which has the same names and types: calls on the host, that is
 * what is put into a stream and how long that takes, with bytes, operation, peers, communicator and
 * stream. A call that NCCL makes within another is part of it.
 *
 * All but two take words in registers and at most three on the stack, and are made of one table.
 * ncclCommInitRank and ncclCommInitRankConfig take a structure of 128 bytes by value (nccl.h,
 * NCCL_UNIQUE_ID_BYTES).
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "regions/regions.h"
#include "wrappers/got.h"
#include "wrappers/wrappers.h"

#define VALUES_MAX 8

struct nccl_call {
	const char *name;
	/* What each argument is:
	 *   n count   d datatype   o operation   r root   p peer   z bytes
	 *   c communicator   s stream   k number of ranks or devices */
	const char *letters;
};

enum { INIT_RANK, INIT_RANK_CONFIG, FIRST_WORDS };

static const struct nccl_call calls[] = {
	[INIT_RANK] = {"ncclCommInitRank", ""},
	[INIT_RANK_CONFIG] = {"ncclCommInitRankConfig", ""},
	[FIRST_WORDS] = {"ncclAllReduce", "..ndocs"},
	{"ncclBroadcast", "..ndrcs"},
	{"ncclBcast", ".ndrcs"},
	{"ncclReduce", "..ndorcs"},
	{"ncclAllGather", "..ndcs"},
	{"ncclReduceScatter", "..ndocs"},
	{"ncclSend", ".ndpcs"},
	{"ncclRecv", ".ndpcs"},
	{"ncclGather", "..ndrcs"},
	{"ncclScatter", "..ndrcs"},
	{"ncclAlltoAll", "..ndcs"}, /* NCCL 2.28 */
	{"ncclAllToAll", "..ndcs"}, /* RCCL */
	{"ncclGroupStart", ""},
	{"ncclGroupEnd", ""},
	{"ncclGroupSimulateEnd", ""},
	{"ncclGetUniqueId", ""},
	{"ncclCommInitAll", ".k"},
	{"ncclCommInitRankScalable", ".k"},
	{"ncclCommFinalize", "c"},
	{"ncclCommDestroy", "c"},
	{"ncclCommAbort", "c"},
	{"ncclCommSplit", "c"},
	{"ncclCommShrink", "c"},
	{"ncclCommRegister", "c.z"},
	{"ncclCommDeregister", "c"},
	{"ncclCommWindowRegister", "c.z"},
	{"ncclCommWindowDeregister", "c"},
	{"ncclMemAlloc", ".z"},
	{"ncclMemFree", ""},
	{"ncclRedOpCreatePreMulSum", "..d.c"},
	{"ncclRedOpDestroy", ".c"},
};

#define CALLS (sizeof(calls) / sizeof(calls[0]))
#define WORDS 9

struct unique_id {
	char bytes[128];
};

static _Atomic(void *) originals[CALLS];
static _Atomic uint32_t regions[CALLS];
static struct got_wrapper wrappers[CALLS];
static __thread uint32_t depth;

/* ncclDataType_t and ncclRedOp_t of nccl.h; their numbers are part of the ABI. */
static const struct {
	const char *name;
	uint64_t size;
} types[] = {{"int8", 1},    {"uint8", 1},    {"int32", 4},      {"uint32", 4},
	     {"int64", 8},   {"uint64", 8},   {"float16", 2},    {"float32", 4},
	     {"float64", 8}, {"bfloat16", 2}, {"float8e4m3", 1}, {"float8e5m2", 1}};
static const char *const operations[] = {"sum", "prod", "max", "min", "avg"};

struct values {
	struct region_value list[VALUES_MAX];
	size_t count;
};

static void add(struct values *values, const char *name, enum spool_value_type type,
		uint64_t number)
{
	values->list[values->count++] =
		(struct region_value){.name = name, .type = type, .number = number};
}

static void add_text(struct values *values, const char *name, const char *text)
{
	values->list[values->count++] =
		(struct region_value){.name = name, .type = SPOOL_VALUE_TEXT, .text = text};
}

static void add_type(struct values *values, uint32_t type, uint64_t count)
{
	if (type >= sizeof(types) / sizeof(types[0])) {
		add(values, "datatype", SPOOL_VALUE_UNSIGNED, type);
		return;
	}
	add_text(values, "datatype", types[type].name);
	add(values, "bytes", SPOOL_VALUE_UNSIGNED, count * types[type].size);
}

static void add_operation(struct values *values, uint32_t operation)
{
	if (operation < sizeof(operations) / sizeof(operations[0]))
		add_text(values, "operation", operations[operation]);
	else
		add(values, "operation", SPOOL_VALUE_UNSIGNED, operation); /* the program's own */
}

static void record_arguments(const struct nccl_call *call, const long *words)
{
	struct values values = {.count = 0};
	uint64_t count = 0;

	for (int i = 0; call->letters[i]; i++) {
		uint64_t word = (uint64_t)words[i];

		switch (call->letters[i]) {
		case 'n':
			count = word;
			add(&values, "count", SPOOL_VALUE_UNSIGNED, word);
			break;
		case 'd':
			add_type(&values, (uint32_t)word, count);
			break;
		case 'o':
			add_operation(&values, (uint32_t)word);
			break;
		case 'r':
			add(&values, "root", SPOOL_VALUE_SIGNED, (uint64_t)(int)word);
			break;
		case 'p':
			add(&values, "peer", SPOOL_VALUE_SIGNED, (uint64_t)(int)word);
			break;
		case 'k':
			add(&values, "ranks", SPOOL_VALUE_SIGNED, (uint64_t)(int)word);
			break;
		case 'z':
			add(&values, "bytes", SPOOL_VALUE_UNSIGNED, word);
			break;
		case 'c':
			add(&values, "communicator", SPOOL_VALUE_ADDRESS, word);
			break;
		case 's':
			add(&values, "stream", SPOOL_VALUE_ADDRESS, word);
			break;
		default:
			break;
		}
	}
	if (values.count)
		region_values(values.list, values.count);
}

/* The region of a call that is to be recorded, begun; 0: it is not. */
static region_id begin(uint32_t index)
{
	region_id region;
	int error = errno;

	if (depth || region_is_own() || !region_recording(REGION_NCCL))
		return 0;
	region = atomic_load_explicit(&regions[index], memory_order_relaxed);
	if (!region) {
		region = region_named(REGION_NCCL, calls[index].name);
		atomic_store_explicit(&regions[index], region, memory_order_relaxed);
	}
	if (region)
		region_begin(region);
	errno = error;
	return region;
}

static void end(region_id region)
{
	int error = errno;

	if (region)
		region_end(region);
	errno = error;
}

static const void *original_of(uint32_t index)
{
	return atomic_load_explicit(&originals[index], memory_order_acquire);
}

static int call_words(uint32_t index, const long *a)
{
	int (*function)(long, long, long, long, long, long, long, long, long);
	const void *original = original_of(index);
	region_id region = begin(index);
	int result;

	memcpy(&function, &original, sizeof(function));
	if (region)
		record_arguments(&calls[index], a);
	depth++;
	result = function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8]);
	depth--;
	end(region);
	return result;
}

static void record_rank(region_id region, int ranks, int rank)
{
	struct values values = {.count = 0};

	if (!region)
		return;
	add(&values, "ranks", SPOOL_VALUE_SIGNED, (uint64_t)ranks);
	add(&values, "rank", SPOOL_VALUE_SIGNED, (uint64_t)rank);
	region_values(values.list, values.count);
}

static int wrapped_init_rank(void *communicator, int ranks, struct unique_id id, int rank)
{
	int (*function)(void *, int, struct unique_id, int);
	const void *original = original_of(INIT_RANK);
	region_id region = begin(INIT_RANK);
	int result;

	memcpy(&function, &original, sizeof(function));
	record_rank(region, ranks, rank);
	depth++;
	result = function(communicator, ranks, id, rank);
	depth--;
	end(region);
	return result;
}

static int wrapped_init_rank_config(void *communicator, int ranks, struct unique_id id, int rank,
				    void *config)
{
	int (*function)(void *, int, struct unique_id, int, void *);
	const void *original = original_of(INIT_RANK_CONFIG);
	region_id region = begin(INIT_RANK_CONFIG);
	int result;

	memcpy(&function, &original, sizeof(function));
	record_rank(region, ranks, rank);
	depth++;
	result = function(communicator, ranks, id, rank, config);
	depth--;
	end(region);
	return result;
}

/* One function a number: what it passes on beyond a function's own arguments is not looked at. */
#define STUB(number)                                                                               \
	static int stub_##number(long a, long b, long c, long d, long e, long f, long g, long h,   \
				 long i)                                                           \
	{                                                                                          \
		return call_words(number, (const long[WORDS]){a, b, c, d, e, f, g, h, i});         \
	}

/* clang-format off */
STUB(2) STUB(3) STUB(4) STUB(5) STUB(6) STUB(7) STUB(8) STUB(9) STUB(10) STUB(11) STUB(12)
STUB(13) STUB(14) STUB(15) STUB(16) STUB(17) STUB(18) STUB(19) STUB(20) STUB(21) STUB(22)
STUB(23) STUB(24) STUB(25) STUB(26) STUB(27) STUB(28) STUB(29) STUB(30) STUB(31) STUB(32)

static void *const replacements[] = {
	(void *)wrapped_init_rank, (void *)wrapped_init_rank_config, (void *)stub_2, (void *)stub_3,
	(void *)stub_4, (void *)stub_5, (void *)stub_6, (void *)stub_7, (void *)stub_8,
	(void *)stub_9, (void *)stub_10, (void *)stub_11, (void *)stub_12, (void *)stub_13,
	(void *)stub_14, (void *)stub_15, (void *)stub_16, (void *)stub_17, (void *)stub_18,
	(void *)stub_19, (void *)stub_20, (void *)stub_21, (void *)stub_22, (void *)stub_23,
	(void *)stub_24, (void *)stub_25, (void *)stub_26, (void *)stub_27, (void *)stub_28,
	(void *)stub_29, (void *)stub_30, (void *)stub_31, (void *)stub_32,
};
/* clang-format on */
_Static_assert(sizeof(replacements) / sizeof(replacements[0]) == CALLS, "one for each function");

int wrappers_nccl_add(const struct options_wrappers *options)
{
	if (!options->nccl)
		return 0;
	for (uint32_t i = 0; i < CALLS; i++) {
		wrappers[i].symbol = calls[i].name;
		wrappers[i].replacement = replacements[i];
		wrappers[i].original = &originals[i];
	}
	return got_add(wrappers, CALLS);
}

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

#include "common/array.h"
#include "regions/regions.h"
#include "wrappers/got/got.h"
#include "wrappers/wrappers.h"

#define VALUES_MAX 8

struct nccl_wrapped_function_row {
	const char *name;
	/* What each argument is:
	 *   n count   d datatype   o operation   r root   p peer   z bytes
	 *   c communicator   s stream   k number of ranks or devices */
	const char *argument_letters;
};

enum { INDEX_OF_COMM_INIT_RANK, INDEX_OF_COMM_INIT_RANK_CONFIG, INDEX_OF_FIRST_WORD_CALL };

static const struct nccl_wrapped_function_row nccl_wrapped_functions[] = {
	[INDEX_OF_COMM_INIT_RANK] = {"ncclCommInitRank", ""},
	[INDEX_OF_COMM_INIT_RANK_CONFIG] = {"ncclCommInitRankConfig", ""},
	[INDEX_OF_FIRST_WORD_CALL] = {"ncclAllReduce", "..ndocs"},
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

#define NCCL_WRAPPED_FUNCTION_COUNT ARRAY_SIZE(nccl_wrapped_functions)
#define ARGUMENT_WORDS_MAX          9

struct nccl_unique_id {
	char bytes[128];
};

static _Atomic(void *) originals[NCCL_WRAPPED_FUNCTION_COUNT];
static _Atomic uint32_t function_region_ids[NCCL_WRAPPED_FUNCTION_COUNT];
static struct got_wrapper nccl_wrappers[NCCL_WRAPPED_FUNCTION_COUNT];
static __thread uint32_t nccl_call_depth;

/* ncclDataType_t and ncclRedOp_t of nccl.h; their numbers are part of the ABI. */
static const struct {
	const char *name;
	uint64_t size;
} data_types[] = {{"int8", 1},    {"uint8", 1},    {"int32", 4},      {"uint32", 4},
		  {"int64", 8},   {"uint64", 8},   {"float16", 2},    {"float32", 4},
		  {"float64", 8}, {"bfloat16", 2}, {"float8e4m3", 1}, {"float8e5m2", 1}};
static const char *const operation_names[] = {"sum", "prod", "max", "min", "avg"};

struct nccl_call_value_list {
	struct region_value list[VALUES_MAX];
	size_t count;
};

static void add_value(struct nccl_call_value_list *values, const char *name,
		      enum spool_value_type type, uint64_t number)
{
	values->list[values->count++] =
		(struct region_value){.name = name, .type = type, .number = number};
}

static void add_text_value(struct nccl_call_value_list *values, const char *name, const char *text)
{
	values->list[values->count++] =
		(struct region_value){.name = name, .type = SPOOL_VALUE_TEXT, .text = text};
}

static void add_datatype_and_bytes_values(struct nccl_call_value_list *values, uint32_t type,
					  uint64_t count)
{
	if (type >= ARRAY_SIZE(data_types)) {
		add_value(values, "datatype", SPOOL_VALUE_UNSIGNED, type);
		return;
	}
	add_text_value(values, "datatype", data_types[type].name);
	add_value(values, "bytes", SPOOL_VALUE_UNSIGNED, count * data_types[type].size);
}

static void add_operation_value(struct nccl_call_value_list *values, uint32_t operation)
{
	if (operation < ARRAY_SIZE(operation_names))
		add_text_value(values, "operation", operation_names[operation]);
	else
		add_value(values, "operation", SPOOL_VALUE_UNSIGNED,
			  operation); /* the program's own */
}

static void record_call_arguments(const struct nccl_wrapped_function_row *call, const long *words)
{
	struct nccl_call_value_list values = {.count = 0};
	uint64_t count = 0;

	for (int i = 0; call->argument_letters[i]; i++) {
		uint64_t word = (uint64_t)words[i];

		switch (call->argument_letters[i]) {
		case 'n':
			count = word;
			add_value(&values, "count", SPOOL_VALUE_UNSIGNED, word);
			break;
		case 'd':
			add_datatype_and_bytes_values(&values, (uint32_t)word, count);
			break;
		case 'o':
			add_operation_value(&values, (uint32_t)word);
			break;
		case 'r':
			add_value(&values, "root", SPOOL_VALUE_SIGNED, (uint64_t)(int)word);
			break;
		case 'p':
			add_value(&values, "peer", SPOOL_VALUE_SIGNED, (uint64_t)(int)word);
			break;
		case 'k':
			add_value(&values, "ranks", SPOOL_VALUE_SIGNED, (uint64_t)(int)word);
			break;
		case 'z':
			add_value(&values, "bytes", SPOOL_VALUE_UNSIGNED, word);
			break;
		case 'c':
			add_value(&values, "communicator", SPOOL_VALUE_ADDRESS, word);
			break;
		case 's':
			add_value(&values, "stream", SPOOL_VALUE_ADDRESS, word);
			break;
		default:
			break;
		}
	}
	if (values.count)
		region_values(values.list, values.count);
}

/* The region of a call that is to be recorded, begun; 0: it is not. */
static region_id begin_nccl_region(uint32_t index)
{
	region_id region;
	int error = errno;

	if (nccl_call_depth || region_thread_is_in_kymo_code() ||
	    !region_category_is_recorded(REGION_NCCL))
		return 0;
	region = atomic_load_explicit(&function_region_ids[index], memory_order_relaxed);
	if (!region) {
		region = region_find_or_add_name(REGION_NCCL, nccl_wrapped_functions[index].name);
		atomic_store_explicit(&function_region_ids[index], region, memory_order_relaxed);
	}
	if (region)
		region_begin(region);
	errno = error;
	return region;
}

static void end_nccl_region(region_id region)
{
	int error = errno;

	if (region)
		region_end(region);
	errno = error;
}

static const void *get_original_function(uint32_t index)
{
	return atomic_load_explicit(&originals[index], memory_order_acquire);
}

static int call_original_and_record(uint32_t index, const long *a)
{
	int (*function)(long, long, long, long, long, long, long, long, long);
	const void *original = get_original_function(index);
	region_id region = begin_nccl_region(index);
	int result;

	memcpy(&function, &original, sizeof(function));
	if (region)
		record_call_arguments(&nccl_wrapped_functions[index], a);
	nccl_call_depth++;
	result = function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8]);
	nccl_call_depth--;
	end_nccl_region(region);
	return result;
}

static void record_rank_values(region_id region, int ranks, int rank)
{
	struct nccl_call_value_list values = {.count = 0};

	if (!region)
		return;
	add_value(&values, "ranks", SPOOL_VALUE_SIGNED, (uint64_t)ranks);
	add_value(&values, "rank", SPOOL_VALUE_SIGNED, (uint64_t)rank);
	region_values(values.list, values.count);
}

static int wrapped_init_rank(void *communicator, int ranks, struct nccl_unique_id id, int rank)
{
	int (*function)(void *, int, struct nccl_unique_id, int);
	const void *original = get_original_function(INDEX_OF_COMM_INIT_RANK);
	region_id region = begin_nccl_region(INDEX_OF_COMM_INIT_RANK);
	int result;

	memcpy(&function, &original, sizeof(function));
	record_rank_values(region, ranks, rank);
	nccl_call_depth++;
	result = function(communicator, ranks, id, rank);
	nccl_call_depth--;
	end_nccl_region(region);
	return result;
}

static int wrapped_init_rank_config(void *communicator, int ranks, struct nccl_unique_id id,
				    int rank, void *config)
{
	int (*function)(void *, int, struct nccl_unique_id, int, void *);
	const void *original = get_original_function(INDEX_OF_COMM_INIT_RANK_CONFIG);
	region_id region = begin_nccl_region(INDEX_OF_COMM_INIT_RANK_CONFIG);
	int result;

	memcpy(&function, &original, sizeof(function));
	record_rank_values(region, ranks, rank);
	nccl_call_depth++;
	result = function(communicator, ranks, id, rank, config);
	nccl_call_depth--;
	end_nccl_region(region);
	return result;
}

/* One function a number: what it passes on beyond a function's own arguments is not looked at. */
#define DEFINE_STUB(number)                                                                        \
	static int stub_##number(long a, long b, long c, long d, long e, long f, long g, long h,   \
				 long i)                                                           \
	{                                                                                          \
		return call_original_and_record(                                                   \
			number, (const long[ARGUMENT_WORDS_MAX]){a, b, c, d, e, f, g, h, i});      \
	}

/* clang-format off */
DEFINE_STUB(2) DEFINE_STUB(3) DEFINE_STUB(4) DEFINE_STUB(5) DEFINE_STUB(6) DEFINE_STUB(7) DEFINE_STUB(8) DEFINE_STUB(9) DEFINE_STUB(10) DEFINE_STUB(11) DEFINE_STUB(12)
DEFINE_STUB(13) DEFINE_STUB(14) DEFINE_STUB(15) DEFINE_STUB(16) DEFINE_STUB(17) DEFINE_STUB(18) DEFINE_STUB(19) DEFINE_STUB(20) DEFINE_STUB(21) DEFINE_STUB(22)
DEFINE_STUB(23) DEFINE_STUB(24) DEFINE_STUB(25) DEFINE_STUB(26) DEFINE_STUB(27) DEFINE_STUB(28) DEFINE_STUB(29) DEFINE_STUB(30) DEFINE_STUB(31) DEFINE_STUB(32)

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
_Static_assert(ARRAY_SIZE(replacements) == NCCL_WRAPPED_FUNCTION_COUNT, "one for each function");

int wrappers_nccl_add(const struct wrapper_options *options)
{
	if (!options->wrap_nccl)
		return 0;
	for (uint32_t i = 0; i < NCCL_WRAPPED_FUNCTION_COUNT; i++) {
		nccl_wrappers[i].symbol = nccl_wrapped_functions[i].name;
		nccl_wrappers[i].replacement = replacements[i];
		nccl_wrappers[i].original = &originals[i];
	}
	return got_add_wrappers(nccl_wrappers, NCCL_WRAPPED_FUNCTION_COUNT);
}

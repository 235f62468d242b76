/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions of MPI: which are wrapped, and when.
 *
 * A process that has no MPI library pays for the names of MPI_Init only. All functions are wrapped
 * as soon as there is a library: at the start when the program is linked with it, else when MPI is
 * initialised. Not seen are calls that go through no global offset table: of programs linked
 * statically with MPI, and of the library's own to its inner names.
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "common/array.h"
#include "common/loader.h"
#include "common/syscalls.h"
#include "core/notices.h"
#include "core/rank.h"
#include "wrappers/got/got.h"
#include "wrappers/mpi/mpi.h"
#include "wrappers/mpi/record.h"

#define NAME_BYTES_MAX    64
#define WRAPPER_NAMES_MAX ((size_t)MPI_SPELLING_COUNT * MPI_CALLS_MAX)

static struct {
	struct got_wrapper *wrappers; /* WRAPPER_NAMES_MAX, in pages of their own */
	char (*names)[NAME_BYTES_MAX];
	int8_t positions[MPI_CALLS_MAX][64];
	_Atomic uint32_t regions[MPI_CALLS_MAX];
	bool wanted[MPI_CALLS_MAX];
	uint32_t count; /* of wrappers, so far */
	bool complete;
	_Atomic uint32_t may_read_values;
} mpi_wrapping_state;

static struct {
	struct background_state *background;
	struct collection_control *control;
} mpi_background_and_control;

static _Atomic(void *) originals[MPI_SPELLING_COUNT * MPI_CALLS_MAX];

const void *mpi_get_original_function(uint32_t index)
{
	return atomic_load_explicit(&originals[index], memory_order_acquire);
}

const int8_t *mpi_call_get_argument_positions(uint32_t call)
{
	return mpi_wrapping_state.positions[call];
}

region_id mpi_get_call_region(uint32_t call)
{
	region_id region =
		atomic_load_explicit(&mpi_wrapping_state.regions[call], memory_order_relaxed);

	if (!region && mpi_wrapping_state.wanted[call]) {
		region = region_find_or_add_name(REGION_MPI, mpi_calls[call].name);
		atomic_store_explicit(&mpi_wrapping_state.regions[call], region,
				      memory_order_relaxed);
	}
	return region;
}

bool mpi_can_read_call_arguments(void)
{
	return atomic_load_explicit(&mpi_wrapping_state.may_read_values, memory_order_acquire);
}

static void decode_argument_letters(void)
{
	memset(mpi_wrapping_state.positions, -1, sizeof(mpi_wrapping_state.positions));
	for (uint32_t call = 0; call < mpi_calls_count; call++) {
		const char *letters = mpi_calls[call].argument_letters;

		for (int i = 0; letters[i]; i++) {
			if (letters[i] != '.')
				mpi_wrapping_state.positions[call][letters[i] & 63] = (int8_t)i;
		}
	}
}

static int allocate_wrappers(void)
{
	void *memory =
		sys_mmap(NULL, WRAPPER_NAMES_MAX * (sizeof(struct got_wrapper) + NAME_BYTES_MAX),
			 PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (sys_mmap_failed(memory))
		return -ENOMEM;
	mpi_wrapping_state.wrappers = memory;
	mpi_wrapping_state.names = (void *)(mpi_wrapping_state.wrappers + WRAPPER_NAMES_MAX);
	return 0;
}

static void append_wrapper(uint32_t call, enum mpi_spelling spelling)
{
	uint32_t index = (uint32_t)spelling * MPI_CALLS_MAX + call;
	struct got_wrapper *wrapper = &mpi_wrapping_state.wrappers[mpi_wrapping_state.count];

	if (mpi_call_format_name_in_spelling(&mpi_calls[call], spelling,
					     mpi_wrapping_state.names[mpi_wrapping_state.count],
					     NAME_BYTES_MAX))
		return;
	wrapper->symbol = mpi_wrapping_state.names[mpi_wrapping_state.count++];
	wrapper->replacement = mpi_get_stub_address(index);
	wrapper->original = &originals[index];
}

/* Appends the functions with `entries` (those of kind MPI_INIT) or without, in one spelling. */
static void append_wrappers_of_spelling(enum mpi_spelling spelling, bool entries)
{
	for (uint32_t call = 0; call < mpi_calls_count; call++) {
		enum mpi_call_kind kind = mpi_calls[call].kind;
		bool needed = kind == MPI_FINALIZE || kind == MPI_PCONTROL;

		if ((kind == MPI_INIT) == entries &&
		    (entries || needed || mpi_wrapping_state.wanted[call]))
			append_wrapper(call, spelling);
	}
}

/* Does the library have functions in this spelling? */
static bool library_has_spelling(enum mpi_spelling spelling)
{
	static const char *const samples[MPI_SPELLING_COUNT] = {
		"MPI_Send",      "MPI_Send_c",      "mpi_send_",
		"mpi_send__",    "mpi_send",        "MPI_SEND",
		"mpi_send_f08_", "mpi_send_f08ts_", "mpi_send_f08ts_large_",
	};

	/* Functions without buffers have this name in both Fortran 2008 interfaces. */
	if (spelling == MPI_SPELLING_F08)
		return mpi_library_find_symbol("mpi_comm_rank_f08_") != NULL;
	return mpi_library_find_symbol(samples[spelling]) != NULL;
}

static void wrap_all_functions_once(void)
{
	uint32_t first = mpi_wrapping_state.count;

	if (mpi_wrapping_state.complete)
		return;
	mpi_wrapping_state.complete = true;
	for (int spelling = 0; spelling < MPI_SPELLING_COUNT; spelling++) {
		if (library_has_spelling((enum mpi_spelling)spelling))
			append_wrappers_of_spelling((enum mpi_spelling)spelling, false);
	}
	got_add_wrappers(mpi_wrapping_state.wrappers + first, mpi_wrapping_state.count - first);
}

static void record_world_rank(void)
{
	int rank = 0, size = 0;

	if (!mpi_library.pmpi_comm_rank(mpi_library.world_communicator, &rank) &&
	    !mpi_library.pmpi_comm_size(mpi_library.world_communicator, &size) && rank >= 0 &&
	    size > 0)
		rank_set_from_mpi((uint32_t)rank, (uint32_t)size);
}

void mpi_complete_wrapping_after_init(const void *init)
{
	int initialized = 0, finalized = 0;
	bool known;

	if (!mpi_wrapping_state.complete) {
		wrap_all_functions_once();
		got_scan_and_rewrite();
	}
	known = mpi_library_identify(init);
	if (mpi_library.pmpi_initialized && mpi_library.pmpi_finalized &&
	    !mpi_library.pmpi_initialized(&initialized) &&
	    !mpi_library.pmpi_finalized(&finalized) && known && initialized && !finalized) {
		record_world_rank();
		atomic_store_explicit(&mpi_wrapping_state.may_read_values, 1, memory_order_release);
	}
}

void mpi_stop_reading_values(void)
{
	atomic_store_explicit(&mpi_wrapping_state.may_read_values, 0, memory_order_release);
}

void mpi_switch_collection(bool collect)
{
	if (collect)
		control_start_collection(mpi_background_and_control.control);
	else
		control_stop_collection(mpi_background_and_control.control);
}

/* kymo itself does not know the functions. */
static void warn_if_list_has_unknown_name(const char *text, const char *list)
{
	char name[NAME_BYTES_MAX] = "";
	size_t length;
	const char *word = mpi_list_find_unknown_word(list, &length);

	if (!word)
		return;
	memcpy(name, word, length < sizeof(name) ? length : sizeof(name) - 1);
	notices_post(mpi_background_and_control.background, SPOOL_NOTICE_FALLBACK, 0, text, name);
}

void mpi_remember_collector(struct background_state *background, struct collection_control *control)
{
	mpi_background_and_control.background = background;
	mpi_background_and_control.control = control;
}

int wrappers_mpi_add(const struct wrapper_options *options)
{
	static const enum mpi_spelling spellings[] = {
		MPI_SPELLING_C,
		MPI_SPELLING_LOWER_UNDERSCORE,
		MPI_SPELLING_LOWER_2_UNDERSCORES,
		MPI_SPELLING_LOWER_PLAIN,
		MPI_SPELLING_UPPER,
		MPI_SPELLING_F08,
	};
	void *init;
	int error;

	if (!options->wrap_mpi)
		return 0;
	error = allocate_wrappers();
	if (error)
		return error;
	decode_argument_letters();
	warn_if_list_has_unknown_name("MPIP_PERMIT_LIST: no MPI function that kymo knows: ",
				      options->mpi_permit_list);
	warn_if_list_has_unknown_name("MPIP_REJECT_LIST: no MPI function that kymo knows: ",
				      options->mpi_reject_list);
	for (uint32_t call = 0; call < mpi_calls_count; call++)
		mpi_wrapping_state.wanted[call] = mpi_call_is_selected(
			&mpi_calls[call], options->mpi_permit_list, options->mpi_reject_list);
	for (size_t i = 0; i < ARRAY_SIZE(spellings); i++)
		append_wrappers_of_spelling(spellings[i], true);
	error = got_add_wrappers(mpi_wrapping_state.wrappers, mpi_wrapping_state.count);
	init = loader_find_symbol(LOADER_SCOPE_ANY_OBJECT, NULL, "MPI_Init");
	if (error || !init)
		return error;
	wrap_all_functions_once();
	mpi_complete_wrapping_after_init(init); /* where kymo came to a process that runs already */
	return 0;
}

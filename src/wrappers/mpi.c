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
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "common/syscalls.h"
#include "core/notices.h"
#include "core/rank.h"
#include "wrappers/got.h"
#include "wrappers/mpi_record.h"
#include "wrappers/wrappers.h"

#define NAME_MAX_BYTES 64
#define NAMES_MAX      ((size_t)MPI_SPELLINGS * MPI_CALLS_MAX)

static struct {
	struct got_wrapper *wrappers; /* NAMES_MAX, in pages of their own */
	char (*names)[NAME_MAX_BYTES];
	int8_t positions[MPI_CALLS_MAX][64];
	_Atomic uint32_t regions[MPI_CALLS_MAX];
	bool wanted[MPI_CALLS_MAX];
	uint32_t count; /* of wrappers, so far */
	bool complete;
	_Atomic uint32_t values_known;
} state;

static _Atomic(void *) originals[MPI_SPELLINGS * MPI_CALLS_MAX];

const void *mpi_original(uint32_t index)
{
	return atomic_load_explicit(&originals[index], memory_order_acquire);
}

const int8_t *mpi_positions(uint32_t call)
{
	return state.positions[call];
}

region_id mpi_region(uint32_t call)
{
	region_id region = atomic_load_explicit(&state.regions[call], memory_order_relaxed);

	if (!region && state.wanted[call]) {
		region = region_named(REGION_MPI, mpi_calls[call].name);
		atomic_store_explicit(&state.regions[call], region, memory_order_relaxed);
	}
	return region;
}

bool mpi_values_known(void)
{
	return atomic_load_explicit(&state.values_known, memory_order_acquire);
}

static void decode_letters(void)
{
	memset(state.positions, -1, sizeof(state.positions));
	for (uint32_t call = 0; call < mpi_calls_count; call++) {
		const char *letters = mpi_calls[call].letters;

		for (int i = 0; letters[i]; i++) {
			if (letters[i] != '.')
				state.positions[call][letters[i] & 63] = (int8_t)i;
		}
	}
}

static int allocate(void)
{
	void *memory = sys_mmap(NULL, NAMES_MAX * (sizeof(struct got_wrapper) + NAME_MAX_BYTES),
				PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (sys_failed(memory))
		return -ENOMEM;
	state.wrappers = memory;
	state.names = (void *)(state.wrappers + NAMES_MAX);
	return 0;
}

static void append(uint32_t call, enum mpi_spelling spelling)
{
	uint32_t index = (uint32_t)spelling * MPI_CALLS_MAX + call;
	struct got_wrapper *wrapper = &state.wrappers[state.count];

	if (mpi_call_spell(&mpi_calls[call], spelling, state.names[state.count], NAME_MAX_BYTES))
		return;
	wrapper->symbol = state.names[state.count++];
	wrapper->replacement = mpi_stub(index);
	wrapper->original = &originals[index];
}

/* Appends the functions with `entries` (those of kind MPI_INIT) or without, in one spelling. */
static void append_all(enum mpi_spelling spelling, bool entries)
{
	for (uint32_t call = 0; call < mpi_calls_count; call++) {
		enum mpi_kind kind = mpi_calls[call].kind;
		bool needed = kind == MPI_FINALIZE || kind == MPI_PCONTROL;

		if ((kind == MPI_INIT) == entries && (entries || needed || state.wanted[call]))
			append(call, spelling);
	}
}

/* Does the library have functions in this spelling? */
static bool is_spelled(enum mpi_spelling spelling, const void *init)
{
	static const char *const samples[MPI_SPELLINGS] = {
		"MPI_Send",      "MPI_Send_c",      "mpi_send_",
		"mpi_send__",    "mpi_send",        "MPI_SEND",
		"mpi_send_f08_", "mpi_send_f08ts_", "mpi_send_f08ts_large_",
	};

	/* Functions without buffers have this name in both Fortran 2008 interfaces. */
	if (spelling == MPI_SPELLING_F08)
		return mpi_library_symbol("mpi_comm_rank_f08_", init) != NULL;
	return mpi_library_symbol(samples[spelling], init) != NULL;
}

static void wrap_all(const void *init)
{
	uint32_t first = state.count;

	if (state.complete)
		return;
	state.complete = true;
	for (int spelling = 0; spelling < MPI_SPELLINGS; spelling++) {
		if (is_spelled((enum mpi_spelling)spelling, init))
			append_all((enum mpi_spelling)spelling, false);
	}
	got_add(state.wrappers + first, state.count - first);
}

static void tell_rank(void)
{
	int rank = 0, size = 0;

	if (!mpi_library.comm_rank(mpi_library.world, &rank) &&
	    !mpi_library.comm_size(mpi_library.world, &size) && rank >= 0 && size > 0)
		rank_found((uint32_t)rank, (uint32_t)size);
}

void mpi_after_init(const void *init)
{
	int initialized = 0, finalized = 0;
	bool known;

	if (!state.complete) {
		wrap_all(init);
		got_scan();
	}
	known = mpi_library_find(init);
	if (mpi_library.initialized && mpi_library.finalized &&
	    !mpi_library.initialized(&initialized) && !mpi_library.finalized(&finalized) && known &&
	    initialized && !finalized) {
		tell_rank();
		atomic_store_explicit(&state.values_known, 1, memory_order_release);
	}
}

void mpi_before_finalize(void)
{
	atomic_store_explicit(&state.values_known, 0, memory_order_release);
}

/* kymo itself does not know the functions. */
static void warn_of_unknown(const char *text, const char *list)
{
	char name[NAME_MAX_BYTES] = "";
	size_t length;
	const char *word = mpi_list_unknown(list, &length);

	if (!word)
		return;
	memcpy(name, word, length < sizeof(name) ? length : sizeof(name) - 1);
	notices_post(&kymo_runtime.background, SPOOL_NOTICE_FALLBACK, 0, text, name);
}

int wrappers_mpi_add(const struct options_wrappers *options)
{
	static const enum mpi_spelling spellings[] = {
		MPI_SPELLING_C,       MPI_SPELLING_LOWER_1, MPI_SPELLING_LOWER_2,
		MPI_SPELLING_LOWER_0, MPI_SPELLING_UPPER,   MPI_SPELLING_F08,
	};
	void *init;
	int error;

	if (!options->mpi)
		return 0;
	error = allocate();
	if (error)
		return error;
	decode_letters();
	warn_of_unknown("MPIP_PERMIT_LIST: no MPI function that kymo knows: ", options->mpi_permit);
	warn_of_unknown("MPIP_REJECT_LIST: no MPI function that kymo knows: ", options->mpi_reject);
	for (uint32_t call = 0; call < mpi_calls_count; call++)
		state.wanted[call] = mpi_call_selected(&mpi_calls[call], options->mpi_permit,
						       options->mpi_reject);
	for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++)
		append_all(spellings[i], true);
	error = got_add(state.wrappers, state.count);
	init = dlsym(RTLD_DEFAULT, "MPI_Init");
	if (error || !init)
		return error;
	wrap_all(init);
	mpi_after_init(init); /* where kymo came to a process that runs already */
	return 0;
}

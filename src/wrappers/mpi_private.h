/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the files of the MPI wrappers share.
 *
 * Nothing here includes an mpi.h: one libkymo serves every implementation. Handles are 64-bit words
 * (pointers in Open MPI, integers in MPICH and what derives from it), and what else differs is in
 * struct mpi_library.
 */
#ifndef KYMO_WRAPPERS_MPI_PRIVATE_H
#define KYMO_WRAPPERS_MPI_PRIVATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wrappers/mpi_calls.h"

/* MPI_Rget_accumulate has 13; Fortran adds the error and the lengths of up to two texts. */
#define MPI_ARGUMENTS_MAX 18

/* One call under way. */
struct mpi_frame {
	const struct mpi_call *call;
	enum mpi_spelling spelling;
	const int8_t *positions; /* by letter & 63 */
	long arguments[MPI_ARGUMENTS_MAX];
	long result;
	/* Where a status is written that the program does not want: as large as any
	 * implementation's (the largest known has 32 bytes). */
	uint64_t status[32];
	bool own_status;
};

/* ---- mpi_stubs.c ---- */

/* Stub number spelling * MPI_CALLS_MAX + call. Each calls mpi_enter(). */
void *mpi_stub(uint32_t index);
/* `registers` are the six of integer arguments, `stack` the arguments after them. */
long mpi_enter(uint32_t index, const long *registers, const long *stack);

/* ---- mpi_library.c ---- */

enum mpi_flavor { MPI_FLAVOR_UNKNOWN, MPI_FLAVOR_OPEN_MPI, MPI_FLAVOR_MPICH };

struct mpi_library {
	enum mpi_flavor flavor;
	int (*initialized)(int *);
	int (*finalized)(int *);
	int (*get_library_version)(char *, int *);
	int (*type_size)(uintptr_t, int *);
	int (*type_size_x)(uintptr_t, int64_t *); /* since MPI 3.0 */
	int (*get_elements_x)(const void *, uintptr_t, int64_t *);
	int (*comm_rank)(uintptr_t, int *);
	int (*comm_size)(uintptr_t, int *);
	int (*comm_remote_size)(uintptr_t, int *);
	int (*comm_test_inter)(uintptr_t, int *);
	int (*comm_get_name)(uintptr_t, char *, int *);
	int (*comm_group)(uintptr_t, uintptr_t *);
	int (*comm_remote_group)(uintptr_t, uintptr_t *);
	int (*group_translate_ranks)(uintptr_t, int, const int *, uintptr_t, int *);
	int (*group_free)(uintptr_t *);
	uintptr_t (*comm_f2c)(int); /* NULL: the same integer */
	uintptr_t (*type_f2c)(int);
	uintptr_t world, type_null, type_byte;
	int proc_null, root;
	uintptr_t status_ignore[4], in_place[4]; /* in C and the Fortran interfaces */
};

extern struct mpi_library mpi_library;

/* Address of a symbol of the MPI library, whose MPI_Init is `init`; NULL: there is none. */
void *mpi_library_symbol(const char *name, const void *init);
/* Fills mpi_library. After MPI_Init. False: not understood, calls are recorded without values. */
bool mpi_library_find(const void *init);

/* ---- mpi_arguments.c ---- */

int mpi_position(const struct mpi_frame *frame, char letter);
/* The values of arguments; the letter must be there. */
int64_t mpi_integer(const struct mpi_frame *frame, char letter);
uint64_t mpi_count(const struct mpi_frame *frame, char letter);
uint64_t mpi_count_at(const struct mpi_frame *frame, char letter, uint32_t index);
uintptr_t mpi_type(const struct mpi_frame *frame, char letter);
uintptr_t mpi_type_at(const struct mpi_frame *frame, char letter, uint32_t index);
uintptr_t mpi_communicator_handle(const struct mpi_frame *frame);
bool mpi_is_in_place(const struct mpi_frame *frame, char letter);
bool mpi_is_status_ignored(const struct mpi_frame *frame);
bool mpi_succeeded(const struct mpi_frame *frame);

/* ---- mpi_communicators.c ---- */

#define MPI_COMMUNICATOR_NAME 64

struct mpi_communicator {
	uintptr_t handle; /* 0: none */
	int rank, size;
	int peers; /* processes that ranks of messages count: of the remote group, if there is one
		    */
	bool inter, is_world, has_ranks;
	char name[MPI_COMMUNICATOR_NAME];
	int *world_ranks; /* of `peers`; NULL: not known */
};

/* Asks MPI the first time. After a successful call that used the communicator. */
void mpi_communicator_get(uintptr_t handle, struct mpi_communicator *ret);
/* It is freed or renamed. */
void mpi_communicator_forget(uintptr_t handle);

/* ---- mpi_bytes.c ---- */

struct mpi_bytes {
	bool sends, receives; /* the function does; the amounts may be 0 */
	uint64_t sent, received;
};

/* After a successful call. What this process contributes and gets: a collective that is made of
 * many messages in the library counts its arguments. */
void mpi_bytes(const struct mpi_frame *frame, const struct mpi_communicator *communicator,
	       struct mpi_bytes *ret);

#endif

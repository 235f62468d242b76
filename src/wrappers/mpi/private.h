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

#include "wrappers/mpi/calls.h"

/* Of one status; the largest known one has 24. */
#define MPI_STATUS_BYTES_MAX 32

/* MPI_Rget_accumulate has 13; Fortran adds the error and the lengths of up to two texts. */
#define MPI_ARGUMENTS_MAX 18

/* One call under way. */
struct mpi_call_frame {
	const struct mpi_call_description *call;
	enum mpi_spelling spelling;
	const int8_t *positions; /* by letter & 63 */
	long arguments[MPI_ARGUMENTS_MAX];
	long result;
	uint64_t return_address;
	/* Where a status is written that the program does not want: as large as any
	 * implementation's. */
	uint64_t status[32];
	bool has_own_status;
	/* Of the message that a call receives which was probed before; 0: kymo does not know it. */
	uint64_t message_number;
	uintptr_t message_communicator;
	uint32_t message_communicator_serial;
};

/* ---- stubs.c ---- */

/* Stub number spelling * MPI_CALLS_MAX + call. Each calls mpi_handle_call(). */
void *mpi_get_stub_address(uint32_t index);
/* `registers` are the six of integer arguments, `stack` the arguments after them. */
long mpi_handle_call(uint32_t index, const long *registers, const long *stack);

/* ---- library.c ---- */

enum mpi_flavor { MPI_FLAVOR_UNKNOWN, MPI_FLAVOR_OPEN_MPI, MPI_FLAVOR_MPICH };

struct mpi_library {
	enum mpi_flavor flavor;
	int (*pmpi_initialized)(int *);
	int (*pmpi_finalized)(int *);
	int (*pmpi_get_library_version)(char *, int *);
	int (*pmpi_type_size)(uintptr_t, int *);
	int (*pmpi_type_size_x)(uintptr_t, int64_t *); /* since MPI 3.0 */
	int (*pmpi_get_elements_x)(const void *, uintptr_t, int64_t *);
	int (*pmpi_test_cancelled)(const void *, int *);
	int (*pmpi_comm_rank)(uintptr_t, int *);
	int (*pmpi_comm_size)(uintptr_t, int *);
	int (*pmpi_comm_remote_size)(uintptr_t, int *);
	int (*pmpi_comm_test_inter)(uintptr_t, int *);
	int (*pmpi_comm_get_name)(uintptr_t, char *, int *);
	int (*pmpi_comm_group)(uintptr_t, uintptr_t *);
	int (*pmpi_comm_remote_group)(uintptr_t, uintptr_t *);
	int (*pmpi_group_translate_ranks)(uintptr_t, int, const int *, uintptr_t, int *);
	int (*pmpi_group_free)(uintptr_t *);
	uintptr_t (*pmpi_comm_f2c)(int); /* NULL: the same integer */
	uintptr_t (*pmpi_type_f2c)(int);
	uintptr_t (*pmpi_request_f2c)(int);
	uintptr_t (*pmpi_message_f2c)(int);
	uintptr_t world_communicator, self_communicator, null_communicator, null_datatype,
		byte_datatype;
	int null_process_rank, root_marker_rank, any_source_rank, any_tag;
	int status_source_index, status_tag_index; /* in a status, as integers */
	uint32_t status_bytes;
	uintptr_t status_ignore_addresses[4], /* in C and the Fortran interfaces */
		statuses_ignore_addresses[4], in_place_addresses[4];
};

extern struct mpi_library mpi_library;

/* Address of a symbol of the MPI library, whose MPI_Init is `init`; NULL: there is none. */
void *mpi_library_find_symbol(const char *name);
/* Fills mpi_library. After MPI_Init. False: not understood, calls are recorded without values. */
bool mpi_library_identify(const void *init);

/* ---- arguments.c ---- */

int mpi_frame_get_argument_position(const struct mpi_call_frame *frame, char letter);
/* The values of arguments; the letter must be there. */
int64_t mpi_get_integer_argument(const struct mpi_call_frame *frame, char letter);
uint64_t mpi_get_count_argument(const struct mpi_call_frame *frame, char letter);
uint64_t mpi_get_count_array_element(const struct mpi_call_frame *frame, char letter,
				     uint32_t index);
uintptr_t mpi_get_datatype_argument(const struct mpi_call_frame *frame, char letter);
uintptr_t mpi_get_datatype_array_element(const struct mpi_call_frame *frame, char letter,
					 uint32_t index);
uintptr_t mpi_get_communicator_argument(const struct mpi_call_frame *frame);
/* That a call has made; 0: none for this process. */
uintptr_t mpi_get_made_communicator(const struct mpi_call_frame *frame);
/* Handles of requests: number `index` of the array, of the request that a call has made, of a
 * message. */
uintptr_t mpi_get_request_handle(const struct mpi_call_frame *frame, uint32_t index);
uintptr_t mpi_get_made_request_handle(const struct mpi_call_frame *frame);
uintptr_t mpi_get_message_handle(const struct mpi_call_frame *frame);
/* Where the argument points to, in C and Fortran alike; 0 for NULL. */
int mpi_get_pointed_integer(const struct mpi_call_frame *frame, char letter, uint32_t index);
/* The call says in its flag that nothing has happened. */
bool mpi_call_found_nothing(const struct mpi_call_frame *frame);
bool mpi_statuses_are_ignored(const struct mpi_call_frame *frame);
bool mpi_argument_is_in_place(const struct mpi_call_frame *frame, char letter);
bool mpi_status_is_ignored(const struct mpi_call_frame *frame);
/* The status of a call that has one, kymo's own or the program's; NULL: there is none. */
const void *mpi_find_status(const struct mpi_call_frame *frame);
bool mpi_call_succeeded(const struct mpi_call_frame *frame);

/* ---- communicators.c ---- */

#define MPI_COMMUNICATOR_NAME_SIZE 64

struct mpi_communicator {
	uintptr_t handle; /* 0: none */
	int rank, size;
	int peer_count; /* processes that ranks of messages count: of the remote group, if there is
			 * one
			 */
	bool is_intercommunicator, is_world, has_world_ranks;
	bool is_named_by_program;
	bool is_new;      /* looked up for the first time; its definition is not recorded yet */
	uint32_t serial;  /* of the entry: another one for another communicator of this handle */
	uint32_t made;    /* the n-th that was made of its members; 0: not seen */
	uint64_t context; /* of members and order of making, the same in all of them; 0: kymo does
			   * not know */
	char name[MPI_COMMUNICATOR_NAME_SIZE];
	int *world_ranks; /* of `peers`; NULL: not known */
};

/* Asks MPI the first time. After a successful call that used the communicator. */
void mpi_communicator_look_up(uintptr_t handle, struct mpi_communicator *ret);
/* It was made by a call that all its members made: the first of those with these members, the
 * second, and so on. So it gets the same name in all of them. */
void mpi_communicator_note_creation(uintptr_t handle);
/* The same of MPI_Comm_idup, whose communicator may not be used yet: it has the members of `from`.
 */
void mpi_communicator_note_copy(uintptr_t from, uintptr_t handle);
/* It is freed. */
void mpi_communicator_forget(uintptr_t handle);
/* It has another name. */
void mpi_communicator_rename(uintptr_t handle);
/* Its definition was recorded. */
void mpi_communicator_set_defined(const struct mpi_communicator *communicator);
/* In the process, if it still is the one with the serial; false: it is not. */
bool mpi_communicator_find(uintptr_t handle, uint32_t serial, struct mpi_communicator *ret);
/* As a list of world ranks, "0-3,7"; empty where they are not known. */
void mpi_communicator_format_members(const struct mpi_communicator *communicator, char *ret,
				     size_t size);

/* ---- bytes.c ---- */

struct mpi_call_byte_counts {
	bool has_send_side, has_receive_side; /* the function does; the amounts may be 0 */
	uint64_t sent_bytes, received_bytes;
};

/* As the status of a receive says; false: it says nothing. */
bool mpi_status_get_bytes(const void *status, uint64_t *ret);

/* After a successful call. What this process contributes and gets: a collective that is made of
 * many messages in the library counts its arguments. */
void mpi_count_call_bytes(const struct mpi_call_frame *frame,
			  const struct mpi_communicator *communicator,
			  struct mpi_call_byte_counts *ret);

#endif

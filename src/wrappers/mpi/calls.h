/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The functions of MPI, each a row of one table: how many arguments it has, how bytes are counted,
 * and what its arguments mean. The replacements are made from it (stubs.c), because all of
 * them do the same: pass their arguments on as they are, as 64-bit words.
 *
 * Left out are functions that do not communicate and cost as much as being looked at: MPI_Wtime,
 * MPI_Wtick (they return a double), the conversions of handles and statuses between C and Fortran,
 * and MPI_T.
 */
#ifndef KYMO_WRAPPERS_MPI_CALLS_H
#define KYMO_WRAPPERS_MPI_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a function's bytes are counted (bytes.c), and which functions do more than that. */
enum mpi_call_kind {
	MPI_WITHOUT_BYTES,
	MPI_SEND,
	MPI_RECEIVE,
	MPI_EXCHANGE, /* sends and receives, point to point */
	MPI_BCAST,
	MPI_REDUCE,
	MPI_ALLREDUCE,
	MPI_GATHER,
	MPI_SCATTER,
	MPI_ALLGATHER,
	MPI_ALLTOALL,
	MPI_REDUCE_SCATTER,
	MPI_NEIGHBOR, /* bytes to each neighbour */
	MPI_FILE,
	MPI_PROBE,       /* for a message; MPI_Mprobe takes it as well */
	MPI_COMPLETE,    /* MPI_Wait, MPI_Test and their kin: ends operations */
	MPI_START,       /* of persistent requests */
	MPI_REQUEST_END, /* a request is freed */
	MPI_INIT,
	MPI_FINALIZE,
	MPI_PCONTROL,
	MPI_COMM_CHANGE /* a communicator ends or gets a name */
};

struct mpi_call_description {
	const char *name;
	uint8_t arguments; /* of the C function; Fortran has one more, for the error */
	uint8_t kind;
	bool makes_persistent_request; /* prepares what MPI_Start does: nothing is transferred yet
					*/
	/* What each argument is, a letter each; what follows the last is of no interest.
	 *   b send buffer       n, d count and type of what is sent        v, w arrays of them
	 *   B receive buffer    N, D count and type of what is received    V, W arrays of them
	 *   m factor of the count (partitions)
	 *   p destination   P source   t its tag   T tag of what is received
	 *   r root   g target in a window
	 *   c communicator   C pointer to one   o pointer to one that is made
	 *   s status   S statuses   F flag: something was found or completed
	 *   q number of requests   Q a request, or all of them   R request that is made
	 *   I index or indices   O number of indices   M matched message */
	const char *argument_letters;
};

#define MPI_CALLS_MAX 448 /* multiple of 64; stubs are made for so many */

extern const struct mpi_call_description mpi_calls[];
extern const uint32_t mpi_calls_count;

/* Position of the argument with this letter, or -1. */
int mpi_call_find_argument_position(const struct mpi_call_description *call, char letter);

/* Names under which a function is called. */
enum mpi_spelling {
	MPI_SPELLING_C,
	MPI_SPELLING_C_LARGE,             /* MPI_Send_c: counts are MPI_Count */
	MPI_SPELLING_LOWER_UNDERSCORE,    /* mpi_send_ */
	MPI_SPELLING_LOWER_2_UNDERSCORES, /* mpi_send__ */
	MPI_SPELLING_LOWER_PLAIN,         /* mpi_send */
	MPI_SPELLING_UPPER,
	MPI_SPELLING_F08,         /* mpi_send_f08_ */
	MPI_SPELLING_F08TS,       /* mpi_send_f08ts_: buffers are described (TS 29113) */
	MPI_SPELLING_F08TS_LARGE, /* mpi_send_f08ts_large_ */
	MPI_SPELLING_COUNT
};

static inline bool mpi_spelling_is_fortran(enum mpi_spelling spelling)
{
	return spelling >= MPI_SPELLING_LOWER_UNDERSCORE;
}

static inline bool mpi_spelling_is_large(enum mpi_spelling spelling)
{
	return spelling == MPI_SPELLING_C_LARGE || spelling == MPI_SPELLING_F08TS_LARGE;
}

/* The name of a function in a spelling; 0, or -ENAMETOOLONG. */
int mpi_call_format_name_in_spelling(const struct mpi_call_description *call,
				     enum mpi_spelling spelling, char *ret, size_t size);

/* Is the function in the lists of names and shell patterns ("MPI_I*,MPI_Wait")? An empty or missing
 * `permit` permits all. Letter case does not matter. */
bool mpi_call_is_selected(const struct mpi_call_description *call, const char *permit,
			  const char *reject);
/* The first word of such a list that is no function's name, or NULL. */
const char *mpi_list_find_unknown_word(const char *list, size_t *ret_length);

#endif

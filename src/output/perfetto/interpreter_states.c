/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A track for each thread of Python: what it does about the global lock. Samples are spread over
 * pieces of time, backwards from when they were taken, since samples of one thread do not come in
 * the order of time and memory must not grow with them. A slice is a row of pieces in which the
 * same state takes most of the time; its arguments have the shares of all states in it.
 */
#include <errno.h>
#include <stdlib.h>

#include "output/interpreter_states.h"
#include "output/perfetto/perfetto.h"

enum {
	STATE_PIECES_MAX = 2000,   /* of the whole trace, at most */
	STATE_THREADS_MAX = 1024,  /* further threads have no such track */
	STATE_TRACK_BIT = 1 << 30, /* in the lower half of a thread's uuid */
	SLICE_BEGIN = 1,
	SLICE_END = 2,
	ANNOTATION_DOUBLE = 5,
	ANNOTATION_NAME = 10,
};
#define STATE_PIECE_NS_LEAST UINT64_C(1000000)

/* The time of each state in one piece. */
struct perfetto_state_piece {
	uint64_t ns[INTERPRETER_STATE_END], sum_ns;
};

struct perfetto_interpreter_states {
	struct perfetto_state_piece **pieces_of_thread; /* NULL: none of Python's */
	uint64_t piece_ns;
	uint32_t thread_count; /* that have pieces */
};

int perfetto_interpreter_states_init(struct perfetto_trace *trace)
{
	const struct session *session = trace->session;
	uint64_t length =
		session->end_ns > session->start_ns ? session->end_ns - session->start_ns : 0;
	struct perfetto_interpreter_states *states = calloc(1, sizeof(*states));

	trace->interpreter_states = states;
	if (states == NULL)
		return -ENOMEM;
	states->piece_ns = length / STATE_PIECES_MAX + 1;
	if (states->piece_ns < STATE_PIECE_NS_LEAST)
		states->piece_ns = STATE_PIECE_NS_LEAST;
	states->pieces_of_thread =
		calloc((size_t)session->thread_count + 1,
		       sizeof(*states->pieces_of_thread)); // NOLINT: an array of pointers
	return states->pieces_of_thread == NULL ? -ENOMEM : 0;
}

void perfetto_interpreter_states_deinit(struct perfetto_trace *trace)
{
	struct perfetto_interpreter_states *states = trace->interpreter_states;

	if (states == NULL)
		return;
	for (uint32_t i = 0; states->pieces_of_thread != NULL && i < trace->session->thread_count;
	     i++)
		free(states->pieces_of_thread[i]);
	free(states->pieces_of_thread);
	free(states);
	trace->interpreter_states = NULL;
}

int perfetto_interpreter_states_add_sample(struct perfetto_trace *trace,
					   const struct model_sample *sample)
{
	struct perfetto_interpreter_states *states = trace->interpreter_states;
	struct perfetto_state_piece **pieces = &states->pieces_of_thread[sample->thread];
	unsigned state = interpreter_state_of_sample(sample);
	uint64_t start = trace->session->start_ns, rest = sample->weight, at;

	if (state == SPOOL_INTERPRETER_STATE_NONE || sample->blocked)
		return 0;
	if (*pieces == NULL) {
		if (states->thread_count == STATE_THREADS_MAX)
			return 0;
		*pieces = calloc(STATE_PIECES_MAX + 1, sizeof(**pieces));
		if (*pieces == NULL)
			return -ENOMEM;
		states->thread_count++;
	}
	at = sample->time_ns > start ? (sample->time_ns - start) / states->piece_ns : 0;
	for (uint64_t i = at < STATE_PIECES_MAX ? at : STATE_PIECES_MAX; rest > 0; i--) {
		struct perfetto_state_piece *piece = &(*pieces)[i];
		uint64_t room = states->piece_ns - piece->sum_ns;
		uint64_t part = rest < room ? rest : room;

		piece->ns[state] += part;
		piece->sum_ns += part;
		rest -= part;
		if (i == 0)
			break;
	}
	return 0;
}

/* The state that takes most of the piece; NONE: less than half of its time is known. */
static unsigned find_main_state(const struct perfetto_interpreter_states *states,
				const struct perfetto_state_piece *piece)
{
	unsigned most = INTERPRETER_STATE_FIRST;

	for (unsigned state = INTERPRETER_STATE_FIRST; state < INTERPRETER_STATE_END; state++) {
		if (piece->ns[state] > piece->ns[most])
			most = state;
	}
	return piece->sum_ns >= states->piece_ns / 2 ? most : SPOOL_INTERPRETER_STATE_NONE;
}

static void open_slice_event(struct perfetto_trace *trace, uint64_t track, uint64_t time_ns,
			     unsigned type)
{
	perfetto_open_metadata_packet(trace, time_ns);
	protobuf_open_message(&trace->writer, PACKET_FIELD_TRACK_EVENT);
	protobuf_write_uint(&trace->writer, TRACK_EVENT_FIELD_TYPE, type);
	protobuf_write_uint(&trace->writer, TRACK_EVENT_FIELD_TRACK_UUID, track);
}

static void close_slice_event(struct perfetto_trace *trace)
{
	protobuf_close_message(&trace->writer);
	perfetto_close_metadata_packet(trace);
}

static void write_shares(struct protobuf_writer *writer, const struct perfetto_state_piece *sums)
{
	for (unsigned state = INTERPRETER_STATE_FIRST; state < INTERPRETER_STATE_END; state++) {
		if (sums->ns[state] == 0)
			continue;
		protobuf_open_message(writer, TRACK_EVENT_FIELD_ANNOTATIONS);
		protobuf_write_string(writer, ANNOTATION_NAME, interpreter_state_get_text(state));
		protobuf_write_double(writer, ANNOTATION_DOUBLE,
				      100.0 * (double)sums->ns[state] / (double)sums->sum_ns);
		protobuf_close_message(writer);
	}
}

/* The thread may begin and end in the midst of a piece. */
static uint64_t get_time_of_piece(const struct perfetto_trace *trace, uint32_t thread,
				  uint64_t piece)
{
	const struct model_thread *it = &trace->session->threads[thread];
	uint64_t time_ns = trace->session->start_ns + piece * trace->interpreter_states->piece_ns;

	if (time_ns > it->end_ns)
		time_ns = it->end_ns;
	return time_ns > it->start_ns ? time_ns : it->start_ns;
}

struct state_slice {
	uint32_t thread;
	uint64_t track, first, end; /* pieces */
	unsigned state;
	struct perfetto_state_piece sums;
};

static void write_state_slice(struct perfetto_trace *trace, const struct state_slice *slice)
{
	open_slice_event(trace, slice->track, get_time_of_piece(trace, slice->thread, slice->first),
			 SLICE_BEGIN);
	protobuf_write_string(&trace->writer, TRACK_EVENT_FIELD_CATEGORIES, "python_lock");
	protobuf_write_string(&trace->writer, TRACK_EVENT_FIELD_NAME,
			      interpreter_state_get_text(slice->state));
	write_shares(&trace->writer, &slice->sums);
	close_slice_event(trace);
	open_slice_event(trace, slice->track, get_time_of_piece(trace, slice->thread, slice->end),
			 SLICE_END);
	close_slice_event(trace);
}

static void add_piece(struct perfetto_state_piece *to, const struct perfetto_state_piece *piece)
{
	for (unsigned state = 0; state < INTERPRETER_STATE_END; state++)
		to->ns[state] += piece->ns[state];
	to->sum_ns += piece->sum_ns;
}

static void write_thread_states(struct perfetto_trace *trace, uint32_t thread,
				const struct perfetto_state_piece *pieces)
{
	const struct perfetto_interpreter_states *states = trace->interpreter_states;
	uint64_t parent = perfetto_get_thread_track_uuid(trace, thread);
	struct state_slice slice = {.thread = thread, .track = parent | STATE_TRACK_BIT};

	perfetto_write_track_descriptor(trace, slice.track, parent, "Python's global lock");
	for (; slice.first <= STATE_PIECES_MAX; slice.first = slice.end) {
		slice.state = find_main_state(states, &pieces[slice.first]);
		slice.sums = (struct perfetto_state_piece){.sum_ns = 0};
		for (slice.end = slice.first;
		     slice.end <= STATE_PIECES_MAX &&
		     find_main_state(states, &pieces[slice.end]) == slice.state;
		     slice.end++)
			add_piece(&slice.sums, &pieces[slice.end]);
		if (slice.state != SPOOL_INTERPRETER_STATE_NONE)
			write_state_slice(trace, &slice);
	}
}

void perfetto_interpreter_states_write_slices(struct perfetto_trace *trace)
{
	struct perfetto_state_piece **pieces = trace->interpreter_states->pieces_of_thread;

	for (uint32_t thread = 0; thread < trace->session->thread_count; thread++) {
		if (pieces[thread] != NULL)
			write_thread_states(trace, thread, pieces[thread]);
	}
}

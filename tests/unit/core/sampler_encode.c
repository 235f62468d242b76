/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What is encoded comes back: decoded here by the letter of kymo/spool.h, and by the analysis room.
 */
#include "unit/core/core_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/spool_reader.h"
#include "core/spool/sample_record.h"
#include "unit/analysis/spool_fixture.h"
#include "unit/analysis/test_directory.h"

#define DEPTH 4096

/* Both sides of a stream: what the encoder keeps, and what the decoder knows. */
struct stream {
	uint64_t previous[DEPTH]; /* innermost first */
	uint64_t known[DEPTH];    /* outermost first */
	uint64_t encoder_metrics[SPOOL_METRIC_COUNT], metrics[SPOOL_METRIC_COUNT];
	uint64_t encoder_time, encoder_weight, time, weight;
	uint32_t previous_count, depth;
};

static struct stream stream;
static uint8_t record[DEPTH * 10 + 512 + SPOOL_BUFFER_PADDING_BYTES];

static int reset(void **state)
{
	(void)state;
	memset(&stream, 0, sizeof(stream));
	return 0;
}

static uint64_t random_bits(unsigned bits)
{
	static uint64_t state = 88172645463325252;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state >> (64 - bits);
}

static uint8_t *encode(const struct sample_encoder_input *sample)
{
	const struct sample_encoder_state state = {stream.previous, stream.previous_count,
						   stream.encoder_time, stream.encoder_weight,
						   stream.encoder_metrics};
	uint32_t common = sample_record_count_common_frames(&state, sample);
	uint8_t *end = sample_record_encode(record, &state, sample, common);

	assert_true((size_t)(end - record) <=
		    sample_record_compute_size_max(sample->count - common));
	memmove(stream.previous, sample->frames, sample->count * sizeof(*sample->frames));
	stream.previous_count = sample->count;
	stream.encoder_time = sample->time;
	stream.encoder_weight = sample->weight;
	return end;
}

static void decode_frames(struct spool_record_payload_cursor *payload)
{
	uint64_t common = spool_read_unsigned(payload), fresh = spool_read_unsigned(payload),
		 base = 0;

	assert_true(common <= stream.depth && common + fresh <= DEPTH);
	if (common < stream.depth)
		base = stream.known[common];
	else if (common)
		base = stream.known[common - 1];
	for (uint64_t i = 0; i < fresh; i++)
		base = stream.known[common + i] = base + (uint64_t)spool_read_signed(payload);
	stream.depth = (uint32_t)(common + fresh);
}

static void decode_metrics(struct spool_record_payload_cursor *payload)
{
	uint64_t bitmap = spool_read_unsigned(payload);

	for (unsigned i = 0; i < SPOOL_METRIC_COUNT; i++) {
		if (bitmap & 1u << i)
			stream.metrics[i] += spool_read_unsigned(payload);
	}
}

/* Encodes, decodes, compares. Returns the payload's size. */
static size_t round_trip(const struct sample_encoder_input *sample)
{
	struct spool_chunk_record_cursor cursor = {record, encode(sample)};
	struct spool_record_payload_cursor payload = {0};
	unsigned flags;
	size_t size;

	assert_true(spool_read_next_record(&cursor, &payload));
	assert_ptr_equal(cursor.at, cursor.end);
	size = (size_t)(payload.end - payload.at);
	assert_true(payload.kind >= SPOOL_RECORD_SAMPLE_COMPACT);
	flags = payload.kind - SPOOL_RECORD_SAMPLE_COMPACT;
	stream.time += spool_read_unsigned(&payload);
	stream.weight += (uint64_t)spool_read_signed(&payload);
	decode_frames(&payload);
	if (sample->source == SPOOL_SOURCE_OVERFLOW)
		assert_int_equal(spool_read_unsigned(&payload), 0);
	if (flags & 4)
		decode_metrics(&payload);
	if (sample->interpreter_state)
		assert_int_equal(spool_read_unsigned(&payload), sample->interpreter_state);
	assert_false(payload.bad);
	assert_ptr_equal(payload.at, payload.end);
	assert_int_equal(flags & 3, sample->source);
	assert_int_equal(!!(flags & 8), sample->has_stale_modules);
	assert_int_equal(flags >> 4, sample->end);
	assert_int_equal(stream.time, sample->time);
	assert_int_equal(stream.weight, sample->weight);
	assert_int_equal(stream.depth, sample->count);
	for (uint32_t i = 0; i < sample->count; i++)
		assert_int_equal(stream.known[i], sample->frames[sample->count - 1 - i]);
	if (sample->metrics)
		assert_memory_equal(stream.metrics, sample->metrics, sizeof(stream.metrics));
	return size;
}

static void stacks_of_any_depth_come_back(void **state)
{
	static const uint32_t depths[] = {0, 1, 512, 4096, 1, 0, 0, 4096, 4095, 4096, 2};
	uint64_t frames[DEPTH];

	(void)state;
	for (size_t i = 0; i < LENGTH(depths); i++) {
		for (uint32_t j = 0; j < depths[i]; j++)
			frames[j] = random_bits(47);
		round_trip(&(struct sample_encoder_input){.frames = frames, .count = depths[i]});
	}
}

static void states_of_interpreters_come_last(void **state)
{
	static const uint64_t frames[] = {1, 2, 3};
	uint64_t metrics[SPOOL_METRIC_COUNT] = {7};
	struct sample_encoder_input sample = {.frames = frames, .count = 3};
	size_t without = round_trip(&sample);

	(void)state;
	assert_int_equal(without, round_trip(&sample) + 3); /* its frames are known now */
	for (unsigned is = 1; is < SPOOL_INTERPRETER_STATE_COUNT; is++) {
		sample.interpreter_state = (enum spool_interpreter_state)is;
		assert_int_equal(round_trip(&sample), without - 3 + 1);
	}
	sample.metrics = metrics;
	round_trip(&sample);
}

static void extreme_addresses_times_and_weights_come_back(void **state)
{
	static const uint64_t extremes[] = {0, UINT64_MAX, 1, INT64_MAX, 1ull << 63, UINT64_MAX};
	uint64_t metrics[SPOOL_METRIC_COUNT];

	(void)state;
	for (size_t i = 0; i < LENGTH(extremes); i++) {
		for (unsigned j = 0; j < SPOOL_METRIC_COUNT; j++)
			metrics[j] = extremes[(i + j) % LENGTH(extremes)];
		round_trip(
			&(struct sample_encoder_input){.frames = extremes,
						       .count = (uint32_t)(LENGTH(extremes) - i),
						       .source = SPOOL_SOURCE_OVERFLOW,
						       .time = extremes[i],
						       .weight = extremes[LENGTH(extremes) - 1 - i],
						       .metrics = metrics});
	}
}

static void every_source_end_and_mark_comes_back(void **state)
{
	static const uint64_t frames[] = {1, 2, 3};

	(void)state;
	for (unsigned i = 0; i < SPOOL_SOURCE_COUNT * SPOOL_STACK_END_COUNT * 2; i++)
		round_trip(&(struct sample_encoder_input){
			.frames = frames,
			.count = 3,
			.source = i % SPOOL_SOURCE_COUNT,
			.end = i / SPOOL_SOURCE_COUNT % SPOOL_STACK_END_COUNT,
			.has_stale_modules = i / SPOOL_SOURCE_COUNT / SPOOL_STACK_END_COUNT});
}

/* A walk through a call tree: most frames stay, some change, depth goes up and down. */
static uint32_t next_stack(uint64_t *frames, uint32_t count, uint32_t depth, unsigned bits)
{
	uint32_t change = (uint32_t)random_bits(4) * (uint32_t)random_bits(3);
	uint32_t kept = change < count ? count - change : 0;
	uint32_t fresh = (uint32_t)random_bits(5);

	if (kept + fresh > depth)
		fresh = depth - kept;
	memmove(frames + fresh, frames + count - kept, kept * sizeof(*frames));
	for (uint32_t i = 0; i < fresh; i++)
		frames[i] = random_bits(bits);
	return kept + fresh;
}

static void random_streams_come_back(void **state)
{
	static uint64_t frames[DEPTH];
	uint64_t metrics[SPOOL_METRIC_COUNT] = {0}, time = 1000;
	uint32_t count = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		count = next_stack(frames, count, 600, i % 2 ? 24 : 48);
		time += random_bits(1 + (unsigned)i % 40);
		metrics[random_bits(8) % SPOOL_METRIC_COUNT] += random_bits(20);
		round_trip(&(struct sample_encoder_input){
			.frames = frames,
			.count = count,
			.source = (enum spool_sample_source)random_bits(2),
			.time = time,
			.weight = random_bits(1 + (unsigned)i % 50),
			.metrics = i % 3 ? NULL : metrics});
	}
}

/* Frames whose deltas take one byte, then ones whose deltas take five, so that the payload has
 * exactly `size` bytes. */
static void payload_of(size_t size)
{
	static uint64_t frames[DEPTH];
	size_t left = size - 4 - (size > 200), ones = size > 200 ? left % 5 : left;
	uint32_t count = (uint32_t)(ones + (left - ones) / 5);
	uint64_t pc = 0;

	reset(NULL);
	for (uint32_t i = 0; i < count; i++) {
		pc += i < ones ? 1 : 1 << 28;
		frames[count - 1 - i] = pc;
	}
	assert_int_equal(
		round_trip(&(struct sample_encoder_input){.frames = frames, .count = count}), size);
}

static void lengths_of_one_two_and_three_bytes_come_back(void **state)
{
	(void)state;
	for (size_t size = 4; size <= 130; size++)
		payload_of(size);
	for (size_t size = 16376; size <= 16390; size++)
		payload_of(size);
}

static void the_same_stack_again_is_a_few_bytes(void **state)
{
	static uint64_t frames[512];

	(void)state;
	for (size_t i = 0; i < LENGTH(frames); i++)
		frames[i] = 0x7f0000000000 + random_bits(20);
	round_trip(&(struct sample_encoder_input){
		.frames = frames, .count = 512, .time = 10, .weight = 1000000});
	assert_in_range(round_trip(&(struct sample_encoder_input){
				.frames = frames, .count = 512, .time = 20, .weight = 1000003}),
			4, 5);
}

static void metrics_are_written_where_they_changed(void **state)
{
	uint64_t metrics[SPOOL_METRIC_COUNT] = {[SPOOL_METRIC_MINOR_FAULTS] = 5};
	const struct sample_encoder_input sample = {.frames = metrics, .metrics = metrics};
	size_t first, second;

	(void)state;
	first = round_trip(&sample);
	second = round_trip(&sample);
	assert_int_equal(second, 4);
	assert_int_equal(first, second + 2);
	metrics[SPOOL_METRIC_COUNT - 1] = 1;
	assert_int_equal(round_trip(&sample), second + 3);
}

/* ---- through the analysis room ---- */

#define CODE      UINT64_C(0x400000)
#define CODE_SIZE (1u << 30)

enum { SAMPLES = 3000, SESSION_DEPTH = 400 };

struct expected {
	uint64_t *frames[SAMPLES], time[SAMPLES], weight[SAMPLES], faults[SAMPLES];
	uint32_t count[SAMPLES];
	enum spool_sample_source source[SAMPLES];
	size_t at;
	const struct session *session;
};

static void write_sample(struct spool_fixture *fixture, const struct sample_encoder_input *sample)
{
	struct spool_chunk_record_cursor cursor = {record, encode(sample)};
	struct spool_record_payload_cursor payload = {0};

	assert_true(spool_read_next_record(&cursor, &payload));
	fixture_record(fixture, payload.kind, payload.at, (size_t)(payload.end - payload.at));
}

static int compare(const struct model_sample *sample, void *context)
{
	struct expected *expected = context;
	const struct session *session = expected->session;
	size_t i = expected->at++;
	uint32_t node = sample->node;

	assert_true(i < SAMPLES);
	assert_int_equal(sample->source, expected->source[i]);
	assert_int_equal(sample->weight, expected->weight[i]);
	assert_int_equal(sample->time_ns, expected->time[i] + FIXTURE_BOOT);
	assert_int_equal(sample->metrics[SPOOL_METRIC_MINOR_FAULTS], expected->faults[i]);
	if (sample->source == SPOOL_SOURCE_RUNNABLE) { /* in a frame of its own */
		assert_int_equal(session->frames[session->nodes[node].frame].kind,
				 FRAME_THREAD_STATE);
		node = session->nodes[node].parent;
	}
	for (uint32_t j = 0; j < expected->count[i]; j++) {
		assert_int_not_equal(node, MODEL_ENTRY_INDEX_NONE);
		const struct model_frame *frame = &session->frames[session->nodes[node].frame];
		assert_int_equal(frame->relative_pc, expected->frames[i][j] - CODE - (j > 0));
		node = session->nodes[node].parent;
	}
	return 0;
}

static void sample_and_expect(struct spool_fixture *fixture, struct expected *expected, size_t i)
{
	static uint64_t frames[SESSION_DEPTH], metrics[SPOOL_METRIC_COUNT];
	static uint32_t count;

	do {
		count = next_stack(frames, count, SESSION_DEPTH, 12);
		for (uint32_t j = 0; j < count; j++)
			frames[j] |= CODE | 1 << 13; /* new ones */
	} while (!count);
	metrics[SPOOL_METRIC_MINOR_FAULTS] += random_bits(3);
	expected->frames[i] = test_malloc(count * sizeof(*frames));
	memcpy(expected->frames[i], frames, count * sizeof(*frames));
	expected->count[i] = count;
	expected->weight[i] = random_bits(30);
	expected->source[i] = (enum spool_sample_source)random_bits(2);
	expected->faults[i] = metrics[SPOOL_METRIC_MINOR_FAULTS];
	expected->time[i] = (FIXTURE_START & ~UINT64_C(255)) + i * 256000;
	write_sample(fixture, &(struct sample_encoder_input){.frames = frames,
							     .count = count,
							     .source = expected->source[i],
							     .time = expected->time[i] >>
								     SPOOL_SAMPLE_TIME_SHIFT,
							     .weight = expected->weight[i],
							     .metrics = metrics});
}

static void the_analysis_reads_what_was_encoded(void **state)
{
	static struct expected expected;
	struct spool_fixture fixture;
	struct session *session;
	struct problem problem;

	reset(NULL);
	fixture_open_in(&fixture, *state, 100, 0);
	fixture_module(&fixture, FIXTURE_START, 1, CODE, CODE + CODE_SIZE, 0, "/nowhere/p");
	fixture_span(&fixture, 0, 100, FIXTURE_START);
	stream.encoder_time = FIXTURE_START >> SPOOL_SAMPLE_TIME_SHIFT;
	for (size_t i = 0; i < SAMPLES; i++)
		sample_and_expect(&fixture, &expected, i);
	fixture_close(&fixture);
	expected.session = session = test_session(*state, NULL);
	assert_int_equal(session->processes[0].torn_bytes, 0);
	assert_int_equal(session_visit_samples(session, compare, &expected, &problem), 0);
	assert_int_equal(expected.at, SAMPLES);
	session_close(session);
	for (size_t i = 0; i < SAMPLES; i++)
		test_free(expected.frames[i]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(stacks_of_any_depth_come_back, reset),
		cmocka_unit_test_setup(states_of_interpreters_come_last, reset),
		cmocka_unit_test_setup(extreme_addresses_times_and_weights_come_back, reset),
		cmocka_unit_test_setup(every_source_end_and_mark_comes_back, reset),
		cmocka_unit_test_setup(random_streams_come_back, reset),
		cmocka_unit_test_setup(lengths_of_one_two_and_three_bytes_come_back, reset),
		cmocka_unit_test_setup(the_same_stack_again_is_a_few_bytes, reset),
		cmocka_unit_test_setup(metrics_are_written_where_they_changed, reset),
		cmocka_unit_test_setup_teardown(the_analysis_reads_what_was_encoded,
						test_directory_create, test_directory_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

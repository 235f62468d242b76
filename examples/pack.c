/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Compresses text as xz does, in each of its threads: matches of a sliding window are found by hash
 * chains, and an adaptive range coder writes them (Martin, "Range encoding", 1979; the bit models
 * are LZMA's). Every block is unpacked again and compared. The program to try a profiler on:
 * `make demo` does.
 *
 * usage: pack [SECONDS [THREADS]]
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BLOCK_SIZE   (256 << 10)
#define PACKED_SIZE  (BLOCK_SIZE * 2)
#define HASH_BITS    15
#define CHAIN_LENGTH 48
#define DISTANCE_MAX 65535
#define MATCH_MIN    4
#define MATCH_MAX    (MATCH_MIN + 255)
#define THREADS_MAX  64
#define ONE          2048 /* a probability of 1 */
#define NO_POSITION  UINT32_MAX

/* The probability of a 0, of each bit in each place. */
struct models {
	uint16_t is_match[256];
	uint16_t literal[256][256];
	uint16_t length[256];
	uint16_t distance_high[256];
	uint16_t distance_low[256][256];
};

struct coder {
	uint8_t *bytes;
	size_t position;
	uint64_t low;
	uint32_t range, code;
	uint8_t cache;
	uint32_t pending; /* bytes that a carry may still change */
	struct models models;
};

struct worker {
	pthread_t thread;
	double seconds;
	uint64_t random;
	uint64_t blocks, bytes_out;
	bool is_wrong;
	uint8_t text[BLOCK_SIZE], packed[PACKED_SIZE], unpacked[BLOCK_SIZE];
	uint32_t head[1 << HASH_BITS], previous[BLOCK_SIZE];
	struct coder coder;
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* ---- the text: lines of a server's log ---- */

static uint32_t random_below(uint64_t *state, uint32_t limit)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)(*state >> 32) % limit;
}

static size_t append_text(uint8_t *text, size_t size, const char *word)
{
	while (*word != '\0' && size < BLOCK_SIZE)
		text[size++] = (uint8_t)*word++;
	return size;
}

static size_t append_number(uint8_t *text, size_t size, uint32_t number)
{
	char digits[11];
	size_t first = sizeof(digits) - 1;

	digits[first] = '\0';
	do {
		digits[--first] = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0);
	return append_text(text, size, &digits[first]);
}

static void make_log(uint8_t *text, uint64_t *random)
{
	uint32_t second = 1700000000 + random_below(random, 1000000);
	size_t size = 0;

	while (size < BLOCK_SIZE) {
		size = append_number(text, size, second++);
		size = append_text(text, size, " request=");
		size = append_number(text, size, random_below(random, 1000000));
		size = append_text(text, size, " status=");
		size = append_number(text, size, 200 + 100 * random_below(random, 3));
		size = append_text(text, size, " path=/item/");
		size = append_number(text, size, random_below(random, 5000));
		size = append_text(text, size, "\n");
	}
}

/* ---- the range coder ---- */

static void write_byte(struct coder *coder)
{
	if ((uint32_t)coder->low < 0xff000000 || coder->low >> 32 != 0) {
		uint8_t byte = coder->cache, carry = (uint8_t)(coder->low >> 32);

		for (; coder->pending > 0; coder->pending--) {
			if (coder->position < PACKED_SIZE)
				coder->bytes[coder->position++] = (uint8_t)(byte + carry);
			byte = 0xff;
		}
		coder->cache = (uint8_t)(coder->low >> 24);
	}
	coder->pending++;
	coder->low = (coder->low & 0x00ffffff) << 8;
}

static void encode_bit(struct coder *coder, uint16_t *probability, unsigned bit)
{
	uint32_t bound = (coder->range / ONE) * *probability;

	if (bit == 0) {
		coder->range = bound;
		*probability = (uint16_t)(*probability + (ONE - *probability) / 32);
	} else {
		coder->low += bound;
		coder->range -= bound;
		*probability = (uint16_t)(*probability - *probability / 32);
	}
	while (coder->range < 1 << 24) {
		coder->range <<= 8;
		write_byte(coder);
	}
}

static unsigned decode_bit(struct coder *coder, uint16_t *probability)
{
	uint32_t bound = (coder->range / ONE) * *probability;
	unsigned bit = coder->code >= bound;

	if (bit == 0) {
		coder->range = bound;
		*probability = (uint16_t)(*probability + (ONE - *probability) / 32);
	} else {
		coder->code -= bound;
		coder->range -= bound;
		*probability = (uint16_t)(*probability - *probability / 32);
	}
	while (coder->range < 1 << 24) {
		uint8_t next = coder->position < PACKED_SIZE ? coder->bytes[coder->position++] : 0;

		coder->range <<= 8;
		coder->code = coder->code << 8 | next;
	}
	return bit;
}

static void encode_symbol(struct coder *coder, uint16_t tree[256], unsigned symbol)
{
	unsigned node = 1;

	for (int i = 7; i >= 0; i--) {
		unsigned bit = symbol >> i & 1;

		encode_bit(coder, &tree[node], bit);
		node = node << 1 | bit;
	}
}

static unsigned decode_symbol(struct coder *coder, uint16_t tree[256])
{
	unsigned node = 1;

	while (node < 256)
		node = node << 1 | decode_bit(coder, &tree[node]);
	return node & 0xff;
}

static void begin_coding(struct coder *coder, uint8_t *bytes)
{
	uint16_t *probabilities = (uint16_t *)(void *)&coder->models;

	for (size_t i = 0; i < sizeof(coder->models) / sizeof(*probabilities); i++)
		probabilities[i] = ONE / 2;
	coder->bytes = bytes;
	coder->position = 0;
	coder->low = 0;
	coder->range = UINT32_MAX;
	coder->code = 0;
	coder->cache = 0;
	coder->pending = 1;
}

/* ---- matches ---- */

static uint32_t hash_of(const uint8_t *text)
{
	uint32_t word;

	memcpy(&word, text, sizeof(word));
	return word * 2654435761u >> (32 - HASH_BITS);
}

static void insert_position(struct worker *worker, uint32_t position)
{
	uint32_t hash;

	if (position + MATCH_MIN > BLOCK_SIZE)
		return;
	hash = hash_of(&worker->text[position]);
	worker->previous[position] = worker->head[hash];
	worker->head[hash] = position;
}

static uint32_t match_length(const uint8_t *one, const uint8_t *other, uint32_t limit)
{
	uint32_t length = 0;

	while (length < limit && one[length] == other[length])
		length++;
	return length;
}

/* The length of the longest match of what begins at `position`; 0: none is long enough. */
static uint32_t find_match(const struct worker *worker, uint32_t position, uint32_t *ret_distance)
{
	const uint8_t *text = worker->text;
	uint32_t limit = BLOCK_SIZE - position < MATCH_MAX ? BLOCK_SIZE - position : MATCH_MAX;
	uint32_t best = MATCH_MIN - 1, candidate;

	if (limit < MATCH_MIN)
		return 0;
	candidate = worker->head[hash_of(&text[position])];
	for (int i = 0; i < CHAIN_LENGTH && candidate != NO_POSITION; i++) {
		uint32_t length;

		if (position - candidate > DISTANCE_MAX)
			break;
		length = match_length(&text[candidate], &text[position], limit);
		if (length > best) {
			best = length;
			*ret_distance = position - candidate;
		}
		candidate = worker->previous[candidate];
	}
	return best < MATCH_MIN ? 0 : best;
}

/* ---- blocks ---- */

static size_t pack(struct worker *worker)
{
	struct coder *coder = &worker->coder;
	struct models *models = &coder->models;
	uint8_t last = 0;

	begin_coding(coder, worker->packed);
	memset(worker->head, 0xff, sizeof(worker->head));
	for (uint32_t position = 0; position < BLOCK_SIZE;) {
		uint32_t distance = 0, length = find_match(worker, position, &distance);

		encode_bit(coder, &models->is_match[last], length > 0);
		if (length > 0) {
			encode_symbol(coder, models->length, length - MATCH_MIN);
			encode_symbol(coder, models->distance_high, distance >> 8);
			encode_symbol(coder, models->distance_low[distance >> 8], distance & 0xff);
		} else {
			length = 1;
			encode_symbol(coder, models->literal[last], worker->text[position]);
		}
		for (uint32_t end = position + length; position < end; position++)
			insert_position(worker, position);
		last = worker->text[position - 1];
	}
	for (int i = 0; i < 5; i++)
		write_byte(coder);
	return coder->position;
}

static bool unpack(struct worker *worker)
{
	struct coder *coder = &worker->coder;
	struct models *models = &coder->models;
	uint8_t *text = worker->unpacked, last = 0;

	begin_coding(coder, worker->packed);
	for (coder->position = 1; coder->position < 5; coder->position++)
		coder->code = coder->code << 8 | coder->bytes[coder->position];
	for (uint32_t position = 0; position < BLOCK_SIZE; last = text[position - 1]) {
		uint32_t length, distance;

		if (decode_bit(coder, &models->is_match[last]) == 0) {
			text[position++] = (uint8_t)decode_symbol(coder, models->literal[last]);
			continue;
		}
		length = MATCH_MIN + decode_symbol(coder, models->length);
		distance = decode_symbol(coder, models->distance_high);
		distance = distance << 8 | decode_symbol(coder, models->distance_low[distance]);
		if (distance == 0 || distance > position || length > BLOCK_SIZE - position)
			return false;
		for (; length > 0; length--, position++)
			text[position] = text[position - distance];
	}
	return true;
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	double end = now() + worker->seconds;

	do {
		make_log(worker->text, &worker->random);
		worker->bytes_out += pack(worker);
		worker->is_wrong =
			!unpack(worker) || memcmp(worker->text, worker->unpacked, BLOCK_SIZE) != 0;
		worker->blocks++;
	} while (!worker->is_wrong && now() < end);
	return NULL;
}

int main(int count, char **arguments)
{
	double seconds = count > 1 ? strtod(arguments[1], NULL) : 4;
	long threads = count > 2 ? strtol(arguments[2], NULL, 10) : 2;
	struct worker *workers[THREADS_MAX];
	uint64_t blocks = 0, bytes_out = 0;
	bool is_wrong = false;

	if (!(seconds > 0) || threads < 1 || threads > THREADS_MAX) {
		fprintf(stderr,
			"usage: pack [SECONDS [THREADS]]: more than 0 seconds, 1 to %d threads\n",
			THREADS_MAX);
		return 2;
	}
	for (long i = 0; i < threads; i++) {
		workers[i] = calloc(1, sizeof(**workers));
		if (workers[i] == NULL)
			return 1;
		workers[i]->seconds = seconds;
		workers[i]->random = 88172645463325252u + (uint64_t)i;
		if (pthread_create(&workers[i]->thread, NULL, work, workers[i]) != 0)
			return 1;
	}
	for (long i = 0; i < threads; i++) {
		pthread_join(workers[i]->thread, NULL);
		blocks += workers[i]->blocks;
		bytes_out += workers[i]->bytes_out;
		is_wrong = is_wrong || workers[i]->is_wrong;
		free(workers[i]);
	}
	printf("%llu blocks of 256 KiB, packed to %.1f %%, %s\n", (unsigned long long)blocks,
	       100.0 * (double)bytes_out / ((double)blocks * BLOCK_SIZE),
	       is_wrong ? "unpacked wrongly" : "unpacked again");
	return is_wrong ? 1 : 0;
}

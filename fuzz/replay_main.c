/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Replays a fuzzer's corpus without libFuzzer: every file given, and every file in every directory
 * given, goes through LLVMFuzzerTestOneInput once. What once crashed stays a test with any
 * compiler.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned replayed;

static int replay_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = NULL;
	size_t size = 0, got = 0;

	if (!file) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return 1;
	}
	do {
		uint8_t *larger = realloc(data, size + 65536);

		if (!larger)
			abort();
		data = larger;
		got = fread(data + size, 1, 65536, file);
		size += got;
	} while (got > 0);
	fclose(file);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	replayed++;
	return 0;
}

static int replay(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	int status = 0;

	if (!directory)
		return replay_file(path);
	while ((entry = readdir(directory))) {
		char child[4096];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(child, sizeof(child), "%s/%s", path, entry->d_name);
		status |= replay_file(child);
	}
	closedir(directory);
	return status;
}

int main(int argc, char **argv)
{
	int status = 0;

	for (int i = 1; i < argc; i++)
		status |= replay(argv[i]);
	printf("%u inputs replayed\n", replayed);
	return status;
}

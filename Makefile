# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
#
# Short names for what meson does, and the installation of what it needs. `make help` lists them.
BUILD ?= build
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 10
# More options of meson, for every build directory that is made: make MESON_OPTIONS='--buildtype=release -Db_lto=true'
MESON_OPTIONS ?=
# Tests wait about as often as they compute; those that measure run one at a time, whatever this says.
TEST_PROCESSES = --num-processes $$(($$(nproc) + 1))
MESON_TEST = meson test -C '$(BUILD)' --print-errorlogs --no-rebuild
SOURCES = git ls-files '*.c' '*.h' '*.cc'
ifneq ($(origin CC),default)
SETUP_ENV = CC='$(CC)'
endif
# What says the same of every build is tested in the default one.
CLANG_SETUP = CC=clang CXX=clang++ packaging/configure
CLANG_TEST_OPTIONS = -Dtests=true -Dsource_tests=false -Dwerror=true
# Under a sanitizer they take longer.
UNIT_TEST_OPTIONS = $(TEST_PROCESSES) --timeout-multiplier 5
# A prefix that was asked for is the build's from then on; the default is that of a build that is made.
ifneq ($(origin PREFIX),file)
PREFIX_OPTION = '-Dprefix=$(PREFIX)'
endif

.PHONY: all help deps test-deps build tests-build check check-long demo bench install deb dist \
	format format-check lint asan-build tsan-build asan tsan sanitize fuzz types clean

all: build

help:
	@echo 'make            build kymo (in $(BUILD)/)'
	@echo 'make deps       install the Debian packages that the build needs'
	@echo 'make check      build and run every test; last line: N passed, N failed'
	@echo 'make tests-build  build the tests, fuzz targets and benches as well'
	@echo 'make check-long the long variants of the tests'
	@echo 'make demo       profile a program of two threads and say where the report is'
	@echo 'make bench      speed, overhead and accuracy tables'
	@echo 'make install    install below PREFIX ($(PREFIX))'
	@echo 'make deb        build Debian packages into dist/'
	@echo 'make dist       pack the source into dist/'
	@echo 'make format, format-check, lint, asan, tsan, fuzz, types'

deps:
	@packaging/install-packages build

test-deps:
	@packaging/install-packages build test

# What users need: no tests, and warnings of a compiler that is newer than the code are no errors.
build: deps
	@$(SETUP_ENV) packaging/configure '$(BUILD)' $(PREFIX_OPTION) --first '-Dprefix=$(PREFIX)' $(MESON_OPTIONS)
	@ninja -C '$(BUILD)'

# The same directory with the tests, fuzz targets and benches, where warnings are errors.
tests-build: test-deps
	@$(SETUP_ENV) packaging/configure '$(BUILD)' $(PREFIX_OPTION) -Dtests=true -Dwerror=true \
		--first '-Dprefix=$(PREFIX)' $(MESON_OPTIONS)
	@ninja -C '$(BUILD)'

check: tests-build
	@E2E_PREFIX="$$(tests/installed-copy '$(BUILD)')" && export E2E_PREFIX && \
		{ $(MESON_TEST) --no-suite long $(TEST_PROCESSES); tests/summary --again '$(BUILD)'; }

check-long: tests-build
	@$(MESON_TEST) --suite long --timeout-multiplier 10; tests/summary '$(BUILD)'

demo: build
	@tests/demo '$(BUILD)'

bench: tests-build
	@bench/run '$(BUILD)'

install: build
	@meson install -C '$(BUILD)' --no-rebuild
	@test -n '$(DESTDIR)' || packaging/after-install --say '$(BUILD)'

# Builds Debian packages, and packs the source, of the last commit into dist/.
deb: deps
	@packaging/build-deb dist

dist:
	@packaging/make-source dist

format: test-deps
	@$(SOURCES) | xargs clang-format -i

format-check: test-deps
	@$(SOURCES) | xargs clang-format --dry-run --Werror

# clang-tidy needs a build whose flags clang understands and whose generated files exist. It begins no
# file after LINT_UNTIL, in seconds of the epoch, where that is set.
LINT_UNTIL ?=
lint: test-deps
	@$(CLANG_SETUP) build-clang -Dwerror=true
	@ninja -C build-clang
	@tests/lint build-clang $(LINT_UNTIL)

# Sanitizers cannot live in a preloaded library of an unsanitized program, so these run what is
# linked as a whole: unit tests and the command-line tests of the kymo command.
# Undefined behaviour is looked for together with bad addresses, and fuzz targets are part of that
# build.
asan-build: build_options = -Db_sanitize=address,undefined -Dfuzzers=true
tsan-build: build_options = -Db_sanitize=thread
asan-build tsan-build: %-build: test-deps
	@$(CLANG_SETUP) build-$* $(CLANG_TEST_OPTIONS) -Doptimization=1 $(build_options) -Db_lundef=false

asan: asan-build
	@ninja -C build-$@
	@UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
		meson test -C build-$@ --print-errorlogs --no-rebuild --suite unit --suite fuzz $(UNIT_TEST_OPTIONS); \
		tests/summary build-$@

# Builds and runs what has threads, and nothing else.
tsan: tsan-build
	@meson test -C build-$@ --print-errorlogs $(UNIT_TEST_OPTIONS) $$(tests/threaded build-$@); \
		tests/summary build-$@

sanitize: asan tsan

fuzz: asan-build
	@ninja -C build-asan
	@fuzz/run build-asan $(FUZZ_SECONDS)

# Each type of build with each compiler, with and without optimisation of whole programs; all warnings are errors.
types: test-deps
	@tests/build_types

clean:
	rm -rf '$(BUILD)' build-asan build-tsan build-clang build-types

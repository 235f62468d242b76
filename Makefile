# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
#
# Short names for what meson does, and the installation of what it needs. `make help` lists them.
BUILD ?= build
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 10
MESON_TEST = meson test -C $(BUILD) --print-errorlogs --no-rebuild
SOURCES = git ls-files '*.c' '*.h' '*.cc'
ifneq ($(origin CC),default)
SETUP_ENV = CC='$(CC)'
endif

.PHONY: all help deps test-deps build check check-long demo bench install \
	format format-check lint clang-build asan tsan sanitize fuzz clean

all: build

help:
	@echo 'make            build kymo (in $(BUILD)/)'
	@echo 'make deps       install the Debian packages that the build needs'
	@echo 'make check      build and run every test; last line: N passed, N failed'
	@echo 'make check-long the long variants of the tests'
	@echo 'make demo       profile a real workload and say where the report is'
	@echo 'make bench      speed, overhead and accuracy tables'
	@echo 'make install    install below PREFIX ($(PREFIX))'
	@echo 'make format, format-check, lint, asan, tsan, fuzz'

deps:
	@packaging/install-packages build

test-deps:
	@packaging/install-packages build test

$(BUILD)/build.ninja: | deps
	$(SETUP_ENV) meson setup $(BUILD) --prefix=$(PREFIX)

build: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

check: test-deps build
	@$(MESON_TEST) --no-suite long; tests/summary --again $(BUILD)

check-long: test-deps build
	@$(MESON_TEST) --suite long --timeout-multiplier 10; tests/summary $(BUILD)

demo: build
	@tests/demo $(BUILD)

bench: test-deps build
	@bench/run $(BUILD)

install: build
	@meson configure $(BUILD) -Dprefix=$(PREFIX)
	meson install -C $(BUILD)

format: test-deps
	@$(SOURCES) | xargs clang-format -i

format-check: test-deps
	@$(SOURCES) | xargs clang-format --dry-run --Werror

# clang-tidy needs a build whose flags clang understands and whose generated files exist.
clang-build: test-deps
	@test -e build-clang/build.ninja || CC=clang CXX=clang++ meson setup build-clang
	@ninja -C build-clang

lint: clang-build
	@tests/lint build-clang

# Sanitizers cannot live in a preloaded library of an unsanitized program, so these run what is
# linked as a whole: unit tests and the command-line tests of the kymo command.
# Undefined behaviour is looked for together with bad addresses: one build less.
asan: sanitizer = address,undefined
tsan: sanitizer = thread
asan tsan: test-deps
	@test -e build-$@/build.ninja || \
		CC=clang CXX=clang++ meson setup build-$@ -Doptimization=1 -Db_sanitize=$(sanitizer) -Db_lundef=false
	@ninja -C build-$@
	@UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
		meson test -C build-$@ --print-errorlogs --no-rebuild --suite unit --suite fuzz \
		--timeout-multiplier 5; tests/summary build-$@

sanitize: asan tsan

fuzz: test-deps
	@test -e build-fuzz/build.ninja || \
		CC=clang CXX=clang++ meson setup build-fuzz -Dfuzzers=true -Db_lundef=false
	@ninja -C build-fuzz
	@fuzz/run build-fuzz $(FUZZ_SECONDS)

clean:
	rm -rf $(BUILD) build-asan build-tsan build-fuzz build-clang

# SPDX-License-Identifier: Apache-2.0
#
# Short names for what CMake and ctest do. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
PREFIX ?= /usr/local
TRIES ?= 1
CTEST := ctest --no-label-summary --output-on-failure -j$(shell expr 2 '*' $$(nproc))
CONFIGURE := cmake -G Ninja -S .
CONFIGURE_TEST := $(CONFIGURE) -DGPREEMPT_TESTS=ON -DGPREEMPT_WERROR=ON -DGPREEMPT_NESTED=ON -DGPREEMPT_TRIES=$(strip $(TRIES))


# `make test` builds the tree five times. With ccache, if it is installed, later runs reuse objects.
export CMAKE_C_COMPILER_LAUNCHER ?= $(shell command -v ccache)

.PHONY: all configure demo tour portable check test bench soak install format lint configure-test clean help

all: configure ## build gpreempt and libgpreempt.so into build/ (the default)
	@cmake --build build

configure:
	@tools/setup --check build
	@$(CONFIGURE) -B build -DGPREEMPT_TESTS=OFF -DCMAKE_INSTALL_PREFIX='$(PREFIX)' >/dev/null

demo: ## try it: the whole idea in seconds, on a simulated GPU; installs cmake and ninja if missing
	@tools/setup build
	@$(CONFIGURE) -B build -DGPREEMPT_TESTS=OFF >/dev/null
	@cmake --build build --target gpreempt -- --quiet
	@build/gpreempt demo

tour: ## try the daemon: programs, classes, holds, a kill -9, on a simulated GPU; installs its libraries
	@tools/setup daemon
	@$(CONFIGURE) -B build -DGPREEMPT_TESTS=OFF >/dev/null
	@cmake --build build -- --quiet
	@tools/tour build

portable: ## build/portable: gpreempt without the daemon, for machines without json-c and libyaml
	@tools/setup build
	@$(CONFIGURE) -B build/portable -DGPREEMPT_TESTS=OFF -DGPREEMPT_DAEMON=OFF -DGPREEMPT_STATIC_LIBS=ON >/dev/null
	@cmake --build build/portable

check: configure-test ## build and run the quick unit, CLI and emulator tests: minutes, for every change
	@cmake --build build/test
	@$(CTEST) --test-dir build/test -L '^(unit|cli|emu)$$' -LE '^slow$$'

test: configure-test ## all tests, sanitizers, fuzzers, lint: what CI runs; installs the tools for it
	@cmake --build build/test
	@$(CTEST) --test-dir build/test --repeat until-pass:$(strip $(TRIES))

configure-test:
	@tools/setup test
	@$(CONFIGURE_TEST) -B build/test >/dev/null

bench: configure ## build and run the benchmarks
	@cmake --build build --target bench

soak: ## the long forms of the tests (hours), or of those whose name matches ONLY; log in build/soak.log
	@tools/setup test
	@$(CONFIGURE_TEST) -B build/soak -DGPREEMPT_SOAK=20 >/dev/null
	@cmake --build build/soak
	@$(CTEST) --test-dir build/soak -LE lint $(if $(ONLY),-R '$(ONLY)') 2>&1 | tee build/soak$(if $(ONLY),-$(ONLY)).log

install: all ## install under PREFIX (/usr/local), inside DESTDIR if given
	@DESTDIR='$(DESTDIR)' cmake --install build

format: ## lay out all C sources as .clang-format says
	@tools/lint format --fix

lint: configure-test ## only the lint.* tests
	@$(CTEST) --test-dir build/test -L lint

clean: ## remove build/
	@rm -rf build

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 16

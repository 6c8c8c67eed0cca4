# kbench: benchmarks of GPU kernels. `make` alone prints what it can do.
# Needs make and a C compiler; uses nvcc where there is one. Every recipe prints the command it runs.

# nvcc: NVCC=... on the command line (NVCC= means none), else the PATH, CUDA_HOME, /usr/local/cuda
ifeq ($(origin NVCC), undefined)
NVCC := $(firstword $(shell command -v nvcc 2> /dev/null) \
          $(if $(CUDA_HOME),$(wildcard $(CUDA_HOME)/bin/nvcc)) $(wildcard /usr/local/cuda/bin/nvcc))
endif
override NVCC := $(strip $(NVCC))
NVCC_BIN := $(if $(NVCC),$(dir $(shell command -v $(NVCC) 2> /dev/null)))
ifneq ($(NVCC),)
ifeq ($(NVCC_BIN),)
$(error NVCC=$(NVCC) cannot be run; NVCC= builds everything with $(CC))
endif
endif

# compute capability of the GPUs here as nvidia-smi prints it (9.0), nothing without one; not asked in CI
GPU = $(eval GPU := $(if $(CI),,$(sort $(shell \
        nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2> /dev/null | grep -xE '[0-9]+\.[0-9]+'))))$(GPU)

# ARCH: words such as sm_90a (code for that GPU), compute_80 (PTX, for it and later ones), or options of nvcc's.
# Default: the GPU here, with the instructions only it has where nvcc knows them; else sm_80, sm_90 and PTX.
known = $(eval known := $(shell $(NVCC) --list-gpu-code 2> /dev/null))$(known)
newest = $(eval newest := $(lastword $(shell $(NVCC) --list-gpu-arch 2> /dev/null | sort -t_ -k2n)))$(newest)
with_features = $(if $(filter 7 8,$(word 1,$(subst ., ,$(1)))),,a)
gpu_arch = $(if $(filter sm_$(subst .,,$(1)),$(known)),sm_$(subst .,,$(1))$(call with_features,$(1)),$(newest))
ARCH ?= $(if $(GPU),$(sort $(foreach g,$(GPU),$(call gpu_arch,$(g)))),sm_80 sm_90 compute_90)
arch_flag = $(if $(filter sm_%,$(1)),-gencode=arch=compute_$(1:sm_%=%)$(comma)code=$(1),$(if \
              $(filter compute_%,$(1)),-gencode=arch=$(1)$(comma)code=$(1),$(1)))
comma := ,
ARCHFLAGS = $(foreach a,$(ARCH),$(call arch_flag,$(a)))

# the vendor's rows are built where its header is; the library itself is looked for at run time
CUDA_INCLUDE := $(NVCC_BIN)../include
CUBLAS = $(if $(NVCC_BIN),$(if $(wildcard $(CUDA_INCLUDE)/cublas_v2.h $(NVCC_BIN)../targets/*/include/cublas_v2.h),-DKBK_CUBLAS))

BUILD := build
CFLAGS ?= -O2
# -O is the host's: kernels are optimised fully in any case, and what launches them compiles in half the time. A profiler
# that is to show lines wants -lineinfo, too, which takes a twentieth of the time
NVCCFLAGS ?= -O1
LIBS := -lm -ldl -lpthread
HEADERS := $(wildcard kbench.h kbench_kernels.cuh examples/addons/*.h)
# one file's kernels on all cores, where nvcc can (12.3 and later)
SPLIT = $(eval SPLIT := $(if $(shell $(NVCC) --help 2> /dev/null | grep -e '--split-compile '),-split-compile=0))$(SPLIT)
compile_cuda = $(NVCC) $(NVCCFLAGS) $(ARCHFLAGS) $(SPLIT) $(CUBLAS) -I.
compile_c = $(CC) $(CFLAGS) -I.
# the suite runs on the GPU where there is one (or where ARCH asks for one), on the C oracles elsewhere
use_cuda = $(if $(NVCC),$(if $(GPU)$(filter command environment,$(firstword $(origin ARCH))),yes))
# element types of the suite: kernels take their time to compile in each. f16 is left out there unless ARGS ask for it
TYPES ?= f32 $(if $(use_cuda),$(findstring f16,$(subst bf16,,$(ARGS))),f16) bf16
empty :=
space := $(empty) $(empty)
# nvcc takes \, in the value of -D for a comma; with a plain one it would define several macros
suite_types = $(if $(filter-out f32 f16 bf16,$(TYPES))$(if $(strip $(TYPES)),,none),$(error TYPES="$(TYPES)": one or several of f32, f16 and bf16 are wanted))$(if \
                $(filter 3,$(words $(sort $(TYPES)))),,-DKBK_TYPES=$(subst $(space),$(if $(use_cuda),\\)$(comma),$(sort $(TYPES))))
# its two parts at once (with groups of operations left out it may have but one)
suite_part = $(compile_cuda) $(suite_types) -DSUITE_PART=$(1) -c examples/suite.cu -o $(BUILD)/suite.$(1).o
suite_parts = { $(call suite_part,2) & $(call suite_part,1) && wait $$! && $(compile_cuda) $(BUILD)/suite.1.o $(BUILD)/suite.2.o -o $(BUILD)/suite; }
suite_cuda = $(if $(findstring -DKBK_,$(NVCCFLAGS)),$(compile_cuda) $(suite_types) examples/suite.cu -o $(BUILD)/suite,$(suite_parts))
suite_command = $(if $(use_cuda),$(suite_cuda),$(compile_c) $(suite_types) -x c examples/suite.cu -o $(BUILD)/suite $(LIBS))
run_tests = CC='$(CC)' CXX='$(CXX)' NVCC='$(NVCC)' ARCHFLAGS='$(if $(NVCC),$(strip $(ARCHFLAGS) $(SPLIT) $(CUBLAS)))' BUILD=$(BUILD) sh tests/run.sh

EXAMPLES_C := $(patsubst examples/%.c,$(BUILD)/examples/%,$(wildcard examples/*.c))
EXAMPLES_CUDA := $(patsubst examples/%.cu,$(BUILD)/examples/%,$(filter-out examples/suite.cu,$(wildcard examples/*.cu)))

.PHONY: help run tool test test-all test-rest test-gpu smoke-gpu examples sanitize format clean FORCE
help:
	@echo 'make run         build the suite and run a part of it, planned for 3 minutes: results.json, report.html'
	@echo '                 make run ARGS=--all                      everything'
	@echo '                 make run ARGS="--fast --op layernorm"    of your choice: $(BUILD)/results.json'
	@echo '                 make run ARGS=--list-ops                 make run ARGS=--help    only look: no records'
	@echo '                 make run TYPES="f32 f16 bf16"            f16 kernels, too: unless ARGS name f16, they are not built'
	@echo 'make tool        build $(BUILD)/kbench, which shows and converts records of any run: $(BUILD)/kbench --load FILE'
	@echo 'make test        the tests that this machine can run, in 4 minutes on 2 cores; the others are counted as skipped'
	@echo 'make test-all    every test, compiler, standard and architecture, with all rounds of each: hours'
	@echo 'make test-rest   what make test-all adds to make test, with fewer rounds of writers, faults and kills'
	@echo 'make test-gpu    the tests on the GPU; fails where there is none'
	@echo 'make smoke-gpu   the short gate on the GPU: in at most 150 s on an H100 a line for each part; fails without a GPU'
	@echo 'make examples    build the suite and the examples into $(BUILD)/'
	@echo 'make sanitize    compute-sanitizer on the GPU tests, ASan and UBSan on the others'
	@echo 'make format      clang-format on all sources'
	@echo 'make clean       remove $(BUILD)/, results.json and report.html'
	@echo
	@echo 'here:   CC=$(CC)   NVCC=$(or $(NVCC),(none))   GPU=$(or $(GPU),(none))$(if $(NVCC),   ARCH="$(ARCH)")'
	@echo 'CC, CFLAGS, NVCC, NVCCFLAGS, ARCH, TYPES can be set on the command line; NVCC= builds as if there were no nvcc'

# results.json is of all operations: of the suite's own part, or of --all. ARGS of these words leave it that. With any
# other word (a filter, --op, --fast, --hot, --device, ...) the records go to $(BUILD)/, with one that only looks nowhere.
WHOLE := --all --thorough --cold --shuffle --seed=% --timeout=% --jsonl=% --quiet -q --verbose -v --no-color --no-progress
LOOK := --load --compare --race --load=% --list --list-ops --list-sizes --dry-run --env --help -h --version
args = $(subst --jsonl ,--jsonl=,$(subst --timeout ,--timeout=,$(subst --seed ,--seed=,$(strip $(ARGS)))))
part = $(filter-out $(WHOLE),$(args))
results = $(if $(filter $(LOOK) --json --json=%,$(args)),,$(if $(part),$(BUILD)/results.json,results.json))
outputs = $(if $(results),--json $(results) --html $(results:results.json=report.html))
run: $(BUILD)/suite
	$(if $(filter $(BUILD)/%,$(results)),@echo 'records: $(results) (results.json is for a run of all operations)')
	$(BUILD)/suite $(outputs) $(ARGS)

# rebuilt when its command changes: with or without nvcc, another GPU, other flags. Of wgmma products that ptxas cannot
# follow it makes one after the other, which costs more than half their speed, and tells of it in a note that is no warning
serialised := C75(08|1[0-5]|17|19|20)|wgmma.*serialized
$(BUILD)/suite: examples/suite.cu $(HEADERS) $(BUILD)/suite.command
	@rm -f $@
	$(suite_command) 2>&1 | tee $@.log >&2
	@[ -x $@ ]
	@! grep -qE '$(serialised)' $@.log || { printf '\n%s\n\n' 'WARNING: ptxas serialised wgmma products (the notes are in $@.log): matrix products and attention of this build are slow' >&2; }
$(BUILD)/suite.command: FORCE
	@mkdir -p $(BUILD)
	@echo '$(suite_command)' | cmp -s - $@ || echo '$(suite_command)' > $@

tool: $(BUILD)/kbench
$(BUILD)/kbench: examples/addons/kbench.c $(HEADERS)
	@mkdir -p $(@D)
	$(compile_c) $< -o $@ $(LIBS)

test:
	$(run_tests)

# What takes too long for every change; the tests of files, writers and kills as often as they ask for
test-all:
	WRITERS_ROUNDS=200 INJECT_CALLS=1000 RESUME_KILLS=100 TEST_TIMEOUT=7200 $(run_tests) --all
test-rest:
	TEST_TIMEOUT=3600 $(run_tests) --rest

test-gpu:
	@[ -n '$(NVCC)' ] || { echo 'make test-gpu: no nvcc; set NVCC or CUDA_HOME, or put it on the PATH' >&2; exit 1; }
	@nvidia-smi -L 2> /dev/null | grep -q '^GPU ' || { echo 'make test-gpu: no GPU on this machine (nvidia-smi lists none)' >&2; exit 1; }
	TEST_TIMEOUT=$${TEST_TIMEOUT:-900} $(run_tests) --no-skip gpu

smoke-gpu:
	CC='$(CC)' NVCC='$(NVCC)' ARCHFLAGS='$(strip $(ARCHFLAGS))' BUILD='$(BUILD)' sh tests/smoke_gpu.sh

examples: $(BUILD)/suite $(EXAMPLES_C) $(if $(NVCC),$(EXAMPLES_CUDA))
	@$(if $(NVCC),:,echo 'no nvcc: built the C examples; not built: $(notdir $(EXAMPLES_CUDA))')
$(BUILD)/examples/%: examples/%.c $(HEADERS)
	@mkdir -p $(@D)
	$(compile_c) $< -o $@ $(LIBS)
$(BUILD)/examples/%: examples/%.cu $(HEADERS)
	@mkdir -p $(@D)
	$(compile_cuda) $< -o $@

# on a GPU: the kernels, and the engine's own device work in a program of five lines
sanitizer := $(firstword $(wildcard $(NVCC_BIN)compute-sanitizer) $(shell command -v compute-sanitizer 2> /dev/null))
# those that no script drives
SANITIZE_TESTS := $(filter-out $(patsubst %.sh,%.cu,$(wildcard tests/gpu/*.sh)),$(wildcard tests/gpu/*.cu))
sanitize:
	$(run_tests) --sanitize host
ifeq ($(and $(NVCC),$(sanitizer)),)
	@echo 'no compute-sanitizer (it comes with nvcc): only the host tests were run'
else
	@mkdir -p $(BUILD)/test
	@nvidia-smi -L 2> /dev/null | grep -q '^GPU ' || echo 'no GPU on this machine: compute-sanitizer is left out'
	$(compile_cuda) -lineinfo tests/compile/five_lines.cu -o $(BUILD)/test/five_lines
	for tool in memcheck racecheck initcheck synccheck; do \
	    nvidia-smi -L 2> /dev/null | grep -q '^GPU ' || break; \
	    $(sanitizer) --tool $$tool --error-exitcode 9 $(BUILD)/test/five_lines || exit 1; \
	    TEST_TIMEOUT=$${TEST_TIMEOUT:-1800} $(run_tests) --tool "$(sanitizer) --tool $$tool --target-processes all --error-exitcode 9" $(SANITIZE_TESTS) || exit 1; \
	done
endif

# but for what is printed elsewhere as it stands, and what a script made
FORMAT := $(filter-out tests/compile/five_lines.cu tests/compile/plain.c tests/host/stats_expected.h, \
            $(wildcard kbench.h kbench_kernels.cuh examples/*.c examples/*.cu examples/addons/*.[ch] examples/addons/*.cu tests/*.h tests/*/*.c tests/*/*.cpp tests/*/*.cu))
format:
	clang-format -i $(FORMAT)

clean:
	rm -rf $(BUILD) results.json report.html

# kbench: benchmarks of GPU kernels. `make` lists the targets.
# Requires make and a C compiler; uses nvcc if it is found. Every recipe prints its command.

# nvcc: from NVCC=... on the command line (NVCC= means none), otherwise from the PATH, CUDA_HOME or /usr/local/cuda
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

# compute capabilities of this machine's GPUs as nvidia-smi prints them (9.0); empty in CI or without a GPU
GPU = $(eval GPU := $(if $(CI),,$(sort $(shell \
        nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2> /dev/null | grep -xE '[0-9]+\.[0-9]+'))))$(GPU)

# ARCH: sm_90a (code for that GPU), compute_80 (PTX for that and later GPUs), or an option of nvcc; ARCH may list
# several. Default: this machine's GPU, with its architecture-specific instructions (suffix a) if nvcc supports them.
# Without a GPU: sm_80, sm_90 and PTX.
known = $(eval known := $(shell $(NVCC) --list-gpu-code 2> /dev/null))$(known)
newest = $(eval newest := $(lastword $(shell $(NVCC) --list-gpu-arch 2> /dev/null | sort -t_ -k2n)))$(newest)
with_features = $(if $(filter 7 8,$(word 1,$(subst ., ,$(1)))),,a)
gpu_arch = $(if $(filter sm_$(subst .,,$(1)),$(known)),sm_$(subst .,,$(1))$(call with_features,$(1)),$(newest))
ARCH ?= $(if $(GPU),$(sort $(foreach g,$(GPU),$(call gpu_arch,$(g)))),sm_80 sm_90 compute_90)
arch_flag = $(if $(filter sm_%,$(1)),-gencode=arch=compute_$(1:sm_%=%)$(comma)code=$(1),$(if \
              $(filter compute_%,$(1)),-gencode=arch=$(1)$(comma)code=$(1),$(1)))
comma := ,
ARCHFLAGS = $(foreach a,$(ARCH),$(call arch_flag,$(a)))

# calls of cuBLAS are compiled if its header is found; the library is loaded at run time
CUDA_INCLUDE := $(NVCC_BIN)../include
CUBLAS = $(if $(NVCC_BIN),$(if $(wildcard $(CUDA_INCLUDE)/cublas_v2.h $(NVCC_BIN)../targets/*/include/cublas_v2.h),-DKBK_CUBLAS))

BUILD := build
CFLAGS ?= -O2
# -O1 applies to host code only, which then compiles in half the time; nvcc always optimises kernels fully. For source
# lines in a profiler, add -lineinfo, which takes 5 % more compile time.
NVCCFLAGS ?= -O1
LIBS := -lm -ldl -lpthread
HEADERS := $(wildcard kbench.h kbench_kernels.cuh examples/addons/*.h)
# compiles the kernels of a file on all cores, if nvcc supports it (12.3 and later)
SPLIT = $(eval SPLIT := $(if $(shell $(NVCC) --help 2> /dev/null | grep -e '--split-compile '),-split-compile=0))$(SPLIT)
compile_cuda = $(NVCC) $(NVCCFLAGS) $(ARCHFLAGS) $(SPLIT) $(CUBLAS) -I.
compile_c = $(CC) $(CFLAGS) -I.
# if there is a GPU or ARCH is given, nvcc builds the suite; otherwise cc builds it, and it runs the oracles on the CPU
use_cuda = $(if $(NVCC),$(if $(GPU)$(filter command environment,$(firstword $(origin ARCH))),yes))
# element types of the suite; each type adds compile time. A suite for a GPU has f16 kernels only if ARGS contain
# f16.
TYPES ?= f32 $(if $(use_cuda),$(findstring f16,$(subst bf16,,$(ARGS))),f16) bf16
empty :=
space := $(empty) $(empty)
# a comma in the value of nvcc's -D must be written \, because nvcc splits the value at a plain comma
suite_types = $(if $(filter-out f32 f16 bf16,$(TYPES))$(if $(strip $(TYPES)),,none),$(error TYPES="$(TYPES)": one or several of f32, f16 and bf16 are wanted))$(if \
                $(filter 3,$(words $(sort $(TYPES)))),,-DKBK_TYPES=$(subst $(space),$(if $(use_cuda),\\)$(comma),$(sort $(TYPES))))
# compiles suite.cu as two object files in parallel; with only some operations (-DKBK_...), compiles one program
suite_part = $(compile_cuda) $(suite_types) -DSUITE_PART=$(1) -c examples/suite.cu -o $(BUILD)/suite.$(1).o
suite_parts = { $(call suite_part,2) & $(call suite_part,1) && wait $$! && $(compile_cuda) $(BUILD)/suite.1.o $(BUILD)/suite.2.o -o $(BUILD)/suite; }
suite_cuda = $(if $(findstring -DKBK_,$(NVCCFLAGS)),$(compile_cuda) $(suite_types) examples/suite.cu -o $(BUILD)/suite,$(suite_parts))
suite_command = $(if $(use_cuda),$(suite_cuda),$(compile_c) $(suite_types) -x c examples/suite.cu -o $(BUILD)/suite $(LIBS))
run_tests = CC='$(CC)' CXX='$(CXX)' NVCC='$(NVCC)' ARCHFLAGS='$(if $(NVCC),$(strip $(ARCHFLAGS) $(SPLIT) $(CUBLAS)))' BUILD=$(BUILD) sh tests/run.sh

EXAMPLES_C := $(patsubst examples/%.c,$(BUILD)/examples/%,$(wildcard examples/*.c))
# examples that are linked with the compiled kernels
LINKED := $(addprefix $(BUILD)/examples/,05_against_library 06_one_rung)
EXAMPLES_CUDA := $(filter-out $(LINKED),$(patsubst examples/%.cu,$(BUILD)/examples/%,$(filter-out examples/suite.cu,$(wildcard examples/*.cu))))

.PHONY: help run tool kernels test test-all test-rest test-gpu smoke-gpu examples sanitize format clean FORCE
help:
	@echo 'make run         build the suite and run a selection planned for 3 minutes; writes results.json and report.html'
	@echo '                 make run ARGS=--all                      run everything'
	@echo '                 make run ARGS="--fast --op layernorm"    run your selection; writes $(BUILD)/results.json'
	@echo '                 make run ARGS=--list-ops                 list the operations; ARGS=--help lists the options'
	@echo '                 make run TYPES="f32 f16 bf16"            also build the f16 kernels; by default only if ARGS name f16'
	@echo 'make tool        build $(BUILD)/kbench, which shows and converts records of any run: $(BUILD)/kbench --load FILE'
	@echo 'make kernels     compile the kernels once, to $(BUILD)/kbench_kernels.o (minutes), and link examples 05 and 06'
	@echo 'make test        run the tests that this machine supports, in 4 minutes on 2 cores; counts the others as skipped'
	@echo 'make test-all    run every test with every compiler, standard and architecture, and all repetitions; takes hours'
	@echo 'make test-rest   run what make test-all adds to make test, with fewer repetitions of the stress tests'
	@echo 'make test-gpu    run the GPU tests; fails without a GPU'
	@echo 'make smoke-gpu   run the short GPU test, at most 150 s on an H100; prints a line per part; fails without a GPU'
	@echo 'make examples    build the suite and the examples into $(BUILD)/'
	@echo 'make sanitize    run the GPU tests under compute-sanitizer, and the host tests with ASan and UBSan'
	@echo 'make format      run clang-format on all sources'
	@echo 'make clean       remove $(BUILD)/, results.json and report.html'
	@echo
	@echo 'here:   CC=$(CC)   NVCC=$(or $(NVCC),(none))   GPU=$(or $(GPU),(none))$(if $(NVCC),   ARCH="$(ARCH)")'
	@echo 'Variables for the command line: CC, CFLAGS, NVCC, NVCCFLAGS, ARCH, TYPES. NVCC= builds without nvcc.'

# results.json may only hold a run of all operations. If all ARGS are in WHOLE, make run writes results.json. With
# other ARGS (a filter, --op, --fast, --hot, --device, ...), make run writes
# $(BUILD)/results.json. With ARGS in LOOK, make run only prints text and writes no records.
WHOLE := --all --thorough --cold --shuffle --seed=% --timeout=% --jsonl=% --quiet -q --verbose -v --no-color --no-progress
LOOK := --load --compare --race --load=% --explain --explain=% --list --list-ops --list-sizes --dry-run --env --help -h --version
args = $(subst --jsonl ,--jsonl=,$(subst --timeout ,--timeout=,$(subst --seed ,--seed=,$(strip $(ARGS)))))
part = $(filter-out $(WHOLE),$(args))
results = $(if $(filter $(LOOK) --json --json=%,$(args)),,$(if $(part),$(BUILD)/results.json,results.json))
outputs = $(if $(results),--json $(results) --html $(results:results.json=report.html))
run: $(BUILD)/suite
	$(if $(filter $(BUILD)/%,$(results)),@echo 'records: $(results) (results.json is for a run of all operations)')
	$(BUILD)/suite $(outputs) $(ARGS)

# The suite is rebuilt if its command changes (nvcc, GPU, flags). ptxas serialises wgmma instructions whose
# registers it cannot analyse, which more than halves their speed. It reports them only as a note, so the recipe
# prints a warning.
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

# Object files of the kernels and of kbench, for programs that then compile no kernel. An object file is rebuilt if
# its command changes.
ifeq ($(NVCC),)
kernels:
	@echo 'make kernels: no nvcc; set NVCC or CUDA_HOME, or put it on the PATH' >&2; exit 1
else
kernels: $(BUILD)/kbench_kernels.o $(BUILD)/kbench.o $(LINKED)
endif
kernels_command = $(compile_cuda) -std=c++17 $(suite_types) -Xcompiler -fPIC -x cu -DKBENCH_SHARED -c kbench_kernels.cuh -o $(BUILD)/kbench_kernels.o
$(BUILD)/kbench_kernels.o: kbench_kernels.cuh $(BUILD)/kernels.command
	$(kernels_command)
$(BUILD)/kernels.command: FORCE
	@mkdir -p $(BUILD)
	@echo '$(kernels_command)' | cmp -s - $@ || echo '$(kernels_command)' > $@
$(BUILD)/kbench.o: kbench.h $(BUILD)/kernels.command
	$(CC) $(CFLAGS) -x c -DKBENCH_IMPLEMENTATION -DKBENCH_CUDA -I$(CUDA_INCLUDE) -c kbench.h -o $@
$(LINKED): $(BUILD)/examples/%: examples/%.cu $(HEADERS) $(BUILD)/kbench_kernels.o $(BUILD)/kbench.o
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) $(ARCHFLAGS) -I. $< $(BUILD)/kbench_kernels.o $(BUILD)/kbench.o -o $@

test:
	$(run_tests)

# Runs all tests: those of "make test", and tests that take too long to run after every change. WRITERS_ROUNDS,
# INJECT_CALLS and RESUME_KILLS set the repetitions of stress tests.
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

# compute-sanitizer checks the GPU tests of the kernels, and a small program that runs the device code of kbench.h
sanitizer := $(firstword $(wildcard $(NVCC_BIN)compute-sanitizer) $(shell command -v compute-sanitizer 2> /dev/null))
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

# excluded: files whose text other documents quote, and generated files
FORMAT := $(filter-out tests/compile/five_lines.cu tests/compile/plain.c tests/host/stats_expected.h, \
            $(wildcard kbench.h kbench_kernels.cuh examples/*.c examples/*.cu examples/addons/*.[ch] examples/addons/*.cu tests/*.h tests/*/*.c tests/*/*.cpp tests/*/*.cu))
format:
	clang-format -i $(FORMAT)

clean:
	rm -rf $(BUILD) results.json report.html

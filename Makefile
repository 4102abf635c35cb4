# Every target is a few lines that you could type yourself; each first installs any missing Debian
# packages (as root, or with sudo). Only Swift 6.3 and make must already be installed.

# Libraries that the package links, and the tool that finds them.
CORE = libpcap-dev libsrtp2-dev libopus-dev libvpx-dev libsqlite3-dev libssl-dev libxxhash-dev \
	libedit-dev zlib1g-dev libzstd-dev libyuv-dev libcharls-dev libspeexdsp-dev libopenh264-dev \
	libdav1d-dev pkg-config
# Programs that the tests run: to replay on another date, to query takes with plain SQL, to debug at
# a step, and to read captures with another tool.
TESTING = faketime sqlite3 python3 curl openssl gdb tshark
# Packages for calls with real peers: the peers themselves, virtual environments for Python, and
# network namespaces.
GSTREAMER = gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-bad \
	gstreamer1.0-nice python3-gst-1.0 gir1.2-gst-plugins-base-1.0 gir1.2-gst-plugins-bad-1.0
PEERS = chromium firefox-esr janus janus-demos coturn $(GSTREAMER) \
	python3 python3-venv iproute2 util-linux faketime espeak-ng tshark ffmpeg

PYTHON ?= python3
# The take that `make demo` writes.
TAKE ?= .build/demo.take
# Further arguments for the harness: make interop INTEROP='--peers aiortc --seconds 10 --keep calls'
INTEROP ?=

# The projects whose types `make lint` checks: a take's page, the page for calls from browsers, and
# the script that records pages.
PAGES = Sources/Take/Page/Document/jsconfig.json Sources/Live/Signaling/CallPage/jsconfig.json \
	Sources/Live/PageRecording/Script/jsconfig.json

VENV = .build/interop-venv
RETAKE = .build/release/retake
# The product that `make demo` builds.
DEMO = .build/debug/retake
# Debug builds here are quick to build and to test, as the end of Package.swift explains. All except
# the demo use the same settings, so that one target can reuse another's build.
export RETAKE_QUICK_TESTS = 1
# Each module is compiled as a whole, so that its imports are read once and not for each batch of
# files. Two threads let the compiler write several object files instead of one. The same compiler
# process also emits the module's interface, so that no second process reads the module again.
# SwiftPM requests batches in debug builds; unless that is disabled, the compiler warns for each
# module that it makes no batches. LLVM's verifier takes a twentieth of the compile time, and lld is
# the faster linker.
COMPILING = -whole-module-optimization -disable-batch-mode -num-threads 2 \
	-no-emit-module-separately-wmo -Xfrontend -disable-llvm-verify -use-ld=lld
# Without an editor index, in which SwiftPM would look for tests: Tests/Runner runs them instead.
BUILD = swift build --disable-index-store $(addprefix -Xswiftc ,$(COMPILING))
TESTS = $(BUILD) --build-tests
# `swift test` would run the same tests, but would first plan the build again and wait for any other
# SwiftPM process. No test reads where an error was thrown, and recording that is slow.
RUN = env SWT_SWIFT_ERROR_BACKTRACING_ENABLED=0 \
	.build/debug/retakePackageTests.xctest --testing-library swift-testing

# The folder that `make install` installs into, below DESTDIR if that is set.
PREFIX ?= /usr/local
DESTDIR ?=
# The package that `make deb` builds.
DEB ?= .build/retake.deb
# The Swift runtime is linked in, so that programs run on machines without Swift and start faster.
# No program loads libraries that look up its symbols, so these are not exported: that saves 4 MB.
RELEASE = swift build -c release --static-swift-stdlib -Xlinker --no-export-dynamic

.PHONY: install deb docs demo one test page-test test-main test-sockets test-long fuzz altered findings hostile sweep sample changes rows redactions determinism lint interop views test-python fleet captures bench bench-folder soak release size deps deps-test deps-python deps-lint deps-interop

# Records a call between two complete stacks over loopback, and replays and inspects the take.
# Nothing is optimised, because a call of three seconds does not need it and the build takes half
# the time. If the tests are already built, their build is used.
demo: deps
	RETAKE_QUICK_TESTS=$(if $(wildcard .build/debug/*.xctest),1,demo) $(BUILD) --product retake
	rm -f $(TAKE) $(TAKE)-wal $(TAKE)-shm
	$(DEMO) record demo --seconds 3 --out $(TAKE)
	$(DEMO) replay $(TAKE)
	$(DEMO) info $(TAKE)

# Tests that use sockets need the processors promptly but leave them mostly idle, so they run after
# all tests that compute. LONG runs beside them at low priority: a long computation, and the tests
# of how a process ends. These are kept apart from other tests that start processes, because the
# thread that waits for their processes would otherwise never rest.
CALLS = |^RetakeTestingTests\.(OwnCodec|SendingTracks|CapturingVideo|Rooms)Tests
SOCKETS = ^(SignalingTests|RelayingTests|LiveTests|ReenactmentTests|RetakeRTCTests|RoomClientTests|RetakeSoraTests|RetakeConnectLiveTests)\.|^CommandTests\.Live(Media|Connection)?Tests/$(CALLS)
LONG = ^ReplayTests\.MutationTests|ExitTests/

# Runs the unit and property tests, with every captured session as a regression test.
test: deps deps-test page-test
	$(TESTS)
	$(MAKE) --jobs=2 --output-sync=line test-sockets test-long

# Tests the page's calculations in a few seconds, without a browser.
page-test:
	@if command -v node >/dev/null; then node --test --test-reporter=dot Tests/PageModules/*.test.js; \
	else echo "page-test: what the page computes is not tested, because node is not there;" \
		"apt install nodejs brings it"; fi

# Builds and tests one module: make one MODULE=SCTP; with ONLY=WORD, only tests with that name.
MODULE ?=
ONLY ?=
one: deps
	@test -d "Tests/$(MODULE)Tests" || \
		{ echo "make one: Tests/$(MODULE)Tests is not there; Tests/README.md lists the tests"; exit 2; }
	RETAKE_TESTS=$(MODULE)Tests $(BUILD) --product retakePackageTests
	$(if $(filter Command,$(MODULE)),RETAKE_TESTS=CommandTests $(BUILD) --product retake)
	$(RUN) --filter '^$(MODULE)Tests\..*$(ONLY)'

test-main:
	$(RUN) --skip '$(SOCKETS)' --skip '$(LONG)'
# Only eight of these tests, which make calls in real time, run at once. If all of them did, calls
# on slow processors would exceed their time limits, and the tests would take half as long again.
test-sockets: test-main
	SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=8 $(RUN) --filter '$(SOCKETS)'
test-long:
	chrt --idle 0 $(RUN) --filter '$(LONG)'

# Runs FUZZ damaged inputs through each parser, and CHANGED changed takes through replays; `make test`
# runs a million inputs through all parsers, and 500 changed takes.
FUZZ ?= 1000000
CHANGED ?= 2000
fuzz: deps deps-test
	RETAKE_TESTS=AnyBytesTests,RoomTests,ReplayTests $(TESTS)
	RETAKE_MUTATIONS_EACH=$(FUZZ) RETAKE_CHANGED_TAKES=$(CHANGED) \
		$(RUN) --filter 'AnyBytesTests|^RoomTests\.DamageTests|^ReplayTests\.MutationTests'

# Runs ALTERED altered takes through every verb that reads takes; VERBS=findings,summary selects
# verbs. Alterations affect bits, values, types, counters, the schema or JSON, and some recompute
# the digests. `make test` runs a few.
ALTERED ?= 10000
ALTERED_FROM ?= 0
VERBS ?=
altered: deps
	$(RELEASE) --product altered
	.build/release/altered --from $(ALTERED_FROM) --count $(ALTERED) --steps 120 --folder .build/altered \
		$(if $(VERBS),--only $(VERBS)) \
		Captures/virtual-heavy-loss.take Captures/chromium-peer-offers.take \
		Captures/observed-aiortc.take Captures/observed-clear-h264.take Captures/janus-room.take

# Checks whether the first finding names the fault in calls with one known fault each, and whether
# calls without a fault have no finding. SEED selects the calls. Calls in virtual time take two
# seconds each. REAL calls with a fault, and as many without, run between browsers and other stacks;
# these take half a minute each.
SEED ?= 1
FAULTS ?= 40
GOOD ?= 10
REAL ?= 10
findings: deps $(if $(filter 0,$(REAL)),,deps-interop $(VENV)/ready)
	$(BUILD) --product findings
	.build/debug/findings --seed $(SEED) --faults $(FAULTS) --good $(GOOD) --folder .build/findings
ifneq ($(REAL),0)
	$(BUILD) --product retake
	$(VENV)/bin/python Tests/Interop/faults.py --retake .build/debug/retake --seed $(SEED) \
		--calls $(REAL)
	$(VENV)/bin/python Tests/Interop/faults.py --retake .build/debug/retake --seed $(SEED) \
		--calls $(REAL) --good
endif

# Sends hostile requests to `record serve`, to its rooms and to `open`, HOSTILE to each; `make test`
# sends a hundred.
HOSTILE ?= 10000
hostile: deps deps-test
	$(BUILD) --product retake
	$(PYTHON) Tests/Interop/hostile.py --retake .build/debug/retake --requests $(HOSTILE)

# Tries every option of every verb with each kind of invalid value.
sweep: deps deps-test
	$(TESTS)
	RETAKE_SWEEP=whole $(RUN) --filter '^RetakeCommandTests\.SweepTests'

# Tests a sample of a user's package, whose tests replay captures through the RetakeTesting product.
# It is built as users would build it; `make determinism` reuses the build.
sample: deps deps-test
	env -u RETAKE_QUICK_TESTS swift test --package-path Tests/Sample --scratch-path .build/plain

# Makes fourteen one-line changes to the stack, one at a time; replaying the captures must detect
# each.
changes: deps deps-test
	BUILD='$(BUILD)' $(PYTHON) Tests/Changes/run.py

# Redacts every capture in each way (media, keys, addresses, names, messages, and all), and checks
# that each new take replays as `redact` reported. This takes two seconds per capture and way.
redactions: deps
	$(BUILD) --product retake
	$(PYTHON) Tests/Redactions/run.py --retake .build/debug/retake

# Breaks the behaviour behind rows of the client SDK table (sdk-table): each row's test must then
# fail. ROWS=KA5,TW7 selects rows; ROWS=turn selects a fortieth of them, a different one at each
# commit.
ROWS ?=
rows: deps deps-test
	BUILD='$(BUILD)' $(PYTHON) Tests/Changes/rows.py $(ROWS)

# Builds the articles and the library's reference in .build/docs; a dead link is an error.
docs: deps
	.ci/docs

# Replays every capture in twenty processes that differ in build (debug or release), hash seed, date
# and CPU features. The debug build is separate, because nothing in it may be optimised.
determinism: release deps-test
	env -u RETAKE_QUICK_TESTS swift build --scratch-path .build/plain --product retake
	.ci/determinism

# Checks Swift style, Python and shell syntax, and the types of the page's modules.
lint: deps-lint
	swift format lint --strict --recursive --parallel Package.swift Sources Tests
	PYTHONPYCACHEPREFIX=.build/pycache $(PYTHON) -m compileall -q Tests/Interop Tests/Changes \
		Tests/Python Tests/Views Sources/Python
	@if [ -x $(FLEETS)/bin/mypy ]; then cd Sources/Python && \
		$(abspath $(FLEETS))/bin/mypy --cache-dir $(abspath .build)/mypy; \
	else echo "lint: the types of Sources/Python are not checked; make test-python brings mypy"; fi
	for script in .ci/*; do sh -n "$$script" || exit 1; done
	@for project in $(PAGES); do \
		if command -v tsc >/dev/null; then echo "tsc --project $$project"; tsc --project $$project; \
		else echo "lint: $$project is not checked, because tsc is not there;" \
			"apt install node-typescript brings it"; fi || exit 1; done

# Records and replays calls with other stacks in every direction.
interop: release deps-interop $(VENV)/ready
	$(VENV)/bin/python Tests/Interop/run.py --retake $(RETAKE) $(INTEROP)

# Compares every view's rows in DuckDB's SQLite scanner with those in SQLite: views are plain SQL
# that other programs read too.
VIEWS = .build/views-venv
views: $(VIEWS)/ready
	$(VIEWS)/bin/python Tests/Views/duckdb_views.py

$(VIEWS)/ready: Tests/Views/requirements.txt
	@.ci/packages python3-venv
	$(PYTHON) -m venv --clear $(VIEWS)
	$(VIEWS)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

# Tests the Python package with the executable: reading takes, publishing fleets, and running them
# again. The tests also use Ray, and S3 and PostgreSQL servers that they start.
FLEETS = .build/python-venv
test-python: deps $(FLEETS)/ready
	@test -x .build/debug/retake || $(BUILD) --product retake
	$(FLEETS)/bin/python -m pytest -q -p no:cacheprovider Tests/Python

$(FLEETS)/ready: Tests/Python/requirements.txt
	@.ci/packages python3-venv
	$(PYTHON) -m venv --clear $(FLEETS)
	$(FLEETS)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

# Generates TAKES calls of a few seconds in virtual time, dated over thirty days, unless they exist.
# Then publishes, queries and verifies them in two processes and with Ray, and runs them again with
# other settings. Ten thousand calls need about half an hour on two cores, and 8 GB.
TAKES ?= 10000
fleet: release $(FLEETS)/ready
	$(RELEASE) --product findings
	.build/release/findings --fleet $(TAKES) --folder .build/fleet --shard 1/2 --retake $(RETAKE) & \
		.build/release/findings --fleet $(TAKES) --folder .build/fleet --shard 2/2 \
		--retake $(RETAKE); wait
	$(FLEETS)/bin/python Tests/Python/measure.py --takes .build/fleet --lake .build/lake \
		--retake $(RETAKE)

# Records all of Captures/ again, after a change to the stack that alters what it sends.
captures: release deps-interop $(VENV)/ready
	rm -rf .build/calls
	$(VENV)/bin/python Tests/Interop/run.py --retake $(RETAKE) --brief --seconds 1.5 \
		--keep .build/calls
	.ci/captures .build/calls

# Measures recording, replaying and data channels on this machine, compared with other libraries.
bench: release $(VENV)/ready
	$(RELEASE) --product retake-bench
	$(RETAKE)-bench takes
	$(RETAKE)-bench wire
	$(RETAKE)-bench ring
	$(RETAKE)-bench relay
	$(VENV)/bin/python Tests/Interop/throughput.py --retake $(RETAKE)
	$(RETAKE)-bench page --take .build/long.take
	$(VENV)/bin/python Tests/Interop/drawing.py --retake $(RETAKE) --take .build/long.take
	$(VENV)/bin/python Tests/Interop/zooming.py --retake $(RETAKE) --take .build/long.take

# Measures queries on folders of takes: a thousand of one second, and a hundred of one minute.
bench-folder: release
	$(RELEASE) --product retake-bench
	$(RETAKE)-bench folder --takes 1000 --seconds 1
	$(RETAKE)-bench folder --takes 100 --seconds 60

# Starts and ends calls at random for MINUTES, and checks which resources the recorder still holds
# afterwards. Also makes series of calls into one take and into a folder, a thousand calls at once,
# and requests that never end.
MINUTES ?= 10
soak: release
	$(RELEASE) --product soak
	.build/release/soak series --retake $(RETAKE)
	.build/release/soak series --retake $(RETAKE) --each
	.build/release/soak crowd --retake $(RETAKE)
	.build/release/soak crowd --retake $(RETAKE) --each
	.build/release/soak silence --retake $(RETAKE)
	.build/release/soak run --retake $(RETAKE) --minutes $(MINUTES)

release: deps
	$(RELEASE) --product retake

# Checks that the executable without symbols is smaller than 45 MB.
size: release
	strip -o .build/retake-stripped $(RETAKE)
	@bytes=$$(wc -c <.build/retake-stripped); echo "retake: $$bytes bytes without symbols"; \
		test "$$bytes" -lt 45000000 || { echo "size: more than 45 MB"; exit 1; }

# Installs the executable, completions for bash, zsh and fish, and a manual page for each verb.
install: release deps-python
	.ci/install $(RETAKE) "$(PREFIX)" "$(DESTDIR)"

# Builds a package that `apt install ./.build/retake.deb` installs on a Debian without Swift.
deb: release deps-python
	.ci/deb $(RETAKE) $(DEB)

deps:
	@.ci/packages $(CORE)

deps-test:
	@.ci/packages $(TESTING)

deps-python:
	@.ci/packages python3

# If the type checker for JavaScript cannot be installed, `make lint` still checks everything else.
deps-lint: deps-python
	@.ci/packages node-typescript || true

deps-interop:
	@.ci/packages $(PEERS)

$(VENV)/ready: Tests/Interop/requirements.txt
	@.ci/packages python3-venv
	$(PYTHON) -m venv --clear $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

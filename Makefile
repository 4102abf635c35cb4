# Every target is a few lines that a person could type; each first installs the Debian packages it
# lacks (as root, or through sudo). Swift 6.3 and make are all that has to be there.

# Libraries that the package links, and what finds them.
CORE = libpcap-dev libsrtp2-dev libopus-dev libvpx-dev libsqlite3-dev libssl-dev libxxhash-dev \
	libedit-dev zlib1g-dev libzstd-dev libyuv-dev libcharls-dev libspeexdsp-dev libopenh264-dev \
	libdav1d-dev pkg-config
# What the tests drive besides: another date for a replay, plain SQL on a take, a debugger at a step,
# what another reader of captures makes of them.
TESTING = faketime sqlite3 python3 curl openssl gdb tshark
# What the calls with real peers need: the peers, Python's virtual environments, network namespaces.
GSTREAMER = gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-bad \
	gstreamer1.0-nice python3-gst-1.0 gir1.2-gst-plugins-base-1.0 gir1.2-gst-plugins-bad-1.0
PEERS = chromium firefox-esr janus janus-demos coturn $(GSTREAMER) \
	python3 python3-venv iproute2 util-linux faketime espeak-ng tshark

PYTHON ?= python3
# The take that `make demo` leaves behind.
TAKE ?= .build/demo.take
# More for the harness: make interop INTEROP='--peers aiortc --seconds 10 --keep calls'
INTEROP ?=

# The modules of the page of a take, and of the page that browsers call with.
PAGES = Sources/Take/Page/Document/jsconfig.json Sources/Live/Signaling/CallPage/jsconfig.json \
	Sources/Live/PageRecording/Script/jsconfig.json

VENV = .build/interop-venv
RETAKE = .build/release/retake
# What `make demo` builds.
DEMO = .build/debug/retake
# How debug builds are made here: quick to build and to test, as the end of Package.swift says. All
# but the demo alike, so that what one made is there for the next.
export RETAKE_QUICK_TESTS = 1
# Everything is compiled module by module, which reads what a module imports once and not for each
# batch of its files; with threads, because there would be one object file without them. What others
# import is written by the way, not by a second compiler that reads the module again. LLVM's check of
# what the compiler hands to it is a twentieth of the compiler's time, and its linker the faster one.
COMPILING = -whole-module-optimization -num-threads 2 -no-emit-module-separately-wmo \
	-Xfrontend -disable-llvm-verify -use-ld=lld
# Without an index for editors, in which SwiftPM would look for tests: Tests/Runner runs them.
BUILD = swift build --disable-index-store $(addprefix -Xswiftc ,$(COMPILING))
TESTS = $(BUILD) --build-tests
# What `swift test` would start, after planning a build anew; and one of it waits for another to end.
# No test looks at where an error was thrown, which takes as long as to find it.
RUN = env SWT_SWIFT_ERROR_BACKTRACING_ENABLED=0 \
	.build/debug/retakePackageTests.xctest --testing-library swift-testing

# Where `make install` puts things; DESTDIR goes before it while a package is made.
PREFIX ?= /usr/local
DESTDIR ?=
# The package that `make deb` makes.
DEB ?= .build/retake.deb
# The Swift runtime is linked in, so that what is built runs where Swift is not, and starts sooner.
RELEASE = swift build -c release --static-swift-stdlib

.PHONY: install deb docs demo one test page-test test-main test-sockets test-long fuzz altered findings hostile sweep sample changes rows redactions determinism lint interop views test-python fleet captures bench bench-folder soak release deps deps-test deps-python deps-lint deps-interop

# Two full stacks call each other over loopback; the take is replayed and looked into. Nothing is
# optimised, because what a call of three seconds needs is there in half of the time then; where the
# tests are built already, their build is taken.
demo: deps
	RETAKE_QUICK_TESTS=$(if $(wildcard .build/debug/*.xctest),1,demo) $(BUILD) --product retake
	rm -f $(TAKE) $(TAKE)-wal $(TAKE)-shm
	$(DEMO) record demo --seconds 3 --out $(TAKE)
	$(DEMO) replay $(TAKE)
	$(DEMO) info $(TAKE)

# Tests that talk over sockets, which need the processors' attention in time and leave them idle
# meanwhile, come after all that compute; and a long computation goes on beside both, which takes
# what is left and keeps it from nobody. With it go the tests of how a process ends: where others
# start processes too, the thread that waits for theirs would never rest.
CALLS = |^RetakeTestingTests\.(OwnCodec|SendingTracks|CapturingVideo|Rooms)Tests
SOCKETS = ^(SignalingTests|RelayingTests|LiveTests|ReenactmentTests|RetakeRTCTests|RoomClientTests|RetakeSoraTests|RetakeConnectLiveTests)\.|^CommandTests\.Live(Media|Connection)?Tests/$(CALLS)
LONG = ^ReplayTests\.MutationTests|ExitTests/

# The unit and property tests, with every captured session as a regression test.
test: deps deps-test page-test
	$(TESTS)
	$(MAKE) --jobs=2 --output-sync=line test-sockets test-long

# What the page computes, in seconds, without a browser.
page-test:
	@if command -v node >/dev/null; then node --test --test-reporter=dot Tests/PageModules/*.test.js; \
	else echo "page-test: what the page computes is not tested, because node is not there;" \
		"apt install nodejs brings it"; fi

# One module while one works on it: make one MODULE=SCTP, with ONLY=WORD the tests of this name alone.
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
test-sockets: test-main
	$(RUN) --filter '$(SOCKETS)'
test-long:
	chrt --idle 0 $(RUN) --filter '$(LONG)'

# Damaged inputs at every entrance, FUZZ at each; what `make test` does with a million at all.
FUZZ ?= 1000000
fuzz: deps deps-test
	RETAKE_TESTS=AnyBytesTests,RoomTests $(TESTS)
	RETAKE_MUTATIONS_EACH=$(FUZZ) $(RUN) --filter 'AnyBytesTests|^RoomTests\.DamageTests'

# ALTERED takes that somebody altered (bits, values, types, counters, schema, JSON, and with a digest
# chain made anew) through every verb that reads takes, or VERBS=findings,summary alone; what
# `make test` does with a few.
ALTERED ?= 10000
ALTERED_FROM ?= 0
VERBS ?=
altered: deps
	$(RELEASE) --product altered
	.build/release/altered --from $(ALTERED_FROM) --count $(ALTERED) --steps 120 --folder .build/altered \
		$(if $(VERBS),--only $(VERBS)) \
		Captures/virtual-heavy-loss.take Captures/chromium-peer-offers.take \
		Captures/observed-aiortc.take Captures/observed-clear-h264.take Captures/janus-room.take

# Calls with one known fault each and calls in which nothing is wrong, drawn from SEED, and whether
# the first finding of each names its fault: two seconds a call in virtual time, and REAL calls of
# browsers and other stacks, half a minute each.
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
endif

# Hostile requests to record serve, to its rooms and to open, HOSTILE to each; a hundred of them are
# part of `make test`.
HOSTILE ?= 10000
hostile: deps deps-test
	$(BUILD) --product retake
	$(PYTHON) Tests/Interop/hostile.py --retake .build/debug/retake --requests $(HOSTILE)

# Every option of every verb with each value that nobody means, after `make test` or its build.
sweep: deps deps-test
	$(TESTS)
	RETAKE_SWEEP=whole $(RUN) --filter '^RetakeCommandTests\.SweepTests'

# A package of somebody else, whose tests replay captures through the RetakeTesting product; built
# as such a package is, and `make determinism` goes on with what is built.
sample: deps deps-test
	env -u RETAKE_QUICK_TESTS swift test --package-path Tests/Sample --scratch-path .build/plain

# Fourteen deliberate one-line changes of the stack, each of which the captures have to catch.
changes: deps deps-test
	BUILD='$(BUILD)' $(PYTHON) Tests/Changes/run.py

# Every capture redacted in each way (media, keys, addresses, names, messages, and all), and each new
# take replayed as it promises: two seconds a capture and way.
redactions: deps
	$(BUILD) --product retake
	$(PYTHON) Tests/Redactions/run.py --retake .build/debug/retake

# Rows of the table of client SDKs (sdk-table), the behaviour of each of them taken out: its test has
# to fail. ROWS=KA5,TW7 chooses some, ROWS=turn a tenth of them, another one with each commit.
ROWS ?=
rows: deps deps-test
	BUILD='$(BUILD)' $(PYTHON) Tests/Changes/rows.py $(ROWS)

# The articles and the reference of the library, in .build/docs; a link that leads nowhere is an error.
docs: deps
	.ci/docs

# Every capture in twenty processes: debug and release, other hash seeds, dates, CPU features. The
# debug build is one of its own, because nothing in it may be optimised.
determinism: release deps-test
	env -u RETAKE_QUICK_TESTS swift build --scratch-path .build/plain --product retake
	.ci/determinism

# Style of the Swift sources, syntax of the Python and shell files, types of the page's modules.
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

# Calls with other stacks in every direction, recorded and replayed.
interop: release deps-interop $(VENV)/ready
	$(VENV)/bin/python Tests/Interop/run.py --retake $(RETAKE) $(INTEROP)

# Every view through DuckDB's SQLite scanner, its rows compared with those of SQLite: views are plain
# SQL that other programs read too.
VIEWS = .build/views-venv
views: $(VIEWS)/ready
	$(VIEWS)/bin/python Tests/Views/duckdb_views.py

$(VIEWS)/ready: Tests/Views/requirements.txt
	@.ci/packages python3-venv
	$(PYTHON) -m venv --clear $(VIEWS)
	$(VIEWS)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

# The Python package against the executable: takes read in Python, and fleets of them published, also
# to a server of S3 and one of PostgreSQL that the tests start, and re-run, also on Ray.
FLEETS = .build/python-venv
test-python: deps $(FLEETS)/ready
	@test -x .build/debug/retake || $(BUILD) --product retake
	$(FLEETS)/bin/python -m pytest -q -p no:cacheprovider Tests/Python

$(FLEETS)/ready: Tests/Python/requirements.txt
	@.ci/packages python3-venv
	$(PYTHON) -m venv --clear $(FLEETS)
	$(FLEETS)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

# Calls of a few seconds in virtual time, TAKES of them over thirty days, made where they are not
# there yet and published, asked, verified by two processes and by Ray, and run under other settings.
# Ten thousand are made in about half an hour of two cores, and are 8 GB.
TAKES ?= 10000
fleet: release $(FLEETS)/ready
	$(BUILD) --product findings
	.build/debug/findings --fleet $(TAKES) --folder .build/fleet --shard 1/2 --retake $(RETAKE) & \
		.build/debug/findings --fleet $(TAKES) --folder .build/fleet --shard 2/2 --retake $(RETAKE); \
		wait
	$(FLEETS)/bin/python Tests/Python/measure.py --takes .build/fleet --lake .build/lake \
		--retake $(RETAKE)

# All of Captures/ recorded anew, after a change of the stack that alters what it sends.
captures: release deps-interop $(VENV)/ready
	rm -rf .build/calls
	$(VENV)/bin/python Tests/Interop/run.py --retake $(RETAKE) --brief --seconds 1.5 \
		--keep .build/calls
	.ci/captures .build/calls

# How fast recording, replaying and data channels are on this machine, beside other libraries.
bench: release $(VENV)/ready
	$(RELEASE) --product retake-bench
	$(RETAKE)-bench takes
	$(RETAKE)-bench wire
	$(VENV)/bin/python Tests/Interop/throughput.py --retake $(RETAKE)
	$(RETAKE)-bench page --take .build/long.take
	$(VENV)/bin/python Tests/Interop/drawing.py --retake $(RETAKE) --take .build/long.take
	$(VENV)/bin/python Tests/Interop/zooming.py --retake $(RETAKE) --take .build/long.take

# Questions to folders of many takes: a thousand of a second, and a hundred of a minute.
bench-folder: release
	$(RELEASE) --product retake-bench
	$(RETAKE)-bench folder --takes 1000 --seconds 1
	$(RETAKE)-bench folder --takes 100 --seconds 60

# Calls that come and go at random for MINUTES, and what a recorder still holds of them; series of
# calls into one take and into a folder, a thousand calls at once, and requests that never end.
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

# The executable with completions for bash, zsh and fish and a manual page for each verb.
install: release deps-python
	.ci/install $(RETAKE) "$(PREFIX)" "$(DESTDIR)"

# A package that `apt install ./.build/retake.deb` takes on a Debian without Swift.
deb: release deps-python
	.ci/deb $(RETAKE) $(DEB)

deps:
	@.ci/packages $(CORE)

deps-test:
	@.ci/packages $(TESTING)

deps-python:
	@.ci/packages python3

# Without the checker of the page's modules everything else is still checked.
deps-lint: deps-python
	@.ci/packages node-typescript || true

deps-interop:
	@.ci/packages $(PEERS)

$(VENV)/ready: Tests/Interop/requirements.txt
	@.ci/packages python3-venv
	$(PYTHON) -m venv --clear $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

// swift-tools-version: 6.2
import Foundation
import PackageDescription

/// Settings of all Swift targets except a few tests, which compile with an application's settings.
///
/// - `Lifetimes`: `ByteReader` and other views over borrowed bytes state how long they may live, so
///   parsers read packets without copies and without unsafe pointers.
/// - `ExistentialAny`, `MemberImportVisibility`, `InternalImportsByDefault`: each file shows what
///   it uses and what its module exposes.
let settings: [SwiftSetting] = [
  .enableExperimentalFeature("Lifetimes"),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
]

/// A target with its folder below `Sources`, such as `Stack/ICE`.
///
/// Folders group files for readers; targets form the layers. `containers` are the swift-collections
/// modules that the target uses.
func module(
  _ path: String, _ dependencies: [Target.Dependency], containers: [String] = [],
  exclude: [String] = []
) -> Target {
  .target(
    name: path.split(separator: "/").last.map(String.init) ?? path,
    dependencies: dependencies + products(containers), path: "Sources/\(path)", exclude: exclude,
    swiftSettings: settings)
}

func tests(
  _ name: String, _ dependencies: [Target.Dependency], containers: [String] = [],
  exclude: [String] = []
) -> Target {
  .testTarget(
    name: name, dependencies: dependencies + products(containers), exclude: exclude,
    swiftSettings: settings)
}

/// A target below `Tests` that tests and programs share.
func support(
  _ name: String, _ dependencies: [Target.Dependency] = [], exclude: [String] = []
) -> Target {
  .target(
    name: name, dependencies: dependencies, path: "Tests/\(name)", exclude: exclude,
    swiftSettings: settings)
}

/// An executable: `retake` itself, or a developers' program.
func program(
  _ name: String, in path: String, _ dependencies: [Target.Dependency], exclude: [String] = []
) -> Target {
  .executableTarget(
    name: name, dependencies: dependencies, path: path, exclude: exclude,
    swiftSettings: settings)
}

func products(_ containers: [String]) -> [Target.Dependency] {
  containers.map { .product(name: $0, package: "swift-collections") }
}

/// A system library, with its name in pkg-config and the Debian package that contains its headers.
func library(_ name: String, _ pkgConfig: String?, _ package: String) -> Target {
  .systemLibrary(
    name: name, path: "Sources/System/\(name)", pkgConfig: pkgConfig, providers: [.apt([package])])
}

/// C code for what Swift cannot import: variadic functions, macros, callbacks, fork.
func shim(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
  .target(name: name, dependencies: dependencies, path: "Sources/System/\(name)")
}

let nio: [Target.Dependency] = [
  .product(name: "NIOCore", package: "swift-nio"),
  .product(name: "NIOPosix", package: "swift-nio"),
  .product(name: "NIOHTTP1", package: "swift-nio"),
  .product(name: "NIOWebSocket", package: "swift-nio"),
]
let arguments: Target.Dependency = .product(
  name: "ArgumentParser", package: "swift-argument-parser")

let package = Package(
  name: "retake",
  products: [
    .executable(name: "retake", targets: ["RetakeMain"]),
    // For applications: calls, media files, signaling, and takes.
    .library(name: "Retake", targets: ["Retake"]),
    // For applications written against libwebrtc's Objective-C API.
    .library(name: "RetakeRTC", targets: ["RetakeRTC"]),
    // For applications written against the SDK of Sora or of Kakao i Connect Live.
    .library(name: "RetakeSora", targets: ["RetakeSora"]),
    .library(name: "RetakeConnectLive", targets: ["RetakeConnectLive"]),
    // For other packages' tests: replaying takes as regression tests, and using a take in place of
    // the network.
    .library(name: "RetakeTesting", targets: ["RetakeTesting"]),
    // For developers: measurements.
    .executable(name: "retake-bench", targets: ["Benchmarks"]),
  ],
  dependencies: [
    // The command line: parsing, help, completion.
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    // TCP and HTTP, for signaling only; media has its own loop with kernel timestamps.
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    // Queues and heaps that are value types; SwiftNIO depends on the same package.
    .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
    // Not swift-log: nothing is logged. Events are recorded in the take, and errors are values.
  ],
  targets: [
    // System libraries.
    library("CSQLite", "sqlite3", "libsqlite3-dev"),  // the take
    library("CSRTP", "libsrtp2", "libsrtp2-dev"),  // SRTP and SRTCP
    library("COpus", "opus", "libopus-dev"),  // Opus
    library("CVPX", "vpx", "libvpx-dev"),  // VP8
    library("CPcap", "libpcap", "libpcap-dev"),  // export to packet captures, live capture
    library("CZlib", "zlib", "zlib1g-dev"),  // gzip, PNG, channels with compression
    library("CZstd", "libzstd", "libzstd-dev"),  // captures compressed with zstd
    library("COpenSSL", "openssl", "libssl-dev"),  // DTLS, HMAC-SHA1, SHA-256, certificates
    library("CXXHash", "libxxhash", "libxxhash-dev"),  // digests of decoded frames
    // Pixel formats and rotation of captured frames; Debian's package has no pkg-config file.
    library("CYUV", nil, "libyuv-dev"),
    library("CCharLS", "charls", "libcharls-dev"),  // captured frames on the tape, lossless
    library("COpenH264", "openh264", "libopenh264-dev"),  // H.264, if installed
    library("CDav1d", "dav1d", "libdav1d-dev"),  // AV1 decoding, if installed
    library("CSpeexDSP", "speexdsp", "libspeexdsp-dev"),  // a microphone's echo and level
    library("CEdit", "libedit", "libedit-dev"),  // line editing for retake debug
    // C code for what Swift cannot import, named after its users.
    shim("CDTLS", ["COpenSSL"]),
    shim("CSockets"),
    shim("CProcess"),
    shim("CSRTPCiphers", ["COpenSSL", "CSRTP"]),
    // The schema and the pages, embedded in C: as Swift arrays, they would take half a minute to
    // compile.
    shim("CFiles"),

    // Stack: the client stack as machines without a clock, randomness or sockets, lowest first. A
    // target imports only targets above it in this list.
    module("Stack/Wire", [], containers: ["HeapModule"]),
    module("Stack/Crypto", ["Wire", "COpenSSL", "CXXHash"]),
    module("Stack/ICE", ["Wire", "Crypto"]),
    module("Stack/Secure", ["Wire", "Crypto", "CDTLS", "COpenSSL", "CSRTP", "CSRTPCiphers"]),
    module("Stack/RTP", ["Wire"]),
    module("Stack/SCTP", ["Wire"], containers: ["DequeModule", "HeapModule"]),
    module("Stack/SDP", ["Wire"]),
    module("Stack/JSEP", ["Wire", "RTP", "SDP"]),
    module("Stack/Flow", ["Wire", "RTP"], containers: ["DequeModule"]),
    module(
      "Stack/Media", ["Wire", "RTP", "COpus", "CVPX", "CYUV", "COpenH264", "CDav1d"],
      containers: ["DequeModule"]),
    // Audio sessions: the machine's audio route, and the audio blocks between devices and the
    // stack.
    module("Stack/AudioSession", ["Wire", "Media"]),
    module("Stack/Stats", ["Wire"]),
    module(
      "Stack/Peer",
      [
        "Wire", "Crypto", "ICE", "Secure", "RTP", "SCTP", "SDP", "JSEP", "Flow", "Media", "Stats",
      ]),
    // Rooms and their protocols: Janus, Sora, WHIP and WHEP, and Retake's own.
    module("Stack/Room", ["Wire", "Crypto", "SDP", "Stats", "Peer", "CZlib"]),

    // Calls between other endpoints, observed from captured packets and logged keys.
    module(
      "Observer", ["Wire", "Crypto", "ICE", "Secure", "RTP", "SDP"], containers: ["DequeModule"]),

    // Take: recording the machines, replaying them, and querying recordings. Media files are
    // outside of the stack, because the stack receives captured blocks and frames as inputs,
    // wherever they were read from.
    module("Take/MediaFiles", ["Wire", "RTP", "Media", "CZlib"]),
    module(
      "Take/Tape",
      [
        "Wire", "Crypto", "SDP", "JSEP", "ICE", "Secure", "RTP", "SCTP", "Flow", "Peer", "Media",
        "Stats", "Observer", "AudioSession", "Room", "CSQLite", "CDTLS", "CCharLS", "CFiles",
        "CProcess",
      ]),
    module("Take/Queries", ["Wire", "Crypto", "RTP", "Media", "Stats", "Observer", "Tape"]),
    module(
      "Take/Page",
      ["Wire", "Crypto", "RTP", "Stats", "MediaFiles", "Tape", "Queries", "CZlib", "CFiles"],
      exclude: ["Document"]),
    module(
      "Take/Replay",
      [
        "Wire", "Crypto", "SDP", "RTP", "SCTP", "ICE", "Secure", "Flow", "Peer", "Observer",
        "Media", "Room", "Tape", "Queries", "Stats",
      ], containers: ["DequeModule"]),
    module(
      "Take/Debug",
      [
        "Wire", "CProcess", "SDP", "RTP", "Peer", "Media", "MediaFiles", "Stats", "Tape", "Queries",
        "Replay",
      ]),
    // Exports takes to other tools' file formats.
    module(
      "Take/Export",
      [
        "Wire", "Crypto", "ICE", "RTP", "Peer", "Observer", "Media", "MediaFiles", "Tape", "Replay",
      ]),

    // Imports packet captures, and other tools' recordings and reports, as takes.
    module(
      "Take/Importing",
      [
        "Wire", "ICE", "Observer", "Peer", "Stats", "Tape", "Queries", "Replay", "CZlib", "CZstd",
      ], containers: ["DequeModule"]),

    // A virtual network, for tests and virtual calls.
    module(
      "Lab",
      [
        "Wire", "ICE", "SDP", "JSEP", "Secure", "Peer", "Media", "AudioSession", "Room", "Tape",
      ]),

    // Live: sockets, clocks, threads and devices.
    // TLS for connections to relay and signaling servers, and from signaling clients.
    module("Live/TLS", ["COpenSSL"]),
    module(
      "Live/Live",
      [
        "Wire", "CSockets", "CProcess", "CSpeexDSP", "TLS", "ICE", "RTP", "Flow", "SDP", "JSEP",
        "SCTP", "Secure", "Peer", "Media", "MediaFiles", "AudioSession", "Stats", "Tape",
      ], containers: ["DequeModule", "HeapModule"]),
    module(
      "Live/Signaling", ["SDP", "Peer", "Room", "TLS", "CFiles"] + nio, exclude: ["CallPage"]),
    // The server for pages that show takes in a browser.
    module(
      "Live/Serving",
      [
        "Wire", "Peer", "Stats", "Tape", "Queries", "Page", "Replay", "Export", "Live", "Signaling",
      ]),
    // A call recorder: it answers offers over HTTP, WHIP or WHEP, and records each call's peer.
    module(
      "Live/CallRecording",
      [
        "Wire", "ICE", "RTP", "SCTP", "SDP", "JSEP", "Secure", "Media", "MediaFiles",
        "AudioSession", "Stats", "Peer", "Tape", "Page", "Replay", "Importing", "Live", "Signaling",
      ]),
    // A recorder for calls that web pages report, and the script that reports them.
    module(
      "Live/PageRecording",
      ["Wire", "Observer", "Room", "Tape", "Page", "Importing", "Signaling", "CFiles"],
      exclude: ["Script", "Extension"]),
    // A relay between two endpoints that do not know of it: a proxy for their signaling, and two
    // legs per call.
    module(
      "Live/Relaying",
      [
        "Wire", "ICE", "Secure", "SDP", "JSEP", "Observer", "Peer", "Tape", "Live", "Signaling",
      ]),
    // Re-enactments: a live client receives what a recorded receiver received, packet by packet.
    module(
      "Live/Reenactment",
      [
        "Wire", "Secure", "RTP", "SCTP", "SDP", "JSEP", "Stats", "Flow", "Peer", "Room", "Tape",
        "Replay", "Export", "Live", "Signaling", "Relaying",
      ]),
    // Live rooms: participants and media as objects, over a session's connections.
    module(
      "Live/RoomClient",
      [
        "Wire", "JSEP", "SCTP", "SDP", "Media", "MediaFiles", "AudioSession", "Stats", "Peer",
        "Room", "Tape", "Live", "Signaling",
      ] + nio),

    // Products, which applications import. Retake is the entire public API, with takes as values.
    module(
      "Products/Retake",
      [
        "Wire", "Secure", "ICE", "SCTP", "SDP", "JSEP", "Media", "AudioSession", "Stats", "Peer",
        "MediaFiles", "Room", "Tape", "Queries", "Replay", "Live", "Export", "Importing",
        "Signaling", "Serving", "CallRecording", "RoomClient",
      ]),
    // Calls under the names of libwebrtc's Objective-C API, as Swift imports them.
    module(
      "Products/RetakeRTC",
      [
        "Wire", "Secure", "ICE", "SCTP", "SDP", "JSEP", "Media", "MediaFiles", "AudioSession",
        "Stats", "Peer", "Live",
      ]),
    // Rooms under the names of two mobile SDKs; both targets are thin layers.
    module("Products/RetakeSora", ["Stats", "Media", "Live", "Room", "RoomClient", "RetakeRTC"]),
    module(
      "Products/RetakeConnectLive", ["Stats", "Media", "Live", "Room", "RoomClient", "RetakeRTC"]),
    module(
      "Products/RetakeTesting",
      ["Wire", "Live", "Media", "Peer", "SDP", "Tape", "Replay", "Signaling", "Reenactment"]),

    module(
      "Command/RetakeCommand",
      [
        "Wire", "ICE", "SDP", "JSEP", "Observer", "Live", "Tape", "Queries", "Page", "Replay",
        "Debug", "Lab", "TLS", "Signaling", "Serving", "CallRecording", "PageRecording", "Relaying",
        "Reenactment", "Room", "RoomClient", "Stats", "CProcess", "Export", "Importing", "CEdit",
        "CPcap", "Media", "MediaFiles", "AudioSession", "Peer", "RTP", "SCTP", "Secure", arguments,
      ]),
    // The program. Its name differs from the product's, because a file system may not distinguish
    // retake from Retake.
    program("RetakeMain", in: "Sources/Command/RetakeMain", ["RetakeCommand"]),

    // A developers' program: measures Retake, and compares it with the C libraries alone.
    program(
      "Benchmarks", in: "Sources/Command/Benchmarks",
      [
        "Wire", "SDP", "RTP", "Secure", "Peer", "Media", "AudioSession", "Tape", "Queries", "Page",
        "Replay", "Importing", "Lab", "Live", "Signaling", "CallRecording", "RetakeCommand", "CYUV",
        arguments,
      ]),

    // The capabilities of five client SDKs, each with its test and the change that breaks it. A
    // developers' program prints them.
    support("SDKTable", ["Wire"], exclude: ["Program"]),
    program("sdk-table", in: "Tests/SDKTable/Program", ["SDKTable", arguments]),

    tests("TidyTests", ["SDKTable"]),
    tests("CapturesTests", ["Wire", "Media", "Stats", "Peer", "Tape", "Queries", "Replay"]),
    tests("WireTests", ["Wire"]),
    tests(
      "TapeTests",
      [
        "Wire", "ICE", "RTP", "SCTP", "SDP", "JSEP", "Flow", "Media", "Stats", "Peer", "Tape",
        "Queries", "Lab", "CSQLite", "FaultyCalls",
      ]),
    tests(
      "ReplayTests",
      [
        "Wire", "ICE", "SCTP", "JSEP", "SDP", "Secure", "RTP", "Media", "MediaFiles",
        "AudioSession", "Stats", "Peer", "Room", "Tape", "Queries", "Replay", "Lab", "Debug",
        "Page",
      ]),
    tests(
      "DebugTests",
      [
        "Wire", "Media", "MediaFiles", "Peer", "Stats", "Tape", "Queries", "Replay", "Debug", "Lab",
        "CZlib", "FaultyCalls",
      ]),
    tests(
      "PageTests",
      [
        "Wire", "Crypto", "RTP", "SCTP", "Media", "Peer", "Tape", "Queries", "Page", "Lab",
        "Seeded",
      ]),
    tests(
      "RetakeTestingTests",
      [
        "Wire", "Media", "Stats", "Peer", "SDP", "Tape", "Lab", "Live", "RetakeTesting", "Retake",
      ]),
    tests(
      "RetakeRTCTests",
      [
        "Wire", "Media", "AudioSession", "Peer", "SDP", "Live", "Retake", "RetakeTesting",
        "RetakeRTC", "RoomServers",
      ]),
    // Room servers and a device with a microphone, for tests of clients.
    support(
      "RoomServers",
      [
        "Wire", "SDP", "JSEP", "Media", "AudioSession", "Peer", "Room", "Signaling", "Live",
        "RoomClient",
      ]),
    // Compiles without these settings, as in an application, so it contains the articles' code as
    // shown.
    .testTarget(
      name: "RetakeSoraTests",
      dependencies: [
        "Media", "AudioSession", "Peer", "Live", "RetakeRTC", "RoomServers", "RetakeSora",
      ]),
    .testTarget(
      name: "RetakeConnectLiveTests",
      dependencies: [
        "Media", "AudioSession", "Live", "RetakeRTC", "RoomServers", "RetakeConnectLive",
      ]),
    tests(
      "PeerTests",
      [
        "Wire", "ICE", "JSEP", "SCTP", "SDP", "Secure", "RTP", "Flow", "Media", "Stats", "Peer",
        "Tape", "Lab",
      ]),
    tests("CShimsTests", ["CDTLS", "CSockets", "CProcess", "COpus", "CVPX"]),
    tests("SecureTests", ["Secure", "Wire", "Crypto", "CDTLS", "COpenSSL", "Seeded"]),
    tests("ICETests", ["Wire", "Crypto", "ICE", "Lab"]),
    tests(
      "LiveTests",
      [
        "Wire", "CSockets", "TLS", "ICE", "RTP", "SDP", "JSEP", "SCTP", "Secure", "Flow", "Media",
        "MediaFiles", "AudioSession", "Stats", "Peer", "Tape", "Live", "Replay",
      ]),
    tests(
      "ReenactmentTests",
      [
        "Wire", "RTP", "SDP", "JSEP", "Media", "Stats", "Peer", "Tape", "Replay", "Signaling",
        "Live", "Reenactment",
      ]),
    tests(
      "RoomClientTests",
      [
        "Wire", "RTP", "SDP", "JSEP", "Media", "AudioSession", "Stats", "Peer", "Room", "Signaling",
        "Live", "Tape", "Replay", "RoomClient", "RoomServers",
      ]),
    tests(
      "RoomTests", ["Wire", "Peer", "SDP", "Room", "Lab"], exclude: ["Protocols/Transcripts"]),
    tests(
      "SignalingTests",
      [
        "SDP", "TLS", "Room", "Signaling", "Seeded", "IdentityFiles",
        .product(name: "NIOEmbedded", package: "swift-nio"),
      ] + nio),
    tests(
      "RelayingTests",
      [
        "Wire", "Secure", "SDP", "JSEP", "SCTP", "Media", "Stats", "Peer", "Tape", "Replay", "Live",
        "TLS", "Room", "Signaling", "Importing", "CallRecording", "Relaying", "Reenactment",
        "IdentityFiles",
      ]),
    tests("AudioSessionTests", ["AudioSession", "Media", "Wire", "Lab"]),
    tests("MediaTests", ["Media", "RTP", "Wire", "COpus", "CYUV"]),
    tests("MediaFilesTests", ["MediaFiles", "Media", "RTP", "Wire"]),
    .testTarget(
      name: "RTPTests", dependencies: ["Wire", "RTP", "Seeded"], resources: [.copy("Samples")],
      swiftSettings: settings),
    tests("SCTPTests", ["Wire", "SCTP", "Seeded"], containers: ["DequeModule", "HeapModule"]),
    tests("FlowTests", ["Wire", "RTP", "Flow", "Seeded"]),
    tests("SDPTests", ["Wire", "SDP", "Seeded"], exclude: ["Samples"]),
    tests("JSEPTests", ["Wire", "RTP", "SDP", "JSEP", "Seeded"]),
    // Random numbers from a seed.
    support("Seeded"),
    // A certificate for tests that use TLS.
    support("IdentityFiles", ["TLS"]),
    // tshark's output for a capture, for tests that compare with it.
    support("TsharkTables"),
    tests(
      "ObserverTests", ["Wire", "ICE", "Secure", "RTP", "SDP", "Observer", "TsharkTables"],
      exclude: ["Samples"]),
    tests(
      "AnyBytesTests",
      [
        "Wire", "ICE", "RTP", "SCTP", "SDP", "Observer", "Media", "Peer", "Lab", "Room",
        "Signaling", "Tape", "Replay", "Importing", "Seeded",
      ]),
    // Not a test bundle: it starts and ends calls for minutes, with its own recorder.
    program(
      "soak", in: "Tests/Soak",
      ["Wire", "JSEP", "SDP", "Live", "Media", "Peer", "Signaling", arguments]),
    // A developers' program: runs altered takes through every verb that reads takes.
    program(
      "altered", in: "Tests/Altered", ["RetakeCommand", "Tape", "Wire", "CProcess"],
      exclude: ["serve.py"]),
    // Calls with one fault each, in virtual time: for the tests of rules and for `findings`.
    support(
      "FaultyCalls",
      ["Wire", "ICE", "RTP", "SCTP", "SDP", "JSEP", "Secure", "Media", "Peer", "Tape", "Lab"]),
    // A developers' program: generates calls with known faults and judges the findings in them.
    program(
      "findings", in: "Tests/Findings",
      [
        "FaultyCalls", "Lab", "Media", "AudioSession", "Peer", "Room", "Queries", "Tape", "Wire",
      ]),
    // Tests of commands that run within the test process.
    tests(
      "RetakeCommandTests",
      [
        "RetakeCommand", "Live", "Media", "AudioSession", "Tape", "Importing", "Signaling",
        "Serving", "CallRecording", "PageRecording", "TsharkTables", "Wire", "Observer", "SCTP",
        "Peer", "Replay", "Queries", "Lab", arguments,
      ]),
    // Runs the executable, which is built along with the tests. The target does not depend on the
    // executable, so its modules compile without waiting for it.
    tests(
      "CommandTests", ["Wire", "Secure", "Tape", "Replay", "Room", "Signaling", "TsharkTables"]),
  ],
  swiftLanguageModes: [.v6]
)

// A machine may lack the libraries for H.264 and AV1: these codecs are then forwarded without
// encoding or decoding. After installing them, `swift package purge-cache` repeats this check.
let pkgConfigFolders =
  (Context.environment["PKG_CONFIG_PATH"] ?? "").split(separator: ":").map(String.init)
  + ["/usr/lib/pkgconfig", "/usr/share/pkgconfig", "/usr/local/lib/pkgconfig"]
  + ((try? FileManager.default.contentsOfDirectory(atPath: "/usr/lib")) ?? []).sorted()
  .map { "/usr/lib/\($0)/pkgconfig" }
for (module, file) in [("COpenH264", "openh264.pc"), ("CDav1d", "dav1d.pc")]
where !pkgConfigFolders.contains(where: { FileManager.default.fileExists(atPath: "\($0)/\(file)") })
{
  package.targets.removeAll { $0.name == module }
  for target in package.targets {
    target.dependencies.removeAll {
      guard case .byNameItem(module, _) = $0 else { return false }
      return true
    }
  }
}

// For work on one module: RETAKE_TESTS=FlowTests,PeerTests swift build --build-tests compiles and
// links only these tests.
if let wanted = Context.environment["RETAKE_TESTS"]?.split(separator: ",") {
  package.targets.removeAll { $0.type == .test && !wanted.contains(Substring($0.name)) }
}

// How `make` builds for tests (RETAKE_QUICK_TESTS=1 in the environment, debug builds only): modules
// that the tests run for hours of virtual time are optimised, with all checks kept. Peer, JSEP and
// others are not: optimising them costs the compiler more time than it saves the tests. A demo
// (RETAKE_QUICK_TESTS=demo) lasts seconds, so nothing in it is optimised.
if let quick = Context.environment["RETAKE_QUICK_TESTS"], quick != "demo" {
  // Lets Tests/Runner/XCTMain.swift run the tests.
  package.targets.append(
    .testTarget(
      name: "RunnerTests", dependencies: ["Tape"], path: "Tests/Runner/RunnerTests"))
  let driven: Set = [
    "Wire", "Crypto", "ICE", "Secure", "RTP", "SCTP", "SDP", "Flow", "Media", "Stats", "Tape",
  ]
  // Optimising for size compiles a tenth faster than for speed. The disabled passes search for
  // earlier points to release objects; they take half of some modules' compile time and make
  // nothing measurably faster.
  var flags = ["-Osize", "-assert-config", "Debug"]
  for pass in ["release-hoisting", "late-release-hoisting", "retain-sinking"] {
    flags += ["-Xllvm", "-sil-disable-pass=\(pass)"]
  }
  for target in package.targets where driven.contains(target.name) {
    target.swiftSettings = settings + [.unsafeFlags(flags, .when(configuration: .debug))]
  }
}

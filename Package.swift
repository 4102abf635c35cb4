// swift-tools-version: 6.2
import Foundation
import PackageDescription

/// Settings of every Swift target.
///
/// - `Lifetimes`: `ByteReader` and other views over borrowed bytes say how long they may live; this
///   is what lets parsers read packets without copies and without unsafe pointers.
/// - `ExistentialAny`, `MemberImportVisibility`, `InternalImportsByDefault`: what a file uses and
///   what a module shows is visible in the file itself.
let settings: [SwiftSetting] = [
  .enableExperimentalFeature("Lifetimes"),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
]

/// A target of the deterministic core or of what stands on it, with its test target when it has
/// one; `containers` are the modules of swift-collections that it uses.
func module(
  _ name: String, _ dependencies: [Target.Dependency], containers: [String] = [],
  exclude: [String] = []
) -> Target {
  .target(
    name: name, dependencies: dependencies + products(containers), exclude: exclude,
    swiftSettings: settings)
}

func tests(
  _ name: String, _ dependencies: [Target.Dependency], containers: [String] = []
) -> Target {
  .testTarget(
    name: name, dependencies: dependencies + products(containers), swiftSettings: settings)
}

func products(_ containers: [String]) -> [Target.Dependency] {
  containers.map { .product(name: $0, package: "swift-collections") }
}

func library(_ name: String, _ pkgConfig: String?, _ package: String) -> Target {
  .systemLibrary(name: name, pkgConfig: pkgConfig, providers: [.apt([package])])
}

let nio: [Target.Dependency] = [
  .product(name: "NIOCore", package: "swift-nio"),
  .product(name: "NIOPosix", package: "swift-nio"),
  .product(name: "NIOHTTP1", package: "swift-nio"),
  .product(name: "NIOWebSocket", package: "swift-nio"),
]

let package = Package(
  name: "retake",
  products: [
    .executable(name: "retake", targets: ["RetakeMain"]),
    // For applications: calls, files of media, signaling, and takes.
    .library(name: "Retake", targets: ["Retake"]),
    // For applications that are written against the Objective-C API of libwebrtc.
    .library(name: "RetakeRTC", targets: ["RetakeRTC"]),
    // For the tests of other packages: takes as regression tests, and a network that is a take.
    .library(name: "RetakeTesting", targets: ["RetakeTesting"]),
  ],
  dependencies: [
    // The command line: parsing, help, completion.
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    // TCP and HTTP for signaling, at the edge only; media has its own loop with kernel timestamps.
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    // Queues and heaps, values that the core may hold: SwiftNIO stands on the same package.
    .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
    // Not swift-log: nothing is logged. What happens goes into the take, errors are values.
  ],
  targets: [
    // System libraries.
    library("CSQLite", "sqlite3", "libsqlite3-dev"),  // the take
    library("CSRTP", "libsrtp2", "libsrtp2-dev"),  // SRTP and SRTCP
    library("COpus", "opus", "libopus-dev"),  // Opus
    library("CVPX", "vpx", "libvpx-dev"),  // VP8
    library("CPcap", "libpcap", "libpcap-dev"),  // export to packet captures, live capture
    library("CZlib", "zlib", "zlib1g-dev"),  // captures that gzip compressed
    library("CZstd", "libzstd", "libzstd-dev"),  // captures that zstd compressed
    library("COpenSSL", "openssl", "libssl-dev"),  // DTLS, HMAC-SHA1, SHA-256, certificates
    library("CXXHash", "libxxhash", "libxxhash-dev"),  // digests of decoded pictures
    // Pixel formats and rotation of what is captured; Debian's package has no pkg-config file.
    library("CYUV", nil, "libyuv-dev"),
    library("CCharLS", "charls", "libcharls-dev"),  // captured pictures on the tape, lossless
    library("COpenH264", "openh264", "libopenh264-dev"),  // decoding of H.264, where it is there
    library("CDav1d", "dav1d", "libdav1d-dev"),  // decoding of AV1, where it is there
    library("CSpeexDSP", "speexdsp", "libspeexdsp-dev"),  // echo and loudness of a microphone
    library("CEdit", "libedit", "libedit-dev"),  // lines, history, completion of retake debug
    // What Swift cannot import, by what needs it: variadic functions, macros, callbacks, fork.
    .target(name: "CDTLS", dependencies: ["COpenSSL"]),
    .target(name: "CSockets"),
    .target(name: "CProcess"),
    .target(name: "CSRTPCiphers", dependencies: ["COpenSSL", "CSRTP"]),
    // The schema and the pages, embedded. Swift takes half a minute to compile them as arrays.
    .target(name: "CFiles"),

    // The deterministic core, lowest first. A target imports only downwards.
    module("Wire", [], containers: ["HeapModule"]),
    module("Digests", ["Wire", "COpenSSL", "CXXHash"]),
    module("STUN", ["Wire", "Digests"]),
    module("TURN", ["Wire", "STUN"]),
    module("ICE", ["Wire", "STUN", "TURN"]),
    module("MulticastDNS", ["Wire"]),
    module("Secure", ["Wire", "Digests", "CDTLS", "COpenSSL", "CSRTP", "CSRTPCiphers"]),
    module("RTP", ["Wire"]),
    module("SCTP", ["Wire"], containers: ["DequeModule", "HeapModule"]),
    module("SDP", ["Wire"]),
    module("JSEP", ["Wire", "RTP", "SDP"]),
    module("Transport", ["Wire", "ICE", "Secure", "RTP", "JSEP"]),
    // Calls of others: packets out of captures, keys out of logs, and what both tell.
    module("Capture", ["Wire"]),
    module("Decryption", ["Wire", "Digests", "Secure", "SDP"]),
    module(
      "Observer", ["Wire", "STUN", "TURN", "ICE", "Secure", "RTP", "SDP", "Decryption"],
      containers: ["DequeModule"]),
    module("Flow", ["Wire", "RTP"], containers: ["DequeModule"]),
    module(
      "Media", ["Wire", "RTP", "COpus", "CVPX", "CYUV", "COpenH264", "CDav1d"],
      containers: ["DequeModule"]),
    // Which way sound goes on a machine, and the blocks of it between device and stack.
    module("AudioSession", ["Wire", "Media"]),
    module("Stats", ["Wire"]),
    module("Speakers", ["Wire"]),
    module(
      "Peer",
      [
        "Wire", "TURN", "ICE", "Secure", "RTP", "SCTP", "SDP", "JSEP", "Transport", "Flow",
        "Media", "Stats", "Speakers", "Digests",
      ]),

    // What every signaling protocol of rooms takes and gives.
    module("RoomSignaling", ["Wire", "SDP", "Stats", "Peer"]),
    // The protocols that rooms speak, as machines: Janus, Sora, WHIP and WHEP, Retake's own.
    module("RoomProtocols", ["Wire", "Digests", "SDP", "Peer", "RoomSignaling"]),
    // A room of a service: who is there, what is sent and received over which connections.
    module("Room", ["Wire", "Peer", "RoomSignaling"]),

    // What records, replays and drives the core.
    // Files of sound and pictures stand outside the core, also the parts of their formats that are
    // pure: the core gets captured blocks and pictures as inputs, whatever they were read from.
    module("MediaFiles", ["Wire", "RTP", "Media"]),
    module(
      "Tape",
      [
        "Wire", "Digests", "SDP", "JSEP", "ICE", "Secure", "RTP", "SCTP", "Flow", "Peer", "Media",
        "Stats", "Speakers", "Decryption", "Observer", "AudioSession", "RoomSignaling",
        "RoomProtocols", "Room", "CSQLite", "CDTLS", "CCharLS", "CFiles",
      ]),
    module("Queries", ["Wire", "Digests", "RTP", "Media", "Stats", "Speakers", "Tape"]),
    module(
      "Page",
      ["Wire", "Digests", "RTP", "Stats", "MediaFiles", "Tape", "Queries", "CZlib", "CFiles"],
      exclude: ["Document"]),
    module(
      "Replay",
      [
        "Wire", "Digests", "SDP", "RTP", "SCTP", "STUN", "ICE", "Secure", "Flow", "Transport",
        "Peer",
        "Media", "Tape", "Stats",
      ], containers: ["DequeModule"]),
    module(
      "Debug",
      [
        "Wire", "CProcess", "SDP", "RTP", "Peer", "Media", "MediaFiles", "Stats", "Tape", "Queries",
        "Replay",
      ]),
    module(
      "Lab",
      [
        "Wire", "STUN", "TURN", "ICE", "SDP", "JSEP", "Secure", "Peer", "Media", "AudioSession",
        "RoomSignaling", "Room", "Tape",
      ]),
    // TLS for connections to servers of relays and of signaling, and from their clients.
    module("TLS", ["COpenSSL"]),
    module(
      "Live",
      [
        "Wire", "CSockets", "CProcess", "CSpeexDSP", "TLS", "STUN", "TURN", "MulticastDNS", "RTP",
        "Flow", "SDP", "JSEP", "ICE", "SCTP", "Secure", "Peer", "Media", "MediaFiles",
        "AudioSession", "Stats",
        "Speakers", "Tape",
      ], containers: ["DequeModule", "HeapModule"]),
    // Takes as the files of other tools.
    module(
      "Export",
      [
        "Wire", "Digests", "STUN", "TURN", "RTP", "Transport", "Observer", "Peer", "Media",
        "MediaFiles", "Tape", "Replay", "Live",
      ]),
    module("Verify", ["Wire", "Peer", "Media", "Tape", "Queries", "Replay"]),
    module("RetakeTesting", ["Live", "Media", "Peer", "SDP", "Tape", "Replay", "Verify"]),
    module(
      "Signaling", ["SDP", "Peer", "RoomSignaling", "RoomProtocols", "TLS", "CFiles"] + nio,
      exclude: ["CallPage"]),
    // Rooms of services, live: participants and media as objects, over the connections of a session.
    module(
      "RoomClient",
      [
        "Wire", "JSEP", "SCTP", "SDP", "Media", "MediaFiles", "AudioSession", "Stats", "Peer",
        "RoomSignaling", "RoomProtocols", "Room", "Tape", "Live", "Signaling",
      ] + nio),
    // What an application imports: all that is public, and takes as values.
    module(
      "Retake",
      [
        "Wire", "Secure", "ICE", "SCTP", "SDP", "JSEP", "Media", "AudioSession", "Stats", "Peer",
        "MediaFiles", "RoomSignaling", "RoomProtocols", "Room", "Tape", "Queries", "Replay", "Live",
        "Export",
        "Signaling", "RoomClient",
      ]),
    // The same with the names of libwebrtc's Objective-C API, as Swift sees them.
    module(
      "RetakeRTC",
      [
        "Wire", "Secure", "ICE", "SCTP", "SDP", "JSEP", "Media", "MediaFiles", "AudioSession",
        "Stats", "Peer", "Live",
      ]),
    .target(
      name: "RetakeCommand",
      dependencies: [
        "Wire", "ICE", "SDP", "JSEP", "Capture", "Decryption", "Observer", "Live", "Tape",
        "Queries", "Page", "Replay", "Debug",
        "Lab", "TLS", "Signaling", "RoomSignaling", "RoomClient", "Stats", "CProcess",
        "Verify", "Export", "CEdit", "CPcap", "CZlib", "CZstd", "CYUV",
        "Media", "MediaFiles", "AudioSession", "Peer", "RTP", "SCTP", "Secure", "Transport",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: settings),
    // The program. Not named as its product: a file system may not tell retake and Retake apart.
    .executableTarget(
      name: "RetakeMain", dependencies: ["RetakeCommand"], swiftSettings: settings),

    tests("TidyTests", []),
    tests(
      "CapturesTests", ["Wire", "Media", "Stats", "Peer", "Tape", "Queries", "Replay", "Verify"]),
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
        "Wire", "SCTP", "JSEP", "SDP", "Secure", "RTP", "Media", "MediaFiles", "AudioSession",
        "Stats", "Peer", "RoomSignaling", "Room", "Tape", "Queries", "Replay", "Lab", "Debug",
        "Verify", "Page",
      ]),
    tests(
      "DebugTests",
      [
        "Wire", "Media", "MediaFiles", "Peer", "Stats", "Tape", "Queries", "Replay", "Debug", "Lab",
      ]),
    tests(
      "PageTests",
      ["Wire", "Digests", "RTP", "SCTP", "Media", "Peer", "Tape", "Queries", "Page", "Lab"]),
    tests("VerifyTests", ["Wire", "RTP", "Media", "Peer", "Tape", "Replay", "Verify", "Lab"]),
    tests(
      "RetakeTestingTests",
      [
        "Wire", "Media", "Stats", "Peer", "SDP", "Tape", "Lab", "Live", "RetakeTesting", "Retake",
      ]),
    tests(
      "RetakeRTCTests",
      [
        "Wire", "Media", "AudioSession", "Peer", "SDP", "Live", "Retake", "RetakeTesting",
        "RetakeRTC",
      ]),
    tests("SpeakersTests", ["Wire", "Speakers"]),
    tests(
      "PeerTests",
      [
        "Wire", "ICE", "JSEP", "SCTP", "SDP", "Secure", "RTP", "Transport", "Flow", "Media",
        "Stats", "Peer", "Tape", "Lab",
      ]),
    tests("CShimsTests", ["CDTLS", "CSockets", "CProcess", "COpus", "CVPX"]),
    tests("SecureTests", ["Secure", "Wire", "Digests", "CDTLS", "COpenSSL"]),
    tests("STUNTests", ["Wire", "Digests", "STUN"]),
    tests("TURNTests", ["Wire", "STUN", "TURN", "Lab"]),
    tests("MulticastDNSTests", ["Wire", "MulticastDNS"]),
    tests("ICETests", ["Wire", "STUN", "TURN", "ICE", "Lab"]),
    tests(
      "LiveTests",
      [
        "Wire", "CSockets", "TLS", "TURN", "RTP", "SDP", "JSEP", "ICE", "SCTP", "Secure", "Flow",
        "Media",
        "MediaFiles", "AudioSession", "Stats", "Peer", "Tape", "Live", "Replay",
      ]),
    tests(
      "RoomClientTests",
      [
        "Wire", "RTP", "SDP", "JSEP", "Media", "AudioSession", "Stats", "Peer", "RoomSignaling",
        "RoomProtocols", "Room", "Signaling", "Live", "Tape", "Replay", "RoomClient",
      ]),
    tests("RoomTests", ["Wire", "Peer", "SDP", "RoomSignaling", "Room", "Lab"]),
    tests(
      "SignalingTests",
      [
        "SDP", "TLS", "RoomSignaling", "Signaling",
        .product(name: "NIOEmbedded", package: "swift-nio"),
      ] + nio),
    tests("RoomSignalingTests", ["Wire", "RoomSignaling"]),
    .testTarget(
      name: "RoomProtocolsTests",
      dependencies: ["Wire", "SDP", "Peer", "RoomSignaling", "RoomProtocols"],
      exclude: ["Transcripts"], swiftSettings: settings),
    tests("AudioSessionTests", ["AudioSession", "Media", "Wire", "Lab"]),
    tests("MediaTests", ["Media", "RTP", "Wire", "COpus", "CYUV"]),
    tests("MediaFilesTests", ["MediaFiles", "Media", "RTP", "Wire"]),
    .testTarget(
      name: "RTPTests", dependencies: ["Wire", "RTP"], resources: [.copy("Samples")],
      swiftSettings: settings),
    tests("SCTPTests", ["Wire", "SCTP"], containers: ["DequeModule", "HeapModule"]),
    tests("FlowTests", ["Wire", "RTP", "Flow"]),
    .testTarget(
      name: "SDPTests", dependencies: ["Wire", "SDP"], exclude: ["Samples"],
      swiftSettings: settings),
    tests("JSEPTests", ["Wire", "RTP", "SDP", "JSEP"]),
    tests("CaptureTests", ["Wire", "Capture"]),
    tests("DecryptionTests", ["Wire", "Secure", "SDP", "Capture", "Decryption"]),
    // What tshark says of a capture, for the tests that compare.
    .target(name: "TsharkTables", path: "Tests/TsharkTables", swiftSettings: settings),
    .testTarget(
      name: "ObserverTests",
      dependencies: [
        "Wire", "STUN", "TURN", "ICE", "Secure", "RTP", "Capture", "Decryption", "Observer",
        "TsharkTables",
      ], exclude: ["Samples"], swiftSettings: settings),
    tests(
      "AnyBytesTests",
      [
        "Wire", "STUN", "RTP", "SCTP", "SDP", "Capture", "Decryption", "Observer", "Media", "Peer",
        "Lab", "RoomSignaling", "RoomProtocols", "Signaling", "Tape", "Replay", "RetakeCommand",
      ]),
    // Not a test bundle: calls that come and go for minutes, against a recorder of its own.
    .executableTarget(
      name: "soak",
      dependencies: [
        "Wire", "JSEP", "SDP", "Live", "Media", "Peer", "Signaling",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      path: "Tests/Soak", swiftSettings: settings),
    // A developers' program: runs altered takes through every verb that reads takes.
    .executableTarget(
      name: "altered", dependencies: ["RetakeCommand", "Tape", "Wire", "CProcess"],
      path: "Tests/Altered", exclude: ["serve.py"], swiftSettings: settings),
    // Calls with one fault each, made in virtual time: for the tests of rules and for `findings`.
    .target(
      name: "FaultyCalls",
      dependencies: [
        "Wire", "STUN", "ICE", "RTP", "SCTP", "SDP", "JSEP", "Secure", "Media", "Peer", "Tape",
        "Lab",
      ],
      path: "Tests/FaultyCalls", swiftSettings: settings),
    // A developers' program: makes calls with known faults and judges what is found in them.
    .executableTarget(
      name: "findings", dependencies: ["FaultyCalls", "Queries", "Tape", "Wire"],
      path: "Tests/Findings", swiftSettings: settings),
    // What can be asked of commands within a process.
    tests(
      "RetakeCommandTests",
      [
        "RetakeCommand", "Tape", "Signaling", "TsharkTables",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]),
    // Drives the executable, which is built with the tests. It does not depend on it, so that the
    // largest of the test modules need not wait for the last of the others.
    tests(
      "CommandTests", ["Wire", "Tape", "Replay", "RoomSignaling", "Signaling", "TsharkTables"]),
  ],
  swiftLanguageModes: [.v6]
)

// A machine may lack the decoders of H.264 and AV1: what they would decode is then carried through
// as it came. Where they were installed later, `swift package purge-cache` has this looked at anew.
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

// While one works on a module: RETAKE_TESTS=FlowTests,PeerTests swift build --build-tests
// compiles and links these tests alone.
if let wanted = Context.environment["RETAKE_TESTS"]?.split(separator: ",") {
  package.targets.removeAll { $0.type == .test && !wanted.contains(Substring($0.name)) }
}

// How `make` builds what it tests (RETAKE_QUICK_TESTS=1 in the environment, in debug builds alone):
// what the tests drive for hours of virtual time is optimised, with all its checks left in. Peer,
// JSEP and others are not: to optimise them takes the compiler longer than it spares the tests. A
// demo (RETAKE_QUICK_TESTS=demo) lasts seconds: nothing of it is optimised.
if let quick = Context.environment["RETAKE_QUICK_TESTS"], quick != "demo" {
  // Has the tests run by Tests/Runner/XCTMain.swift.
  package.targets.append(
    .testTarget(
      name: "RunnerTests", dependencies: ["Tape"], path: "Tests/Runner/RunnerTests"))
  let driven: Set = [
    "Wire", "Digests", "STUN", "ICE", "Secure", "RTP", "SCTP", "SDP", "Flow", "Media", "Stats",
    "Speakers", "Tape",
  ]
  // For size: the compiler takes a tenth less. The search for earlier places to release objects takes
  // half of the time of some modules and makes nothing faster that can be measured.
  var flags = ["-Osize", "-assert-config", "Debug"]
  for pass in ["release-hoisting", "late-release-hoisting", "retain-sinking"] {
    flags += ["-Xllvm", "-sil-disable-pass=\(pass)"]
  }
  for target in package.targets where driven.contains(target.name) {
    target.swiftSettings = settings + [.unsafeFlags(flags, .when(configuration: .debug))]
  }
}

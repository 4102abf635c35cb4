/// Which targets may import which.
enum Layers {
  /// All targets, lowest first: a target may import only earlier ones.
  ///
  /// The containers of swift-collections are below all of them: values without a clock, randomness
  /// or hashing, so that the core may use them like arrays.
  static let order = [
    "DequeModule", "HeapModule",
    "CSQLite", "CSRTP", "COpus", "CVPX", "CPcap", "CZlib", "CZstd", "CEdit", "COpenSSL", "CXXHash",
    "CYUV", "CCharLS", "CSpeexDSP", "COpenH264", "CDav1d", "CSRTPCiphers", "CDTLS", "CSockets",
    "CProcess", "CFiles",
    "Wire", "Crypto", "ICE", "Secure", "RTP", "SCTP", "SDP", "JSEP", "Flow", "Media",
    "AudioSession", "Stats", "Peer", "Room",
    "Observer",
    "MediaFiles", "Tape", "Queries", "Page", "Replay", "Debug", "Export",
    "Importing",
    "Lab",
    "TLS", "Live", "Signaling", "Serving", "CallRecording", "PageRecording", "Relaying",
    "Reenactment", "RoomClient",
    "Retake", "RetakeRTC", "RetakeTesting", "RetakeSora", "RetakeConnectLive",
    "RetakeCommand", "RetakeMain", "Benchmarks", "altered", "soak", "Seeded", "IdentityFiles",
    "TsharkTables",
    "RoomServers", "FaultyCalls", "findings", "SDKTable", "sdk-table",
  ]

  /// The deterministic core: no clock, no randomness, no input or output of its own.
  static let core = [
    "Wire", "Crypto", "ICE", "Secure", "RTP", "SCTP", "SDP", "JSEP", "Flow", "Media",
    "AudioSession", "Stats", "Peer", "Room",
    "Observer",
  ]

  /// Parses the manifest's targets, with each one's dependencies inside the package.
  static func declared(in manifest: SourceFile) throws -> [(name: String, needs: [String])] {
    let target = try Pattern(
      // A name, then everything up to the next line that starts a target, a comment or the end.
      #"(?:module|shim|(?<!\.)library|support|program)"#
        + #"\(\s*(?:name: )?"(?:\w+/)*([\w-]+)",?"#
        + #"([^\n]*(?:\n(?!    (?:module|shim|library|support|program|tests|\.|//|\]))[^\n]*)*)"#,
      "target")
    let name = try Pattern(#""(\w+)""#, "name")
    return target.matches(in: manifest.text).map { match in
      let needs = name.matches(in: match.groups[2]).map { $0.groups[1] }
      return (match.groups[1], needs.filter(order.contains))
    }
  }
}

public import ArgumentParser
import CallRecording
import FoundationEssentials
import Glibc
import Importing
public import JSEP
import Live
import Media
public import Peer
import Tape
public import Wire

/// Options that all recording commands share.
struct RecordOptions: ParsableArguments {
  @Option(
    name: .shortAndLong,
    help: "The take to write, or a folder for one take per call. Default: a name with the time.",
    completion: .file(extensions: ["take"]), transform: Taking.path)
  var out: String?

  @OptionGroup var session: SessionRecordingOptions

  @Option(
    name: .customLong("video-codec"),
    help: """
      The video codec to prefer. H.264 is encoded where this build has OpenH264, AV1 is not: it is \
      only recorded, and echoed with --send echo.
      """)
  var videoCodec: VideoCodecChoice?

  @Option(
    name: .customLong("bundle-policy"),
    help: """
      What to offer a peer that may not support BUNDLE: max-bundle offers one transport for all \
      sections, balanced one for the first section of each kind, max-compat one for each section.
      """)
  // Differs from PeerConfiguration's W3C default: GStreamer refuses bundles whose sections have
  // separate credentials, as in RFC 9429 section 5.2.1, and all peers support bundling.
  var bundlePolicy = BundlePolicy.maxBundle

  @Flag(
    name: [.customLong("mdns-candidates"), .customLong("ice-names")],
    help: "Replace host addresses by random mDNS names; only hosts on the link can resolve them.")
  var hidesAddresses = false

  @OptionGroup var ring: RingOptions

  @OptionGroup var overwrite: OverwriteOption

  @Flag(help: "Print JSON for programs at the end.")
  var json = false

  /// - Parameter ring: retains the last seconds of the session instead of recording the take.
  func sessionOptions(take: String?, ring: RingPlan? = nil) -> Session.Options {
    session.options(take: take, ring: ring)
  }

  /// The configuration of the recorded peers, according to all options.
  var peerConfiguration: PeerConfiguration {
    var configuration = session.peerConfiguration
    configuration.bundlePolicy = bundlePolicy
    configuration.iceAddressPrivacy = hidesAddresses ? .names : nil
    configuration.codecs = videoCodec?.offered
    return configuration
  }

  /// Whether `--out` names a folder.
  var isFolder: Bool { TakeNames.isFolder(out) }

  func recording(_ ring: RingPlan? = nil) -> CallRecordingOptions {
    CallRecordingOptions(
      out: out, peer: peerConfiguration, videoCodec: videoCodec,
      session: { sessionOptions(take: $0, ring: ring) },
      takePath: { prefix throws(TapeError) in
        do {
          return try newTakePath(prefix: prefix)
        } catch {
          let reason = (error as? CommandFailure)?.message ?? "\(error)"
          throw TapeError(path: "", place: "", reason: reason, kind: .failed)
        }
      })
  }

  /// Returns a new take's path; in a folder, its name has the time and a free number.
  func newTakePath(prefix: String) throws -> String {
    try Self.newTakePath(out, prefix: prefix, overwrite)
  }

  /// Returns a new take's path according to `--out`.
  static func newTakePath(
    _ out: String?, prefix: String, _ overwrite: OverwriteOption
  ) throws -> String {
    if let out, !TakeNames.isFolder(out) {
      try overwrite.clear(out)
      guard FileBytes.kind(of: out) == nil else {
        throw CommandFailure(WholeFile.Failure(path: out, code: EEXIST))
      }
      return out
    }
    do throws(TapeError) {
      return try TakeNames.free(in: out, prefix: prefix)
    } catch {
      throw CommandFailure(.inputOutput, "\(error); choose another --out")
    }
  }
}

// MARK: - SessionRecordingOptions

/// Options for every recording in which Retake itself has connections: the recording's length, the
/// take's contents, and how the connections reach their peers.
struct SessionRecordingOptions: ParsableArguments {
  @Option(
    help: "End the recording after this many seconds; without it, Ctrl-C ends it.",
    transform: Taking.seconds(0.001...1_000_000))
  var seconds: Double?

  @Option(help: "Free text stored in the take.", transform: Taking.text())
  var label = ""

  @OptionGroup var tagging: TagOption

  @Flag(
    name: .customLong("no-media-copy"),
    help: "Do not store unencrypted copies of the encoded media.")
  var omitsMedia = false

  @Option(
    help: """
      A local address that ICE may gather on; may be given several times. Default: all but \
      loopback, or loopback if there is no other.
      """,
    transform: Taking.value("an address is one of IPv4 or IPv6, as in 192.0.2.1 or 2001:db8::1"))
  var bind: [IPAddress] = []

  @Option(
    name: .customLong("ice-server"),
    help: """
      A STUN or TURN server for ICE as stun:HOST[:PORT] or turn:NAME:PASSWORD@HOST[:PORT], also \
      with ?transport=tcp, or turns:; may be given several times. \(Taking.secretForm)
      """,
    transform: Taking.secret(Taking.value(ICEServerChoice.wanted)))
  var iceServers: [ICEServerChoice] = []

  @Option(
    name: [.customLong("ice-transport-policy"), .customLong("ice-policy")],
    help: "Which candidates ICE uses: all, or relay for only those of TURN servers.")
  var icePolicy = ICETransportPolicy.all

  @Option(
    name: .customLong("ice-tcp"),
    help: """
      Use ICE over TCP: also, in addition to UDP, or only, without UDP and servers. Default: UDP \
      only.
      """)
  var iceTCP: ICETCPPolicy?

  func validate() throws {
    // Relay candidates come from TURN servers only.
    if icePolicy == .relay, iceTCP == .only {
      throw ValidationError(
        "--ice-transport-policy relay needs a server, but --ice-tcp only uses none: leave one out.")
    }
    if icePolicy == .relay, !iceServers.contains(where: { $0.server.username != nil }) {
      throw ValidationError(
        "--ice-transport-policy relay needs a TURN server: add --ice-server turn:...")
    }
    let present = LocalInterface.all().map(\.address)
    for address in bind where !address.isUnspecified && !present.contains(address) {
      let names = present.map(\.description).joined(separator: ", ")
      throw ValidationError(
        "--bind \(address): this machine does not have this address, only \(names).")
    }
  }

  /// The first given option that concerns the machine's network; nil if there is none.
  var networkOption: String? {
    let options = [
      ("--bind", !bind.isEmpty), ("--ice-server", !iceServers.isEmpty),
      ("--ice-transport-policy", icePolicy != .all), ("--ice-tcp", iceTCP != nil),
    ]
    return options.first { $0.1 }?.0
  }

  /// The configuration of connections, according to these options.
  var peerConfiguration: PeerConfiguration {
    var configuration = PeerConfiguration()
    configuration.iceServers = iceServers.map(\.server)
    configuration.iceTransportPolicy = icePolicy
    configuration.iceTCP = iceTCP
    return configuration
  }

  /// - Parameter ring: retains the last seconds of the session instead of recording the take.
  func options(take: String?, ring: RingPlan? = nil) -> Session.Options {
    var options = Session.Options()
    options.takePath = take
    options.label = label
    options.tags = tagging.tags
    options.keepsMedia = !omitsMedia
    options.bind = bind.isEmpty ? .automatic : .addresses(bind)
    if let ring, let take { options.sink = PeerRing(ring.recorder(take: take)) }
    return options
  }

  /// The settings of takes that a ring writes.
  var importSettings: ImportSettings {
    var settings = ImportSettings()
    settings.label = label
    settings.tags = tagging.tags
    settings.keepsMedia = !omitsMedia
    return settings
  }
}

extension IPAddress: ExpressibleByArgument {
  /// Parses an address such as `192.0.2.1` or `2001:db8::1`; fails for any other text.
  public init?(argument: String) { self.init(argument) }
}

/// An ICE server's URI, with name and password before the host for TURN.
struct ICEServerChoice: ExpressibleByArgument {
  let server: ICEServerConfiguration

  /// The expected form, for error messages.
  static let wanted =
    "a server is stun:HOST[:PORT], or turn:NAME:PASSWORD@HOST[:PORT], with ports from 1 to 65535"

  init?(argument: String) {
    guard let colon = argument.firstIndex(of: ":") else { return nil }
    let scheme = argument[..<colon]
    let rest = argument[argument.index(after: colon)...]
    // The password ends at the last @, since hosts contain no @.
    if let at = rest.lastIndex(of: "@") {
      let words = rest[..<at].split(
        separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      guard words.count == 2, !words[0].isEmpty else { return nil }
      server = ICEServerConfiguration(
        urls: ["\(scheme):\(rest[rest.index(after: at)...])"], username: String(words[0]),
        credential: String(words[1]))
    } else {
      server = ICEServerConfiguration(urls: [argument])
    }
    var configuration = PeerConfiguration()
    configuration.iceServers = [server]
    guard configuration.firstUnusableICEServer == nil else { return nil }
  }
}

extension ICETransportPolicy: ExpressibleByArgument {}

extension ICETCPPolicy: ExpressibleByArgument {}

extension BundlePolicy: ExpressibleByArgument {}

// MARK: - TagOption

/// The option `--tag`, which may be given several times.
struct TagOption: ParsableArguments {
  @Option(
    name: .customLong("tag"),
    help: ArgumentHelp(
      "Tag the take with a key and a value, as in site=berlin; may be given several times. The "
        + "view tag lists the tags, and published takes have a column for each key.",
      valueName: "key=value"),
    transform: TagOption.reader)
  var list: [Tag] = []

  struct Tag: Sendable, Hashable {
    var key: String
    var value: String
  }

  private static let keyLimit = 64
  private static let valueLimit = 200
  private static let countLimit = 32

  /// The tags by key; if a key is given several times, its first value.
  var tags: [String: String] {
    Dictionary(list.map { ($0.key, $0.value) }) { first, _ in first }
  }

  private static let reader: Taking.Reader<Tag> = { word in
    let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let key = parts[0]
    guard parts.count == 2, (1...keyLimit).contains(key.utf8.count),
      key.utf8.allSatisfy({ isPartOfKey($0) }), key.utf8.first.map(isDigit) == false
    else {
      throw Taking.Refusal(
        "it is KEY=VALUE, as in site=berlin; a key has from 1 to \(keyLimit) letters from a to z, "
          + "digits and underscores, and does not begin with a digit")
    }
    guard (1...valueLimit).contains(parts[1].utf8.count),
      !parts[1].unicodeScalars.contains(where: { $0.value < 32 })
    else {
      throw Taking.Refusal(
        "the value of \(key) has from 1 to \(valueLimit) bytes, none of them a control character")
    }
    return Tag(key: String(key), value: String(parts[1]))
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

  private static func isPartOfKey(_ byte: UInt8) -> Bool {
    (0x61...0x7a).contains(byte) || isDigit(byte) || byte == 0x5f
  }

  func validate() throws {
    guard list.count <= Self.countLimit else {
      throw ValidationError("--tag: a take has from 0 to \(Self.countLimit) tags.")
    }
    var seen: Set<String> = []
    for tag in list where !seen.insert(tag.key).inserted {
      throw ValidationError("--tag \(tag.key): the key is given twice; give one value for it.")
    }
  }
}

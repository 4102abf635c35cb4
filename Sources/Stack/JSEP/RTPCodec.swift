import RTP
public import Wire

/// A codec in the form of the W3C API (RTCRtpCodec).
public struct RTPCodec: Hashable, Sendable, Codable {
  /// The MIME type: `audio/opus`, `video/VP8`, `video/rtx`, ...
  public var mimeType: String
  /// The clock rate in Hz.
  public var clockRate: UInt32
  /// The number of audio channels, if more than one.
  public var channels: UInt8?
  /// The parameters of the `a=fmtp:` line, in its syntax; nil if there are none.
  public var sdpFmtpLine: String?

  /// Creates a codec; `channels` is nil for video and for mono audio.
  public init(
    mimeType: String, clockRate: UInt32, channels: UInt8? = nil, sdpFmtpLine: String? = nil
  ) {
    self.mimeType = mimeType
    self.clockRate = clockRate
    self.channels = channels
    self.sdpFmtpLine = sdpFmtpLine
  }

  /// Returns all codecs of a kind that can be sent and received, RTX last (W3C
  /// RTCRtpSender.getCapabilities).
  /// - Parameter names: the codecs in the connection's configuration; nil for the default.
  public static func capabilities(_ kind: MediaKind, offering names: [String]? = nil)
    -> [RTPCodec]
  {
    capabilities(kind, of: names == nil ? .offered : Capabilities(codecs: names))
  }

  /// Returns all codecs of a kind that a peer with these capabilities can send and receive.
  static func capabilities(_ kind: MediaKind, of capabilities: Capabilities) -> [RTPCodec] {
    let known = capabilities.codecs(kind)
    var codecs = known.map { RTPCodec($0) }
    if let repaired = known.first(where: { $0.rtxPayloadType != nil }) {
      codecs.append(
        RTPCodec(mimeType: "\(kind.rawValue)/rtx", clockRate: repaired.clockRate))
    }
    return codecs
  }

  package init(_ capability: CodecCapability) {
    self.init(
      mimeType: "\(capability.kind.rawValue)/\(capability.name)", clockRate: capability.clockRate,
      channels: capability.channels,
      sdpFmtpLine: capability.parameters.isEmpty ? nil : capability.parameters)
  }

  /// Creates the W3C form of a negotiated codec, with the local parameters.
  package init(_ codec: NegotiatedCodec, _ kind: MediaKind) {
    self.init(
      mimeType: "\(kind.rawValue)/\(codec.displayName)", clockRate: codec.clockRate,
      channels: codec.channels,
      sdpFmtpLine: codec.localParameters.isEmpty ? nil : codec.localParameters)
  }

  /// The values that distinguish the codec's formats; nil if the parameters are invalid.
  var format: CodecFormat? {
    mimeType.split(separator: "/").last.flatMap {
      CodecFormat(name: String($0), parameters: sdpFmtpLine ?? "", clockRate: clockRate)
    }
  }

  /// Whether the codec is for media rather than RTX or telephone events.
  var carriesMedia: Bool {
    !isRetransmission && format.map { CodecName(rawValue: $0.name).carriesMedia } ?? true
  }

  /// Returns whether two codecs are the same; MIME types are compared case-insensitively.
  func isSame(as other: RTPCodec) -> Bool {
    mimeType.lowercased() == other.mimeType.lowercased() && clockRate == other.clockRate
      && channels == other.channels && sdpFmtpLine == other.sdpFmtpLine
  }

  /// Whether the codec is RTX (RFC 4588).
  var isRetransmission: Bool { mimeType.lowercased().hasSuffix("/rtx") }
}

// MARK: - H264

extension RTPCodec {
  /// Returns the H.264 variants that can carry a stream of this profile, closest first and RTX
  /// last; empty if no known variant's decoder accepts it.
  /// - Parameter profileLevelID: six hexadecimal digits from the stream itself (RFC 6184 section
  ///   8.1). The level is not compared, because a peer may also receive higher levels than it
  ///   states.
  public static func h264(carrying profileLevelID: String) -> [RTPCodec] {
    guard let stream = H264ProfileLevelID(profileLevelID)?.profile else { return [] }
    let all = capabilities(.video)
    var found: [RTPCodec] = []
    for isExact in [true, false] {
      for codec in all {
        guard case .h264(_, let profile) = codec.format?.variant, stream.isDecoded(by: profile),
          (profile == stream) == isExact
        else { continue }
        found.append(codec)
      }
    }
    return found.isEmpty ? [] : found + all.filter(\.isRetransmission)
  }
}

extension H264Profile {
  /// Returns whether decoders for another profile can decode streams of this profile (H.264 section
  /// A.2).
  ///
  /// Baseline streams count as constrained here, since slices arrive in order.
  func isDecoded(by other: H264Profile) -> Bool {
    if self == other { return true }
    return switch self {
    case .constrainedBaseline, .baseline:
      [.constrainedBaseline, .baseline, .main, .high, .constrainedHigh, .extended].contains(other)
    case .main, .constrainedHigh: other == .high
    default: false
    }
  }
}

// MARK: - H264Reception

/// An H.264 stream to compare with what a peer accepts.
package struct H264Stream: Hashable, Sendable {
  /// Six hexadecimal digits from the stream's sequence parameter set (RFC 6184 section 8.1).
  package var profileLevelID: String
  /// The size in pixels.
  package var width: Int
  package var height: Int
  package var framesPerSecond: Double

  package init(profileLevelID: String, width: Int, height: Int, framesPerSecond: Double) {
    self.profileLevelID = profileLevelID
    self.width = width
    self.height = height
    self.framesPerSecond = framesPerSecond
  }

  /// The level that the digits state; nil if they are invalid.
  package var level: H264Level? { H264Level(profileLevelID: profileLevelID) }

  /// The frame size in macroblocks of 16 × 16 pixels.
  fileprivate var blocks: Double { Double((width + 15) / 16 * ((height + 15) / 16)) }
}

/// An H.264 level: limits on frame size and rate (H.264 table A-1).
package struct H264Level: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The level times ten; level 1b is 9 and ranks between 1 and 1.1.
  private let number: UInt8

  /// Parses the level from six hexadecimal digits; nil for anything else.
  package init?(profileLevelID: String) {
    guard profileLevelID.utf8.count == 6, let digits = UInt32(profileLevelID, radix: 16) else {
      return nil
    }
    self.init(
      profile: UInt8(digits >> 16), constraints: UInt8(truncatingIfNeeded: digits >> 8),
      number: UInt8(truncatingIfNeeded: digits))
  }

  fileprivate init(profile: UInt8, constraints: UInt8, number: UInt8) {
    // The older profiles encode 1b as 1.1 with a constraint bit (H.264 section 7.4.2.1.1).
    let isOld = [66, 77, 88].contains(profile)
    self.number = isOld && number == 11 && constraints & 0x10 != 0 ? 9 : number
  }

  private var rank: Int { number == 9 ? 21 : 2 * Int(number) }

  package static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }

  package var description: String {
    if number == 9 { return "1b" }
    return number % 10 == 0 ? "\(number / 10)" : "\(number / 10).\(number % 10)"
  }
}

/// The negotiated limits on H.264 streams that a peer receives (RFC 6184 sections 8.1, 8.2.2).
package struct H264Reception: Hashable, Sendable {
  /// The highest level accepted.
  package private(set) var level: H264Level
  /// Macroblocks per frame and per second that the peer accepts even above the level; nil if
  /// unstated.
  private var blocksMaximum: Double?
  private var blocksPerSecondMaximum: Double?

  /// Parses both peers' parameters for the sent format; nil if there is no valid level.
  /// - Parameters:
  ///   - own: the fmtp value in the local description.
  ///   - peer: the fmtp value in the peer's description.
  package init?(own: String, peer: String) {
    func value(_ name: String, _ parameters: String) -> String? {
      CodecFormat.value(of: name, in: parameters)
    }
    // The default is level 1 (RFC 6184 section 8.1), but browsers that omit the parameter mean 3.1.
    let digits = value("profile-level-id", peer) ?? H264ProfileLevelID.usual
    guard var level = H264Level(profileLevelID: digits) else { return nil }
    // `max-recv-level` replaces the last two bytes of profile-level-id, for peers that can receive
    // a higher level than they send.
    if let more = value("max-recv-level", peer), more.utf8.count == 4,
      let profile = UInt8(digits.prefix(2), radix: 16), let bytes = UInt16(more, radix: 16)
    {
      level = max(
        level,
        H264Level(
          profile: profile, constraints: UInt8(bytes >> 8),
          number: UInt8(truncatingIfNeeded: bytes)))
    }
    // Unless both peers allow asymmetric levels, the lower level applies in both directions.
    let isAsymmetric = [own, peer].allSatisfy { value("level-asymmetry-allowed", $0) == "1" }
    if !isAsymmetric,
      let other = H264Level(
        profileLevelID: value("profile-level-id", own) ?? H264ProfileLevelID.usual)
    {
      level = min(level, other)
    }
    self.level = level
    // RFC 7742 section 6.2: a sender should respect these limits.
    blocksMaximum = value("max-fs", peer).flatMap(Double.init)
    blocksPerSecondMaximum = value("max-mbps", peer).flatMap(Double.init)
  }

  /// Returns whether the peer accepts a stream's level.
  ///
  /// A level above the peer's is accepted too, if the peer accepts frames of the stream's size and
  /// rate.
  package func accepts(_ stream: H264Stream) -> Bool {
    guard let wanted = stream.level, wanted > level else { return true }
    guard let blocksMaximum, let blocksPerSecondMaximum else { return false }
    return stream.blocks <= blocksMaximum
      && stream.blocks * stream.framesPerSecond <= blocksPerSecondMaximum
  }
}

import RTP
import Wire

extension RTPCodec {
  /// The variants of H.264 that can carry a stream of a profile, the closest one first, with RTX at
  /// the end; empty if no known variant's decoder accepts it.
  /// - Parameter profileLevelID: six hexadecimal digits from the stream itself (RFC 6184 section
  ///   8.1). The level is not compared: the peer's is only the one it receives best.
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
  /// Whether decoders of another profile can decode this one (H.264 section A.2).
  ///
  /// All baseline streams here are constrained, since slices arrive in order.
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

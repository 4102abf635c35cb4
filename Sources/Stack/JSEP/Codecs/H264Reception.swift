import RTP

/// A stream of H.264 as it is measured against what a peer receives.
package struct H264Stream: Hashable, Sendable {
  /// Six hexadecimal digits, from its sequence parameter set (RFC 6184 section 8.1).
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

  /// The level, as people write it; nil when the digits are none.
  package var level: H264Level? { H264Level(profileLevelID: profileLevelID) }

  /// How many macroblocks of 16 pixels a video frame has.
  fileprivate var blocks: Double { Double((width + 15) / 16 * ((height + 15) / 16)) }
}

/// A level of H.264: how large and how fast video frames may be (H.264 table A-1).
package struct H264Level: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// Ten times the level; level 1b has 9, and stands between 1 and 1.1.
  private let number: UInt8

  /// Reads the level out of six hexadecimal digits.
  package init?(profileLevelID: String) {
    guard profileLevelID.utf8.count == 6, let digits = UInt32(profileLevelID, radix: 16) else {
      return nil
    }
    self.init(
      profile: UInt8(digits >> 16), constraints: UInt8(truncatingIfNeeded: digits >> 8),
      number: UInt8(truncatingIfNeeded: digits))
  }

  fileprivate init(profile: UInt8, constraints: UInt8, number: UInt8) {
    // The older profiles spell 1b as 1.1 with a bit (H.264 section 7.4.2.1.1).
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

/// What a peer receives of H.264, as two descriptions agreed on it (RFC 6184 sections 8.1, 8.2.2).
package struct H264Reception: Hashable, Sendable {
  /// The highest level.
  package private(set) var level: H264Level
  /// What it takes beyond the level: macroblocks of a video frame, and of a second; nil for
  /// nothing.
  private var blocksMaximum: Double?
  private var blocksPerSecondMaximum: Double?

  /// Reads the parameters of both sides for the format that is sent; nil when they tell no level.
  ///
  /// - Parameters:
  ///   - own: the fmtp value of this side's description.
  ///   - peer: the fmtp value of the peer's description.
  package init?(own: String, peer: String) {
    func value(_ name: String, _ parameters: String) -> String? {
      CodecFormat.value(of: name, in: parameters)
    }
    // Without the parameter it is the lowest there is, level 1 (RFC 6184 section 8.1); browsers
    // mean 3.1 by that, and so it is read here as everywhere.
    let digits = value("profile-level-id", peer) ?? H264ProfileLevelID.usual
    guard var level = H264Level(profileLevelID: digits) else { return nil }
    // The profile's two other bytes, for receivers of more than they like to send.
    if let more = value("max-recv-level", peer), more.utf8.count == 4,
      let profile = UInt8(digits.prefix(2), radix: 16), let bytes = UInt16(more, radix: 16)
    {
      level = max(
        level,
        H264Level(
          profile: profile, constraints: UInt8(bytes >> 8),
          number: UInt8(truncatingIfNeeded: bytes)))
    }
    // Where one side does not allow different levels, the lower one holds both ways.
    let isAsymmetric = [own, peer].allSatisfy { value("level-asymmetry-allowed", $0) == "1" }
    if !isAsymmetric,
      let other = H264Level(
        profileLevelID: value("profile-level-id", own) ?? H264ProfileLevelID.usual)
    {
      level = min(level, other)
    }
    self.level = level
    // RFC 7742 section 6.2: whoever is told these ought to mind them.
    blocksMaximum = value("max-fs", peer).flatMap(Double.init)
    blocksPerSecondMaximum = value("max-mbps", peer).flatMap(Double.init)
  }

  /// Whether a stream is within what is received.
  ///
  /// A higher level is, too, when the peer says that it takes video frames of that size at that
  /// rate.
  package func takes(_ stream: H264Stream) -> Bool {
    guard let wanted = stream.level, wanted > level else { return true }
    guard let blocksMaximum, let blocksPerSecondMaximum else { return false }
    return stream.blocks <= blocksMaximum
      && stream.blocks * stream.framesPerSecond <= blocksPerSecondMaximum
  }
}

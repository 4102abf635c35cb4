import Wire

// Times in the units of reports.

extension Interval {
  /// The length in units of 1/65536 s; 0 if negative.
  var compactUnits: UInt32 {
    let length = max(0, nanoseconds)
    let seconds = UInt64(length / 1_000_000_000)
    let rest = UInt64(length % 1_000_000_000)
    return UInt32(truncatingIfNeeded: seconds << 16 | (rest << 16) / 1_000_000_000)
  }

  /// Creates an interval from units of 1/65536 s.
  init(compactUnits: UInt32) {
    self.init(nanoseconds: Int64((UInt64(compactUnits) * 1_000_000_000) >> 16))
  }
}

extension WallClock {
  /// The instant as in abs-send-time: seconds as a 6.18 fixed point number.
  func absoluteSendTime(at now: Instant) -> UInt32 {
    UInt32(truncatingIfNeeded: ntp(at: now) >> 14) & 0xff_ffff
  }

  /// Converts an NTP time to Unix time in nanoseconds (RFC 5905 section 6).
  static func unixNanoseconds(ntp: UInt64) -> Int64 {
    let seconds = Int64(ntp >> 32) - 2_208_988_800
    let fraction = Int64(((ntp & 0xffff_ffff) * 1_000_000_000) >> 32)
    return seconds * 1_000_000_000 + fraction
  }
}

package import Wire

/// The intervals that a client of a STUN or TURN server works with.
package enum TURNTiming {
  /// How long each request waits for its response: 250 ms, doubled up to 2 s.
  package static let queryWaits = [250, 500, 1000, 2000, 2000, 2000, 2000]
    .map { Interval.milliseconds($0) }
  /// When a permission or channel is prolonged; the former last 5 minutes (RFC 8656 section 9).
  static let permissionRefresh = Interval.seconds(240)
  /// Between two messages to a server that has nothing to relay.
  static let keepAlive = Interval.seconds(25)
}

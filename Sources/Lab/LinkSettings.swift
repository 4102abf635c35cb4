package import Wire

/// How one direction of a virtual path treats datagrams.
package struct LinkSettings: Hashable, Sendable {
  /// The base delay of every datagram.
  package var delay = Interval.milliseconds(10)
  /// The most that is added to the delay at random; if large enough, it reorders datagrams.
  package var jitter = Interval.zero
  /// Losses per thousand datagrams.
  package var lossPerMille: UInt64 = 0
  /// Duplicates per thousand datagrams.
  package var duplicatesPerMille: UInt64 = 0
  /// The rate of the bottleneck in bits per second; nil for none.
  package var bitsPerSecond: UInt64?
  /// The longest wait before the bottleneck; a datagram that would wait longer is lost.
  package var queueLimit = Interval.milliseconds(300)

  package init() {}
}

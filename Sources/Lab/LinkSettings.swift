package import Wire

/// How one direction of a virtual path treats datagrams.
package struct LinkSettings: Hashable, Sendable {
  /// The time every datagram takes.
  package var delay = Interval.milliseconds(10)
  /// The most that chance adds to the delay; enough of it reorders datagrams.
  package var jitter = Interval.zero
  /// How many of a thousand datagrams are lost.
  package var lossPerMille: UInt64 = 0
  /// How many of a thousand datagrams arrive twice.
  package var duplicatesPerMille: UInt64 = 0
  /// The rate of the bottleneck in bits per second; nil for none.
  package var bitsPerSecond: UInt64?
  /// How long a datagram may wait before the bottleneck; one that would wait longer is lost.
  package var queueLimit = Interval.milliseconds(300)

  package init() {}
}

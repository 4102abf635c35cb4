import Crypto
import Flow
package import Stats
package import Wire

/// A sender or receiver whose stats are requested (the argument of W3C getStats).
public enum StatsSelector: Hashable, Sendable, Codable {
  /// The sent track of a transceiver, with everything that its stats refer to.
  case sender(transceiver: UInt32)
  /// The received track of a transceiver, with everything that its stats refer to.
  case receiver(transceiver: UInt32)
}

/// The processing time of a track's codecs.
///
/// It is real time and not a function of the inputs, so the caller of getStats measures it. It is
/// recorded with the call, and a replay reports the recorded value.
package struct CodecTime: Hashable, Sendable, Codable {
  package var transceiver: UInt32
  /// Whether it is the decoder's time rather than the encoder's.
  package var isInbound: Bool
  /// The total time for video; for audio weighted by the samples of each packet, as the standard
  /// sums up audio delays.
  package var nanoseconds: Int64

  package init(transceiver: UInt32, isInbound: Bool, nanoseconds: Int64) {
    self.transceiver = transceiver
    self.isInbound = isInbound
    self.nanoseconds = nanoseconds
  }
}

// MARK: - StatsBuilder

/// Collects the members of one stats object; nil values are left out.
package struct StatsBuilder {
  private var object: StatsObject

  package init(id: String, type: String, timestamp: Double) {
    object = StatsObject(id: id, type: type, timestamp: timestamp, members: [])
  }

  package mutating func set(_ name: String, _ value: String?) {
    if let value { object.members.append(StatsMember(name, .text(value))) }
  }

  package mutating func set(_ name: String, _ value: Bool?) {
    if let value { object.members.append(StatsMember(name, .flag(value))) }
  }

  package mutating func set(_ name: String, _ value: Double?) {
    if let value { object.members.append(StatsMember(name, .number(value))) }
  }

  package mutating func set(_ name: String, _ value: (some BinaryInteger)?) {
    if let value { object.members.append(StatsMember(name, .integer(Int64(clamping: value)))) }
  }

  /// Sets a duration in seconds, the unit of W3C.
  package mutating func set(_ name: String, _ value: Interval?) { set(name, value?.seconds) }

  /// A nested record.
  package mutating func set(_ name: String, _ members: [StatsMember]?) {
    if let members { object.members.append(StatsMember(name, .record(members))) }
  }

  package func build() -> StatsObject { object }

  /// Creates the object with the time at which its values arrived by RTCP.
  func build(at timestamp: Double) -> StatsObject {
    var stamped = object
    stamped.timestamp = timestamp
    return stamped
  }
}

/// Creates ids that applications cannot predict and that a replay reproduces (webrtc-stats section
/// 8.1).
final class StatsNames {
  /// The object that an id stands for.
  private struct Thing: Hashable {
    var prefix: String
    var key: String
  }

  /// The texts of certificates.
  let certificates = CertificateTexts()
  private let salt: [UInt8]
  /// Cached ids: each report names the same objects, and hashing them costs more than the rest of
  /// the report.
  private var known: [Thing: String] = [:]

  /// The most ids remembered.
  private static let limit = 1_024

  init(entropy: EntropyStream) { salt = entropy.bytes(16) }

  /// The id of an object of one of the transports.
  func id(_ prefix: String, _ key: String, of transport: Int) -> String {
    id(prefix, transport == 0 ? key : "\(key) of \(transport)")
  }

  /// The id for a key; the same key always has the same id.
  func id(_ prefix: String, _ key: String) -> String {
    let thing = Thing(prefix: prefix, key: key)
    if let id = known[thing] { return id }
    let digest = SHA256.hash(salt + Array(prefix.utf8) + [0] + Array(key.utf8))
    let id = prefix + hexadecimal(digest.prefix(8))
    if known.count == StatsNames.limit { known.removeAll() }
    known[thing] = id
    return id
  }
}

// MARK: - Streams

// RTP stream counters under their W3C names.
extension StatsBuilder {
  /// Adds the counters of a received stream.
  ///
  /// - Parameters:
  ///   - lastPacket: the arrival of its last packet, in milliseconds of Unix time.
  ///   - isComplete: whether packets that only probe the path count as retransmitted, which
  ///     libwebrtc cannot distinguish from others, and audio without RTX has none.
  mutating func add(
    _ stream: InboundStreamCounters, lastPacket: Double?, isComplete: Bool = false
  ) {
    set("packetsReceived", stream.packetsReceived)
    set("packetsReceivedWithEct1", stream.ecn?.ect1)
    set("packetsReceivedWithCe", stream.ecn?.congestionExperienced)
    set("packetsLost", stream.packetsLost)
    set("jitter", stream.jitter)
    set("bytesReceived", stream.bytesReceived)
    set("headerBytesReceived", stream.headerBytesReceived)
    if !isComplete || stream.rtxSSRC != nil {
      let probes = isComplete ? stream.probesReceived : 0
      set("retransmittedPacketsReceived", stream.retransmittedPacketsReceived + probes)
      set("retransmittedBytesReceived", stream.retransmittedBytesReceived)
    }
    set("rtxSsrc", stream.rtxSSRC)
    set("lastPacketReceivedTimestamp", lastPacket)
    set("nackCount", stream.nackCount)
  }

  /// Adds what was counted of a sent stream.
  ///
  /// - Parameters:
  ///   - sendDelay: how long its packets waited to be sent; nil where that is not known.
  ///   - withECT1: how many were sent with ECT(1); nil where that is not known.
  mutating func add(
    _ stream: OutboundStreamCounters, sendDelay: Interval?, withECT1: UInt64? = nil
  ) {
    set("packetsSent", stream.packetsSent)
    set("packetsSentWithEct1", withECT1)
    set("bytesSent", stream.bytesSent)
    set("headerBytesSent", stream.headerBytesSent)
    set("retransmittedPacketsSent", stream.retransmittedPacketsSent)
    set("retransmittedBytesSent", stream.retransmittedBytesSent)
    set("rtxSsrc", stream.rtxSSRC)
    set("totalPacketSendDelay", sendDelay)
    set("nackCount", stream.nackCount)
  }

  /// Adds the peer's reports on a sent stream.
  mutating func add(_ remote: RemoteInboundCounters) {
    set("packetsReceived", remote.packetsReceived)
    set("packetsLost", remote.packetsLost)
    set("jitter", remote.jitter)
    set("fractionLost", remote.fractionLost)
    set("roundTripTime", remote.roundTripTime)
    set("totalRoundTripTime", remote.totalRoundTripTime)
    set("roundTripTimeMeasurements", remote.roundTripTimeMeasurements)
  }

  /// Adds the peer's reports on its own stream.
  mutating func add(_ remote: RemoteOutboundCounters) {
    set("packetsSent", remote.packetsSent)
    set("bytesSent", remote.bytesSent)
    set("remoteTimestamp", Double(remote.remoteUnixNanoseconds / 1000) / 1000)
    set("reportsSent", remote.reportsSent)
    set("roundTripTime", remote.roundTripTime)
    set("totalRoundTripTime", remote.totalRoundTripTime)
    set("roundTripTimeMeasurements", remote.roundTripTimeMeasurements)
  }
}

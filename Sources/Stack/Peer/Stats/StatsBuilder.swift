import Crypto
import Flow
package import Stats
package import Wire

/// A sender or receiver whose stats are requested (the argument of W3C getStats).
public enum StatsSelector: Hashable, Sendable, Codable {
  /// A transceiver's local track, with all objects that its stats refer to.
  case sender(transceiver: UInt32)
  /// A transceiver's received track, with all objects that its stats refer to.
  case receiver(transceiver: UInt32)
}

/// The processing time of a track's codecs.
///
/// It is real time and does not depend on the inputs, so the caller of getStats measures it. It is
/// recorded with the call, and a replay reports the recorded value.
package struct CodecTime: Hashable, Sendable, Codable {
  package var transceiver: UInt32
  /// Whether this is the decoder's time rather than the encoder's.
  package var isInbound: Bool
  /// The total time; for audio, each packet's time is multiplied by its number of samples, as in
  /// the standard's sums of audio delays.
  package var nanoseconds: Int64

  package init(transceiver: UInt32, isInbound: Bool, nanoseconds: Int64) {
    self.transceiver = transceiver
    self.isInbound = isInbound
    self.nanoseconds = nanoseconds
  }
}

// MARK: - StatsBuilder

/// Collects the members of a stats object; nil values are omitted.
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

  /// Sets a duration in seconds, which is the W3C unit.
  package mutating func set(_ name: String, _ value: Interval?) { set(name, value?.seconds) }

  /// Sets a member whose value is a record of members.
  package mutating func set(_ name: String, _ members: [StatsMember]?) {
    if let members { object.members.append(StatsMember(name, .record(members))) }
  }

  package func build() -> StatsObject { object }

  /// Creates the object, timestamped with the arrival of the RTCP report that its values come from.
  func build(at timestamp: Double) -> StatsObject {
    var stamped = object
    stamped.timestamp = timestamp
    return stamped
  }
}

/// Creates ids that applications cannot predict, as W3C RTCStats requires, and that a replay
/// reproduces.
final class StatsNames {
  /// The key of a cached id.
  private struct Thing: Hashable {
    var prefix: String
    var key: String
  }

  let certificates = CertificateTexts()
  private let salt: [UInt8]
  /// Cached ids, because all reports name the same objects, and hashing their keys takes longer
  /// than the rest of a report.
  private var known: [Thing: String] = [:]

  /// The maximum number of cached ids.
  private static let limit = 1_024

  init(entropy: EntropyStream) { salt = entropy.bytes(16) }

  func id(_ prefix: String, _ key: String, of transport: Int) -> String {
    id(prefix, transport == 0 ? key : "\(key) of \(transport)")
  }

  /// Returns the id for a key; the same key always has the same id.
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
  /// Adds a received stream's counters.
  ///
  /// - Parameters:
  ///   - lastPacket: the arrival of the last packet in milliseconds of Unix time.
  ///   - isComplete: whether path probes count as retransmitted packets (libwebrtc cannot tell them
  ///     apart), and whether streams without RTX lack the members about retransmissions.
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

  /// Adds a sent stream's counters.
  ///
  /// - Parameters:
  ///   - sendDelay: the total time that packets waited to be sent; nil if unknown.
  ///   - withECT1: the number of packets sent with ECT(1); nil if unknown.
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

  /// Adds the remote peer's reports on a sent stream.
  mutating func add(_ remote: RemoteInboundCounters) {
    set("packetsReceived", remote.packetsReceived)
    set("packetsLost", remote.packetsLost)
    set("jitter", remote.jitter)
    set("fractionLost", remote.fractionLost)
    set("roundTripTime", remote.roundTripTime)
    set("totalRoundTripTime", remote.totalRoundTripTime)
    set("roundTripTimeMeasurements", remote.roundTripTimeMeasurements)
  }

  /// Adds the remote peer's reports on a stream that it sends.
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

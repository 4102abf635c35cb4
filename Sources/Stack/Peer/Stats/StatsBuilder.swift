import Crypto
package import Stats
package import Wire

/// Collects the members of one stats object; what does not apply (nil) stays absent.
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

  /// A length of time in seconds, as W3C gives all of them.
  package mutating func set(_ name: String, _ value: Interval?) { set(name, value?.seconds) }

  /// A nested record.
  package mutating func set(_ name: String, _ members: [StatsMember]?) {
    if let members { object.members.append(StatsMember(name, .record(members))) }
  }

  package func build() -> StatsObject { object }

  /// The object with the time at which its values came in by RTCP.
  func build(at timestamp: Double) -> StatsObject {
    var stamped = object
    stamped.timestamp = timestamp
    return stamped
  }
}

/// Makes ids that applications cannot predict and that a replay makes again (webrtc-stats section
/// 8.1).
final class StatsNames {
  /// What an id stands for.
  private struct Thing: Hashable {
    var prefix: String
    var key: String
  }

  /// What is told of certificates beside their names.
  let certificates = CertificateTexts()
  private let salt: [UInt8]
  /// The ids that were made: each report names the same things, and a digest each time costs more
  /// than all else in it.
  private var known: [Thing: String] = [:]

  /// How many are remembered.
  private static let limit = 1_024

  init(entropy: EntropyStream) { salt = entropy.bytes(16) }

  /// The id of a thing that belongs to one of the transports.
  func id(_ prefix: String, _ key: String, of transport: Int) -> String {
    id(prefix, transport == 0 ? key : "\(key) of \(transport)")
  }

  /// The id of the thing that a key names; the same key gives the same id.
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

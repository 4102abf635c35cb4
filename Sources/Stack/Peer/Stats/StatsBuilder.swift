import Crypto
package import Stats
package import Wire

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

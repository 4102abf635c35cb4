import Wire

/// What a line of an NSS key log is the secret of (draft-ietf-tls-keylogfile, section 2).
package struct SecretLabel: RawRepresentable, Hashable, Sendable {
  package var rawValue: String
  package init(rawValue: String) { self.rawValue = rawValue }

  /// The master secret of TLS and DTLS up to 1.2.
  package static let masterSecret = SecretLabel(rawValue: "CLIENT_RANDOM")
  package static let exporter = SecretLabel(rawValue: "EXPORTER_SECRET")
  package static let clientHandshake = SecretLabel(rawValue: "CLIENT_HANDSHAKE_TRAFFIC_SECRET")
  package static let serverHandshake = SecretLabel(rawValue: "SERVER_HANDSHAKE_TRAFFIC_SECRET")
  package static let clientTraffic = SecretLabel(rawValue: "CLIENT_TRAFFIC_SECRET_0")
  package static let serverTraffic = SecretLabel(rawValue: "SERVER_TRAFFIC_SECRET_0")
}

/// The secrets that a key log has of one association, by their labels.
package struct LoggedSecrets: Hashable, Sendable {
  /// In the order of the log; a few at most.
  private var entries: [(label: SecretLabel, secret: [UInt8])] = []

  private static let entriesMaximum = 16

  package subscript(label: SecretLabel) -> [UInt8]? {
    entries.first { $0.label == label }?.secret
  }

  /// Adds a secret; false when it is known, or there are too many.
  mutating func add(_ label: SecretLabel, _ secret: [UInt8]) -> Bool {
    guard self[label] == nil, entries.count < Self.entriesMaximum else { return false }
    entries.append((label, secret))
    return true
  }

  package static func == (left: Self, right: Self) -> Bool {
    left.entries.elementsEqual(right.entries) { $0 == $1 }
  }

  package func hash(into hasher: inout Hasher) {
    for entry in entries { hasher.combine(entry.secret) }
  }
}

/// A key log as NSS, OpenSSL and BoringSSL write it, however its bytes arrive: a file that grows is
/// read as it grows.
package struct NSSKeyLog: Sendable {
  private static let lineMaximum = 1024
  private static let associationsMaximum = 1 << 17

  private var known: [[UInt8]: LoggedSecrets] = [:]
  /// A line that has not ended yet.
  private var waiting: [UInt8] = []
  private var isPassingOver = false

  /// Lines that are no comment and no secret, or one too many.
  package private(set) var refusedLines = 0

  package init() {}

  /// How many associations there are secrets of.
  package var count: Int { known.count }

  /// The secrets of the association whose client drew this random value.
  package func secrets(of clientRandom: [UInt8]) -> LoggedSecrets? { known[clientRandom] }

  /// Adds bytes of the log and gives the client randoms that there are new secrets for.
  package mutating func append(_ bytes: some Sequence<UInt8>) -> [[UInt8]] {
    var news: [[UInt8]] = []
    for byte in bytes {
      guard byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") else {
        if waiting.count < Self.lineMaximum {
          waiting.append(byte)
        } else {
          isPassingOver = true
        }
        continue
      }
      endLine(&news)
    }
    return news
  }

  /// Takes the last line, when no line end follows it.
  package mutating func finish() -> [[UInt8]] {
    var news: [[UInt8]] = []
    endLine(&news)
    return news
  }

  private mutating func endLine(_ news: inout [[UInt8]]) {
    defer {
      waiting.removeAll(keepingCapacity: true)
      isPassingOver = false
    }
    guard let first = waiting.first, first != UInt8(ascii: "#") else { return }
    let fields = waiting.split(separator: UInt8(ascii: " "))
    guard !isPassingOver, fields.count == 3, let random = [UInt8](hexadecimal: fields[1]),
      random.count == 32, let secret = [UInt8](hexadecimal: fields[2]),
      (1...64).contains(secret.count)
    else {
      refusedLines += 1
      return
    }
    let label = SecretLabel(rawValue: String(decoding: fields[0], as: UTF8.self))
    guard known[random] != nil || known.count < Self.associationsMaximum else {
      refusedLines += 1
      return
    }
    if known[random, default: LoggedSecrets()].add(label, secret), news.last != random {
      news.append(random)
    }
  }
}

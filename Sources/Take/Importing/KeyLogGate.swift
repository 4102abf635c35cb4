/// Lets through those lines of key logs that are about calls of a capture.
///
/// A browser logs the secrets of all that it opens; a take has only those that open its packets.
/// Lines may come before their association or after it.
package struct KeyLogGate {
  private var associations: Set<String> = []
  /// Lines whose association was not seen, by the client random that they name.
  private var held: [String: [Substring]] = [:]
  private var heldBytes = 0
  /// How many texts of key logs came, how many of their lines are secrets, and how many of these
  /// are of associations that were seen.
  private(set) var logs = 0
  private(set) var secrets: UInt64 = 0
  private(set) var fitting: UInt64 = 0

  /// More than the logs of days have; what comes beyond is let go of.
  private static let heldMaximum = 64 << 20

  /// Receives whole lines, and returns those that are about associations that were seen.
  mutating func receive(_ lines: String) -> String? {
    var known: [Substring] = []
    logs += 1
    for line in lines.split(whereSeparator: \.isNewline) {
      let words = line.split(separator: " ", maxSplits: 2)
      guard words.count == 3, !line.hasPrefix("#") else { continue }
      let name = words[1].lowercased()
      if KeyLogGate.isSecret(words) { secrets += 1 }
      if associations.contains(name) {
        fitting += 1
        known.append(line)
      } else if heldBytes + line.utf8.count <= Self.heldMaximum {
        heldBytes += line.utf8.count
        held[name, default: []].append(line)
      }
    }
    return KeyLogGate.text(known)
  }

  /// Records an association by its client random; returns the lines that waited for it.
  mutating func open(_ name: String) -> String? {
    guard associations.insert(name).inserted, let lines = held.removeValue(forKey: name) else {
      return nil
    }
    fitting += UInt64(lines.count)
    heldBytes -= lines.reduce(0) { $0 + $1.utf8.count }
    return KeyLogGate.text(lines)
  }

  /// Whether a text has a line of a key log.
  package static func hasSecrets(_ text: String) -> Bool {
    text.split(whereSeparator: \.isNewline).contains {
      !$0.hasPrefix("#") && isSecret($0.split(separator: " ", maxSplits: 2))
    }
  }

  /// A label, the 32 bytes of a client random, and a secret, both in hexadecimal.
  private static func isSecret(_ words: [Substring]) -> Bool {
    words.count == 3 && words[1].utf8.count == 64 && words[1].allSatisfy(\.isHexDigit)
      && words[2].drop { $0.isHexDigit }.allSatisfy { $0 == " " }
  }

  private static func text(_ lines: [Substring]) -> String? {
    lines.isEmpty ? nil : lines.map { "\($0)\n" }.joined()
  }
}

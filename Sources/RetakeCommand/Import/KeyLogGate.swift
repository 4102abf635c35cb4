/// Lets through those lines of key logs that are about calls of a capture.
///
/// A browser logs the secrets of all that it opens; a take has only those that open its packets.
/// Lines may come before their association or after it.
struct KeyLogGate {
  private var associations: Set<String> = []
  /// Lines whose association was not seen, by the client random that they name.
  private var held: [String: [Substring]] = [:]
  private var heldBytes = 0

  /// More than the logs of days have; what comes beyond is let go of.
  private static let heldMaximum = 64 << 20

  /// Takes whole lines; gives those that are about associations that were seen.
  mutating func take(_ lines: String) -> String? {
    var known: [Substring] = []
    for line in lines.split(whereSeparator: \.isNewline) {
      let words = line.split(separator: " ", maxSplits: 2)
      guard words.count == 3, !line.hasPrefix("#") else { continue }
      let name = words[1].lowercased()
      if associations.contains(name) {
        known.append(line)
      } else if heldBytes + line.utf8.count <= Self.heldMaximum {
        heldBytes += line.utf8.count
        held[name, default: []].append(line)
      }
    }
    return KeyLogGate.text(known)
  }

  /// Takes note of an association by its client random; gives the lines that waited for it.
  mutating func open(_ name: String) -> String? {
    guard associations.insert(name).inserted, let lines = held.removeValue(forKey: name) else {
      return nil
    }
    heldBytes -= lines.reduce(0) { $0 + $1.utf8.count }
    return KeyLogGate.text(lines)
  }

  private static func text(_ lines: [Substring]) -> String? {
    lines.isEmpty ? nil : lines.map { "\($0)\n" }.joined()
  }
}

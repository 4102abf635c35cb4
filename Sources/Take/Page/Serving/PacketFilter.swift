import Tape

/// Which packets a list shows, in the words of conditions: `in rtp ssrc=1234 size>1000`,
/// `rtcp pli`, `stun peer=1`.
package struct PacketFilter: Hashable, Sendable {
  /// Why a text is no filter, in one sentence.
  package struct Failure: Error, Hashable, Sendable, CustomStringConvertible {
    package var description: String
  }

  /// A condition on rows of the view `packet`, in SQL; nil for all of them.
  package let sql: String?

  private static let protocols = ["stun", "dtls", "rtp", "rtcp", "turn", "other"]
  private static let reports = [
    "sr", "rr", "sdes", "bye", "nack", "pli", "fir", "remb", "transport-cc", "xr",
  ]
  private static let numbers = [
    "step", "peer", "at_ns", "size", "ssrc", "payload_type", "sequence", "rtp_time", "marker",
    "transport_sequence",
  ]
  private static let texts = ["direction", "protocol", "local", "remote"]

  /// Reads a filter: every word and every comparison must hold.
  package init(_ text: String) throws(Failure) {
    var parts: [String] = []
    var isBare = false
    for token in text.split(separator: " ").map(String.init) {
      if isBare {
        parts.append(try Self.comparison("ssrc=\(token)"))
        isBare = false
      } else if token == "packet" {
        continue
      } else if token == "ssrc" {
        isBare = true
      } else if token == "in" || token == "out" {
        parts.append("packet.direction = '\(token)'")
      } else if Self.protocols.contains(token) {
        parts.append("packet.protocol = '\(token)'")
      } else if Self.reports.contains(token) {
        parts.append(Self.report(token))
      } else {
        parts.append(try Self.comparison(token))
      }
    }
    guard !isBare else { throw Failure(description: "ssrc takes a number, as in: ssrc 301774210") }
    sql = parts.isEmpty ? nil : parts.joined(separator: " AND ")
  }

  /// What is inside of an SRTCP compound stands in rows of its own, in the same step.
  private static func report(_ type: String) -> String {
    """
    packet.protocol = 'rtcp' AND EXISTS (
      SELECT 1 FROM rtcp WHERE rtcp.row BETWEEN packet.row & ~65535 AND packet.row | 65535
        AND rtcp.type = '\(type)' AND rtcp.direction = packet.direction)
    """
  }

  private static func comparison(_ token: String) throws(Failure) -> String {
    let name = token.prefix { !"!=<>~".contains($0) }
    let sign = token.dropFirst(name.count).prefix { "!=<>~".contains($0) }
    let value = String(token.dropFirst(name.count + sign.count))
    guard !sign.isEmpty, !name.isEmpty else {
      throw Failure(
        description: "\"\(token.prefix(40))\" is no word of a packet; there is in, out, "
          + (protocols + reports).joined(separator: ", ") + ", and comparisons like size>1000")
    }
    guard numbers.contains(String(name)) || texts.contains(String(name)) else {
      throw Failure(
        description: "a packet has no field \(name.prefix(40)); there is "
          + (numbers + texts).joined(separator: ", "))
    }
    if sign == "~" {
      return "instr(packet.\(name), \(quoted(value))) > 0"
    }
    guard ["=", "!=", "<", "<=", ">", ">="].contains(sign) else {
      throw Failure(description: "\(sign) is no comparison; there is = != < <= > >= ~")
    }
    if numbers.contains(String(name)) {
      guard let number = Int64(value) else {
        throw Failure(description: "\(name) takes a whole number, not \(value.prefix(40))")
      }
      return "packet.\(name) \(sign) \(number)"
    }
    return "packet.\(name) \(sign) \(quoted(value))"
  }

  private static func quoted(_ text: String) -> String {
    "'" + text.replacing("'", with: "''").replacing("\0", with: "") + "'"
  }
}

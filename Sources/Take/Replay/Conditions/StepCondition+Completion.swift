import Stats
import Tape

// What may follow the words of a condition.
extension StepCondition {
  /// The words that may come after some words of a condition, and in place of the one that is being
  /// typed: what it may be about, then what rows of that kind have.
  package static func completions(after words: [String], _ last: String) -> [String] {
    guard let subject = words.first else {
      return Table.allCases.map(\.name) + subjects
    }
    if subject == "stat" {
      let members = Set(StatsMembers.all.flatMap(\.given)).sorted()
      let kinds = words.count > 1 ? ["kind=audio", "kind=video", "peer=", "type="] : []
      return kinds + members.map { $0 + ">" }
    }
    var rest = Array(words.dropFirst())
    guard let tables = try? Self.tables(subject, words: &rest, tests: []) else { return [] }
    if let field = last.firstIndex(of: "=").map({ last[..<$0] }) {
      return values(of: String(field), tables).map { "\(field)=\($0)" }
    }
    return vocabulary(of: tables, after: words).filter { !rest.contains($0) }
      + Self.fields(of: tables).map { $0 + "=" }
  }

  /// Plain words that describe rows of a table.
  private static func vocabulary(of tables: [Table], after words: [String]) -> [String] {
    let directions = ["in", "out"]
    return tables.flatMap { table -> [String] in
      switch table {
      case .state: words.lazy.compactMap { stateNames[$0] }.first ?? states
      case .packet where words.contains("rtcp"): directions + reports
      case .packet where words.contains(where: protocols.contains): directions
      case .packet: directions + protocols
      case .rtcp: directions + reports
      case .frame:
        directions + ["audio", "video", "key", "decoded", "encoded", "concealed", "recovered"]
      case .track: directions + ["audio", "video"]
      case .candidate: ["host", "srflx", "prflx", "relay", "udp", "tcp"]
      case .signaling: directions + ["offer", "pranswer", "answer", "rollback", "candidate"]
      case .channel: ["connecting", "open", "closing", "closed"]
      default: []
      }
    }
  }

  private static let protocols = ["stun", "dtls", "rtp", "rtcp"]

  /// The types of RTCP, as rows name them.
  private static let reports = [
    "sr", "rr", "sdes", "bye", "nack", "pli", "fir", "remb", "transport-cc", "xr",
  ]

  /// The states of each machine, as W3C and RFC 9429 name them.
  private static let stateNames = [
    "signaling": [
      "stable", "have-local-offer", "have-remote-offer", "have-local-pranswer",
      "have-remote-pranswer", "closed",
    ],
    "ice-connection": [
      "new", "checking", "connected", "completed", "disconnected", "failed", "closed",
    ],
    "ice-gathering": ["new", "gathering", "complete"],
    "connection": ["new", "connecting", "connected", "disconnected", "failed", "closed"],
    "dtls": ["new", "connecting", "connected", "closed", "failed"],
    "sctp": ["connecting", "connected", "closed"],
    "establishment": ["establishing", "established", "timed-out"],
  ]

  private static func values(of field: String, _ tables: [Table]) -> [String] {
    switch field {
    case "machine": stateNames.keys.sorted()
    case "from_state", "to_state": Set(stateNames.values.joined()).sorted()
    case "direction": ["in", "out"]
    case "kind": ["audio", "video"]
    case "protocol": protocols
    case "type" where tables.contains(.rtcp): reports
    default: []
    }
  }
}

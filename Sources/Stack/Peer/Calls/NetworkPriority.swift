import JSEP
import SCTP
package import Wire

/// The priority that routers are asked to give packets (W3C RTCPriorityType, RFC 8835 section 4).
public enum NetworkPriority: String, Hashable, Sendable, Codable, CaseIterable {
  /// Below best effort.
  case veryLow = "very-low"
  /// Best effort; the default.
  case low
  /// Above best effort.
  case medium
  /// Above `medium`.
  case high

  var rank: Int { NetworkPriority.allCases.firstIndex(of: self) ?? 1 }

  /// What routers are asked of media (RFC 8837 table 1): audio, or interactive video.
  package func codePoint(of kind: MediaKind) -> UInt8 {
    switch (self, kind) {
    case (.veryLow, _): CodePoint.lowerEffort
    case (.low, _): CodePoint.default
    case (.medium, .audio), (.high, .audio): CodePoint.expedited
    case (.medium, .video): CodePoint.assured42
    case (.high, .video): CodePoint.assured41
    }
  }

  /// What routers are asked of data channels (RFC 8837 table 1).
  package var dataCodePoint: UInt8 {
    switch self {
    case .veryLow: CodePoint.lowerEffort
    case .low: CodePoint.default
    case .medium: CodePoint.assured11
    case .high: CodePoint.assured21
    }
  }
}

/// Code points of differentiated services, as the upper six bits of the field have them.
private enum CodePoint {
  static let `default`: UInt8 = 0
  /// CS1 (RFC 8837 names it for what is very low).
  static let lowerEffort: UInt8 = 8
  /// EF (RFC 3246).
  static let expedited: UInt8 = 46
  /// AF (RFC 2597).
  static let assured11: UInt8 = 10
  static let assured21: UInt8 = 18
  static let assured41: UInt8 = 34
  static let assured42: UInt8 = 36
}

/// The code points of what a peer sends, where its configuration has packets marked.
struct PacketMarks {
  /// By SSRC; looked up alone, so that its order plays no part.
  private var bySource: [UInt32: UInt8] = [:]
  /// The one of the most important media.
  private(set) var control: UInt8 = 0

  /// Of an RTP packet; 0 for one that nothing is known of.
  func mark(ofRTP packet: [UInt8]) -> UInt8 {
    guard !bySource.isEmpty, packet.count >= 12 else { return 0 }
    let source = packet[8..<12].reduce(0 as UInt32) { $0 << 8 | UInt32($1) }
    return bySource[source] ?? 0
  }

  /// Begins anew with what is sent.
  mutating func set(
    _ sources: [(ssrc: UInt32, rtxSSRC: UInt32, kind: MediaKind, priority: NetworkPriority)]
  ) {
    (bySource, control) = ([:], 0)
    var most = -1
    for source in sources {
      let mark = source.priority.codePoint(of: source.kind)
      bySource[source.ssrc] = mark
      bySource[source.rtxSSRC] = mark
      guard source.priority.rank > most else { continue }
      (most, control) = (source.priority.rank, mark)
    }
  }
}

extension PeerStack {
  /// Marks packets by what is sent now, where the configuration wants it.
  func updateMarks() {
    guard genesis.configuration.enablesDSCP == true else { return }
    var sources: [(ssrc: UInt32, rtxSSRC: UInt32, kind: MediaKind, priority: NetworkPriority)] = []
    for section in negotiation.sections where section.direction.sends {
      let id = section.transceiverID
      guard let transceiver = negotiation.transceivers.first(where: { $0.id == id }) else {
        continue
      }
      for source in transceiver.sources(in: section) {
        let encoding = tracks.senders.encoding(of: id, section.kind, rid: source.rid)
        sources.append(
          (source.ssrc, source.rtxSSRC, section.kind, encoding.networkPriority ?? .low))
      }
    }
    marks.set(sources)
  }

  /// What routers are asked of SCTP packets: all of an association go alike, so its most important
  /// channel decides (RFC 8837 section 5).
  var dataMark: UInt8 {
    guard genesis.configuration.enablesDSCP == true else { return 0 }
    // Who has more channels has one of each priority among them.
    let priorities = data.channels.prefix(256).map { NetworkPriority($0.options.priority) }
    return (priorities.max { $0.rank < $1.rank } ?? .low).dataCodePoint
  }
}

extension NetworkPriority {
  /// That of a data channel.
  fileprivate init(_ priority: DataChannelPriority) {
    self =
      switch priority {
      case .veryLow: .veryLow
      case .low: .low
      case .medium: .medium
      case .high: .high
      }
  }
}

import JSEP
import SCTP
package import Wire

/// The DSCP priority of packets (W3C RTCPriorityType, RFC 8835 section 4).
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

  /// The code point for audio or interactive video (RFC 8837 table 1).
  package func codePoint(of kind: MediaKind) -> UInt8 {
    switch (self, kind) {
    case (.veryLow, _): CodePoint.lowerEffort
    case (.low, _): CodePoint.default
    case (.medium, .audio), (.high, .audio): CodePoint.expedited
    case (.medium, .video): CodePoint.assured42
    case (.high, .video): CodePoint.assured41
    }
  }

  /// The code point for data channels (RFC 8837 table 1).
  package var dataCodePoint: UInt8 {
    switch self {
    case .veryLow: CodePoint.lowerEffort
    case .low: CodePoint.default
    case .medium: CodePoint.assured11
    case .high: CodePoint.assured21
    }
  }
}

/// DSCP values, without the two ECN bits.
private enum CodePoint {
  static let `default`: UInt8 = 0
  /// CS1 (in RFC 8837 for very low priority).
  static let lowerEffort: UInt8 = 8
  /// EF (RFC 3246).
  static let expedited: UInt8 = 46
  /// AF (RFC 2597).
  static let assured11: UInt8 = 10
  static let assured21: UInt8 = 18
  static let assured41: UInt8 = 34
  static let assured42: UInt8 = 36
}

/// The code points of sent packets, if the configuration enables marking.
struct PacketMarks {
  /// By SSRC; only for lookups, so its order does not matter.
  private var bySource: [UInt32: UInt8] = [:]
  /// The code point of the most important media.
  private(set) var control: UInt8 = 0

  /// The code point of an RTP packet; 0 if its SSRC is unknown.
  func mark(ofRTP packet: [UInt8]) -> UInt8 {
    guard !bySource.isEmpty, packet.count >= 12 else { return 0 }
    let source = packet[8..<12].reduce(0 as UInt32) { $0 << 8 | UInt32($1) }
    return bySource[source] ?? 0
  }

  /// Replaces the marks by those of the current streams.
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
  /// Updates the marks, if the configuration enables marking.
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

  /// The code point of SCTP packets: an association has only one, given by its most important
  /// channel (RFC 8837 section 5).
  var dataMark: UInt8 {
    guard genesis.configuration.enablesDSCP == true else { return 0 }
    // With many channels every priority is probably present, so do not look at all of them.
    let priorities = data.channels.prefix(256).map { NetworkPriority($0.options.priority) }
    return (priorities.max { $0.rank < $1.rank } ?? .low).dataCodePoint
  }
}

extension NetworkPriority {
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

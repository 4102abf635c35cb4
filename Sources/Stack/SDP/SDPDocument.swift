/// A session description (RFC 8866) as WebRTC uses it.
///
/// Unknown lines are kept in place: printing a parsed description gives the same lines. Typed
/// values are parsed when accessed; the parser has validated them, so access cannot fail. Lines
/// that cannot be parsed are left out and named in `remarks`, which do not affect equality.
package struct SDPDocument: AttributeScope {
  package var origin: Origin
  /// The value of the `s=` line.
  package var sessionName: String
  /// The session-level lines after `s=`, in order.
  package var lines: [SDPLine]
  /// The m-sections, in order.
  package var sections: [SDPSection]
  /// What was wrong with skipped lines, in order; the first few of them.
  package internal(set) var remarks: [SDPError] = []
  /// The numbers of all skipped lines, ascending.
  var omittedLines: [Int] = []

  package static func == (left: Self, right: Self) -> Bool {
    left.origin == right.origin && left.sessionName == right.sessionName
      && left.lines == right.lines && left.sections == right.sections
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(origin)
    hasher.combine(sessionName)
    hasher.combine(lines)
    hasher.combine(sections)
  }

  /// Creates a description with `s=-` and `t=0 0` (RFC 9429 section 5.2.1).
  package init(origin: Origin) {
    self.origin = origin
    sessionName = "-"
    lines = [.other(type: UInt8(ascii: "t"), value: "0 0")]
    sections = []
  }

  package init(origin: Origin, sessionName: String, lines: [SDPLine], sections: [SDPSection]) {
    self.origin = origin
    self.sessionName = sessionName
    self.lines = lines
    self.sections = sections
  }

  /// The `a=group` lines (RFC 5888 section 5).
  package var groups: [SectionGroup] { values(SectionGroup.self) }

  /// The mids of every BUNDLE group (RFC 9143 section 7.1), in order.
  package var bundles: [[String]] { groups.filter { $0.semantics == "BUNDLE" }.map(\.mids) }

  /// Whether the writer supports trickle ICE: it says so for the session or in any m-section (RFC
  /// 8838 section 3).
  package var trickles: Bool {
    iceOptions.contains("trickle") || sections.contains { $0.iceOptions.contains("trickle") }
  }

  /// Whether the writer is an ICE-lite agent (RFC 8839 section 5.3).
  package var isICELite: Bool { has(.iceLite) }
}

/// One m-section: its `m=` line and the lines that belong to it.
package struct SDPSection: AttributeScope {
  /// Audio, video, application, ...
  package var kind: SectionKind
  /// The port; 0 rejects the section, 9 stands for an address that is not known yet.
  package var port: UInt16
  /// The number of ports after a slash; WebRTC never states one.
  package var portCount: UInt16?
  /// The transport protocol, for example `UDP/TLS/RTP/SAVPF`.
  package var transport: String
  /// The media formats: payload types, `webrtc-datachannel`, or the SCTP port of older forms.
  package var formats: [String]
  /// The lines after `m=`, in order.
  package var lines: [SDPLine]

  package init(kind: SectionKind, port: UInt16, transport: String, formats: [String]) {
    self.kind = kind
    self.port = port
    self.transport = transport
    self.formats = formats
    lines = []
  }

  /// The identification tag (RFC 5888 section 4).
  package var mid: String? { value(.mid) }

  /// Whether the port is 0 without being left to a bundle (RFC 9143 section 6): the section is off.
  package var isRejected: Bool { port == 0 && !has(.bundleOnly) }

  package var connection: ConnectionData? {
    get {
      for case .other(UInt8(ascii: "c"), let value) in lines { return ConnectionData(value) }
      return nil
    }
    set {
      let place = lines.firstIndex { $0.type == UInt8(ascii: "c") }
      let line = newValue.map { SDPLine.other(type: UInt8(ascii: "c"), value: $0.text) }
      switch (place, line) {
      case (let place?, let line?): lines[place] = line
      case (let place?, nil): lines.remove(at: place)
      case (nil, let line?): lines.insert(line, at: 0)
      case (nil, nil): break
      }
    }
  }
}

/// The media type: the first token of the `m=` line.
package struct SectionKind: RawRepresentable, Hashable, Sendable {
  package var rawValue: String

  package init(rawValue: String) { self.rawValue = rawValue }

  package static let audio = SectionKind(rawValue: "audio")
  package static let video = SectionKind(rawValue: "video")
  /// Data channels (RFC 8841).
  package static let application = SectionKind(rawValue: "application")
}

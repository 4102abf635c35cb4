/// A session description in parts (RFC 8866), as WebRTC uses it.
///
/// Lines that nobody here knows survive in their places: printing what was parsed gives the same
/// lines again. Typed values are read out of the lines when they are asked for; the parser has
/// checked all of them, so reading needs no further errors. Lines that cannot be read are left out
/// and named in `remarks`, which are no part of what a description says.
package struct SDPDocument: AttributeScope {
  /// The `o=` line.
  package var origin: Origin
  /// The value of the `s=` line.
  package var sessionName: String
  /// The session-level lines after `s=`, in order.
  package var lines: [SDPLine]
  /// The m-sections, in order.
  package var sections: [SDPSection]
  /// What was wrong with lines that were left out, in order; the first few of them.
  package internal(set) var remarks: [SDPError] = []
  /// The numbers of all lines that were left out, ascending.
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

  /// Creates a description with `s=-` and `t=0 0`, as RFC 9429 section 5.2.1 wants it.
  package init(origin: Origin) {
    self.origin = origin
    sessionName = "-"
    lines = [.other(type: UInt8(ascii: "t"), value: "0 0")]
    sections = []
  }

  /// Creates a description from all of its parts.
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

  /// Whether the side takes candidates one by one: it says so for the session or in any m-section
  /// (RFC 8838 section 3).
  package var trickles: Bool {
    iceOptions.contains("trickle") || sections.contains { $0.iceOptions.contains("trickle") }
  }

  /// Whether the side is an ICE-lite agent (RFC 8839 section 5.3).
  package var isICELite: Bool { has(.iceLite) }
}

/// One m-section: its `m=` line and the lines that belong to it.
package struct SDPSection: AttributeScope {
  /// Audio, video, application, ...
  package var kind: SectionKind
  /// The port; 0 rejects the section, 9 stands for an address that is not known yet.
  package var port: UInt16
  /// The number of ports after a slash, which WebRTC never gives.
  package var portCount: UInt16?
  /// The transport protocol, for example `UDP/TLS/RTP/SAVPF`.
  package var transport: String
  /// The media formats: payload types, `webrtc-datachannel`, or the SCTP port of older forms.
  package var formats: [String]
  /// The lines after `m=`, in order.
  package var lines: [SDPLine]

  /// Creates a section without lines.
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

  /// The `c=` line of the section.
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

/// What an m-section is for: the first token of the `m=` line.
package struct SectionKind: RawRepresentable, Hashable, Sendable {
  package var rawValue: String

  package init(rawValue: String) { self.rawValue = rawValue }

  /// Audio.
  package static let audio = SectionKind(rawValue: "audio")
  /// Video frames.
  package static let video = SectionKind(rawValue: "video")
  /// Data channels (RFC 8841).
  package static let application = SectionKind(rawValue: "application")
}

/// A description's type (W3C RTCSdpType).
public enum SDPType: String, Hashable, Sendable, Codable {
  /// Proposes a session or a change of it.
  case offer
  /// Answers an offer provisionally; another answer follows.
  case pranswer
  /// Answers an offer and completes the exchange.
  case answer
  /// Withdraws an offer.
  case rollback
}

/// A session description with its role in the offer/answer exchange (W3C RTCSessionDescription).
public struct SessionDescription: Hashable, Sendable, Codable {
  /// Offer, answer, provisional answer or rollback.
  public var type: SDPType
  /// The description as SDP (RFC 8866).
  public var sdp: String

  /// Creates a description; the text is not checked until it is applied.
  public init(type: SDPType, sdp: String) {
    self.type = type
    self.sdp = sdp
  }
}

// MARK: - SDPFragment

/// ICE parameters and candidates signaled outside of a description:
/// `application/trickle-ice-sdpfrag` (RFC 8840 section 9).
package struct SDPFragment: AttributeScope {
  /// The session-level attributes, in order.
  package var lines: [SDPLine] = []
  /// The m-sections, in order; every one has a mid.
  package var sections: [SDPSection] = []

  package init() {}

  /// The fragment's MIME type (RFC 8840 section 14).
  package static let mediaType = "application/trickle-ice-sdpfrag"

  /// ICE username fragment and password.
  package struct Credentials: Hashable, Sendable {
    package var usernameFragment: String
    package var password: String

    package init(usernameFragment: String, password: String) {
      self.usernameFragment = usernameFragment
      self.password = password
    }
  }

  /// A candidate in the fragment with the m-section it belongs to.
  package struct Candidate: Hashable, Sendable {
    package var mid: String
    /// The text after `a=`.
    package var text: String
  }

  /// The session's ICE parameters, or else the first ICE parameters in an m-section; nil if there
  /// are none.
  package var credentials: Credentials? { lines.credentials ?? sections.firstCredentials }

  package var candidates: [Candidate] {
    sections.flatMap { section in
      section.candidates.map { Candidate(mid: section.mid ?? "", text: $0) }
    }
  }

  package var hasEnded: Bool { endOfCandidates || sections.contains { $0.endOfCandidates } }

  /// The fragment as text; every line ends with CRLF.
  package var text: String {
    lines.map { $0.text + "\r\n" }.joined() + sections.map(\.text).joined()
  }
}

extension SDPDocument {
  /// The first ICE parameters in the description; nil if there are none.
  package var credentials: SDPFragment.Credentials? {
    sections.firstCredentials ?? lines.credentials
  }

  /// Creates a fragment with this description's ICE parameters and these candidates.
  ///
  /// Candidates are listed in the first m-section that is not rejected; the bundled sections share
  /// its transport.
  /// - Parameters:
  ///   - candidates: each as the text after `a=`.
  ///   - hasEnded: whether no more candidates follow.
  package func fragment(candidates: [String], hasEnded: Bool) -> SDPFragment {
    var fragment = SDPFragment()
    for group in groups where group.semantics == "BUNDLE" { fragment.append(group) }
    guard let first = sections.first(where: { !$0.isRejected }), let mid = first.mid else {
      return fragment
    }
    var section = SDPSection(
      kind: first.kind, port: 9, transport: first.transport,
      formats: Array(first.formats.prefix(1)))
    section.append(SDPLine(.mid, mid))
    if let credentials { section.lines += credentials.lines }
    for candidate in candidates {
      let value = candidate.cut(at: UInt8(ascii: ":")).map { String($0.tail) } ?? candidate
      section.append(SDPLine(.candidate, value))
    }
    if hasEnded { section.append(.endOfCandidates) }
    fragment.sections = [section]
    return fragment
  }

  /// Returns the description after the ICE restart in a fragment (RFC 9725 section 4.3.3), with
  /// only ICE changed.
  ///
  /// Nil if the fragment has no ICE parameters.
  package func restarted(by fragment: SDPFragment) -> SDPDocument? {
    guard let credentials = fragment.credentials else { return nil }
    var document = self
    document.origin.advance()
    document.lines.removeAll(where: \.isOfICEGeneration)
    var isFirst = true
    for index in sections.indices {
      document.sections[index].lines.removeAll(where: \.isOfICEGeneration)
      guard !sections[index].isRejected else { continue }
      // A bundled section without its own address keeps port 0.
      if sections[index].port != 0 { document.sections[index].port = 9 }
      if document.sections[index].connection != nil {
        document.sections[index].connection = .unknown
      }
      document.sections[index].lines += credentials.lines
      guard isFirst else { continue }
      isFirst = false
      for candidate in fragment.candidates {
        document.sections[index].append(SDPLine(attributeText: candidate.text))
      }
      if fragment.hasEnded { document.sections[index].append(.endOfCandidates) }
    }
    return document
  }
}

extension SDPFragment.Credentials {
  fileprivate var lines: [SDPLine] {
    [SDPLine(.iceUsernameFragment, usernameFragment), SDPLine(.icePassword, password)]
  }
}

extension [SDPLine] {
  fileprivate var credentials: SDPFragment.Credentials? {
    var (fragment, password): (String?, String?)
    for case .attribute(let attribute) in self {
      if attribute.name == .iceUsernameFragment { fragment = attribute.value }
      if attribute.name == .icePassword { password = attribute.value }
    }
    guard let fragment, let password else { return nil }
    return SDPFragment.Credentials(usernameFragment: fragment, password: password)
  }
}

extension [SDPSection] {
  fileprivate var firstCredentials: SDPFragment.Credentials? {
    for section in self where !section.isRejected {
      if let credentials = section.lines.credentials { return credentials }
    }
    return nil
  }
}

extension SDPLine {
  /// Whether an ICE restart replaces this line.
  fileprivate var isOfICEGeneration: Bool {
    guard case .attribute(let attribute) = self else { return false }
    return [.iceUsernameFragment, .icePassword, .candidate, .endOfCandidates].contains(
      attribute.name)
  }

  /// Creates an `a=` line from the text after `a=`.
  fileprivate init(attributeText text: String) {
    if let (name, value) = text.cut(at: UInt8(ascii: ":")) {
      self.init(AttributeName(rawValue: String(name)), String(value))
    } else {
      self.init(AttributeName(rawValue: text))
    }
  }
}

extension Origin {
  /// Increments the version, in decimal digits of any length.
  fileprivate mutating func advance() {
    var digits = Array(sessionVersion.utf8)
    var index = digits.count - 1
    while index >= 0, digits[index] == UInt8(ascii: "9") {
      digits[index] = UInt8(ascii: "0")
      index -= 1
    }
    if index >= 0 { digits[index] += 1 } else { digits.insert(UInt8(ascii: "1"), at: 0) }
    sessionVersion = String(decoding: digits, as: UTF8.self)
  }
}

/// A candidate as signaled outside a description (W3C RTCIceCandidateInit).
///
/// As JSON, it has the names and values of the W3C dictionary; nil members are left out.
public struct CandidateInit: Hashable, Sendable, Codable {
  /// The candidate as `candidate:...` (RFC 8839 section 5.1); empty at the end of a generation.
  public var candidate: String
  /// The mid of the candidate's m-section.
  public var sdpMid: String?
  /// The index of the candidate's m-section, from 0; ignored if `sdpMid` is set.
  public var sdpMLineIndex: Int?
  /// The username fragment of the candidate's ICE generation.
  public var usernameFragment: String?

  /// Creates a candidate; its text is not checked until it is added to a connection.
  public init(
    candidate: String, sdpMid: String? = nil, sdpMLineIndex: Int? = nil,
    usernameFragment: String? = nil
  ) {
    self.candidate = candidate
    self.sdpMid = sdpMid
    self.sdpMLineIndex = sdpMLineIndex
    self.usernameFragment = usernameFragment
  }
}

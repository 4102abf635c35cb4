import SDP
import Wire

/// The transport of a bundle or a single section, parsed from a remote description.
struct TransportReading {
  var usernameFragment: String
  var password: String
  var isLite: Bool
  var fingerprints: [CertificateFingerprint]
  var setup: SetupRole?
  var candidates: [String]
  var endOfCandidates: Bool

  /// The most fingerprints stored: peers state one per hash function they support.
  static let fingerprintLimit = 16

  /// Parses the transport of the first accepted section.
  ///
  /// Missing attributes come from the session level, as Firefox writes them, or from the other
  /// sections of the bundle, which need not all repeat them (RFC 9143 section 7.1.3).
  init(_ document: SDPDocument, section index: Int, bundle: [Int]) throws(JSEPError) {
    let sections = ([index] + bundle.filter { $0 != index }).map { document.sections[$0] }
    let place = JSEPError.place(in: document, at: index)
    var credentials: (usernameFragment: String, password: String, section: SDPSection)?
    for section in sections {
      guard let fragment = section.iceUsernameFragment ?? document.iceUsernameFragment,
        let password = section.icePassword ?? document.icePassword
      else { continue }
      credentials = (fragment, password, section)
      break
    }
    guard let credentials else {
      throw JSEPError(.invalidAccess, "\(place) has no a=ice-ufrag and a=ice-pwd")
    }
    usernameFragment = credentials.usernameFragment
    password = credentials.password
    isLite = document.isICELite
    var prints: [CertificateFingerprint] = []
    for section in sections {
      for print in section.fingerprints + document.fingerprints
      where prints.count < TransportReading.fingerprintLimit && !prints.contains(print) {
        prints.append(print)
      }
      if !prints.isEmpty { break }
    }
    guard !prints.isEmpty else {
      throw JSEPError(.invalidAccess, "\(place) has no a=fingerprint: only DTLS-SRTP is supported")
    }
    fingerprints = prints
    setup = sections.lazy.compactMap { $0.setup ?? document.setup }.first
    guard setup != .holdconn else {
      throw JSEPError(.invalidAccess, "\(place) says a=setup:holdconn")
    }
    candidates = credentials.section.candidates
    endOfCandidates = credentials.section.endOfCandidates || document.endOfCandidates
  }
}

extension RemoteTransport {
  init(_ reading: TransportReading, number: Int, localIsDTLSClient: Bool?) {
    self.init(
      number: number, usernameFragment: reading.usernameFragment, password: reading.password,
      isLite: reading.isLite, fingerprints: reading.fingerprints,
      localIsDTLSClient: localIsDTLSClient, candidates: reading.candidates,
      endOfCandidates: reading.endOfCandidates)
  }

  /// Returns the role of a DTLS association that continues under a new description.
  ///
  /// Other fingerprints mean a new association (RFC 8842 section 5.5).
  func establishedRole(for reading: TransportReading) -> Bool? {
    fingerprints == reading.fingerprints ? localIsDTLSClient : nil
  }
}

extension JSEPError {
  /// How errors name an m-section of a parsed description: with its line.
  static func place(in document: SDPDocument, at index: Int) -> String {
    "line \(document.line(ofSection: index)), \(place(of: document.sections[index], at: index))"
  }

  /// How errors name an m-section.
  static func place(of section: SDPSection, at index: Int) -> String {
    "m-section \(index) (\(section.kind.rawValue)\(section.mid.map { ", mid \($0)" } ?? ""))"
  }
}

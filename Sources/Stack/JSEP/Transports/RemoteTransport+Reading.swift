import SDP
import Wire

/// The transport of sections that are bundled, or of one that is alone, as a description of the
/// peer states it.
struct TransportReading {
  var usernameFragment: String
  var password: String
  var isLite: Bool
  var fingerprints: [CertificateFingerprint]
  var setup: SetupRole?
  var candidates: [String]
  var endOfCandidates: Bool

  /// How many fingerprints are kept: peers give one for each hash function they know.
  static let fingerprintLimit = 16

  /// Reads the transport of the first of the accepted sections.
  ///
  /// What that section leaves out comes from the session level, as Firefox does it, or from the
  /// other sections of its bundle: those that share the transport need not repeat its attributes
  /// (RFC 9143 section 7.1.3).
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
  /// The transport with the DTLS role that is known so far.
  init(_ reading: TransportReading, number: Int, localIsDTLSClient: Bool?) {
    self.init(
      number: number, usernameFragment: reading.usernameFragment, password: reading.password,
      isLite: reading.isLite, fingerprints: reading.fingerprints,
      localIsDTLSClient: localIsDTLSClient, candidates: reading.candidates,
      endOfCandidates: reading.endOfCandidates)
  }

  /// The role of a DTLS association that continues under a new description: the one it has.
  ///
  /// A description with other fingerprints means a new association (RFC 8842 section 5.5).
  func establishedRole(for reading: TransportReading) -> Bool? {
    fingerprints == reading.fingerprints ? localIsDTLSClient : nil
  }
}

extension JSEPError {
  /// How error messages name an m-section of a description that was read: with its line.
  static func place(in document: SDPDocument, at index: Int) -> String {
    "line \(document.line(ofSection: index)), \(place(of: document.sections[index], at: index))"
  }

  /// How error messages name an m-section.
  static func place(of section: SDPSection, at index: Int) -> String {
    "m-section \(index) (\(section.kind.rawValue)\(section.mid.map { ", mid \($0)" } ?? ""))"
  }
}

package import SDP
import Wire

/// Maps m-sections to the transports of a relay's leg, across all descriptions of a connection.
///
/// Sections of one BUNDLE group share a transport (RFC 9143 section 7.1). The transport is
/// numbered by the first section that used it, and keeps that number when the group loses that
/// section.
package struct RelayedSections: Hashable, Sendable {
  private var placements: [Int: Int] = [:]

  package init() {}

  /// The maximum number of transports in a leg.
  package static let transportsMaximum = 16

  /// Assigns a transport to each section of a description; nil for rejected sections and for
  /// sections beyond the maximum.
  package mutating func assign(_ document: SDPDocument) -> [Int?] {
    let bundles = document.bundles.map { Set($0) }
    var ofBundle: [Int: Int] = [:]
    return document.sections.indices.map { index in
      let section = document.sections[index]
      guard !section.isRejected else { return nil }
      let bundle = section.mid.flatMap { mid in bundles.firstIndex { $0.contains(mid) } }
      if let number = bundle.flatMap({ ofBundle[$0] }) {
        placements[index] = number
        return number
      }
      var number = placements[index] ?? index
      if let bundle {
        let members = document.sections.indices.filter {
          document.sections[$0].mid.map { bundles[bundle].contains($0) } ?? false
        }
        number = members.compactMap { placements[$0] }.first ?? index
        ofBundle[bundle] = number
      }
      guard number < RelayedSections.transportsMaximum else { return nil }
      placements[index] = number
      return number
    }
  }

  /// Returns the transport last assigned to a section; nil if none ever was.
  package subscript(section: Int) -> Int? { placements[section] }
}

extension SDPDocument {
  /// The attributes that belong to one transport alone and never pass from one leg of a relay to
  /// the other.
  ///
  /// `identity` and `tls-id` are bound to the fingerprints (RFC 8827 section 7, RFC 8842 section
  /// 5), `cryptex` and `crypto` to keys (RFC 9335, RFC 4568), `remote-candidates` to candidates.
  package static let transportAttributes: Set<String> = [
    "ice-ufrag", "ice-pwd", "ice-options", "ice-lite", "ice-pacing", "ice-mismatch", "candidate",
    "remote-candidates", "end-of-candidates", "fingerprint", "setup", "connection", "tls-id",
    "identity", "cryptex", "crypto", "rtcp",
  ]

  /// Returns this description, received on one leg of a relay, as the other leg sends it on: with
  /// the other leg's credentials, candidates, fingerprints, roles and addresses.
  ///
  /// Everything else is the same on both legs: payload types, SSRCs, RIDs, header extensions, SCTP.
  /// - Parameters:
  ///   - numbers: the transport of each section.
  ///   - setup: the DTLS role that the other leg states for a transport.
  package func relayed(
    _ numbers: [Int?], over transports: [LocalTransport], setup: (Int) -> SetupRole
  ) -> SDPDocument {
    var document = self
    document.lines = SDPDocument.withoutTransport(lines)
    for (index, number) in zip(sections.indices, numbers) {
      var section = sections[index]
      let hadRTCP = section.has(.rtcp)
      section.lines = SDPDocument.withoutTransport(section.lines)
      section.connection = .unknown
      defer { document.sections[index] = section }
      guard let number, let transport = transports.first(where: { $0.number == number }) else {
        if !section.has(.bundleOnly) { section.port = section.isRejected ? 0 : 9 }
        continue
      }
      if !section.has(.bundleOnly) { section.port = 9 }
      var lines = [
        SDPLine(.iceUsernameFragment, transport.usernameFragment),
        SDPLine(.icePassword, transport.password), SDPLine(.iceOptions, "trickle"),
      ]
      lines += transport.fingerprints.map { SDPLine($0) }
      lines.append(SDPLine(setup(number)))
      if hadRTCP { lines.append(SDPLine(.rtcp, "9 " + ConnectionData.unknown.text)) }
      section.lines.insert(contentsOf: lines, at: 1)
    }
    return document.filled(with: transports)
  }

  /// Returns the lines that do not describe a transport or a connection address.
  private static func withoutTransport(_ lines: [SDPLine]) -> [SDPLine] {
    lines.compactMap { line in
      switch line {
      case .attribute(let attribute):
        transportAttributes.contains(attribute.name.rawValue) ? nil : line
      case .other(UInt8(ascii: "c"), _): nil
      case .other: line
      }
    }
  }

  /// Replaces a section that is not rejected, keeping the lines that describe its transport.
  package mutating func replaceMedia(at index: Int, with section: SDPSection) {
    let former = sections[index]
    sections[index] = section
    sections[index].port = former.port == 0 ? 9 : former.port
    sections[index].lines = SDPDocument.withoutTransport(section.lines)
    sections[index].lines += former.lines.filter { SDPDocument.withoutTransport([$0]).isEmpty }
  }

  /// The reason that a relay cannot carry the description, as a sentence; nil if it can.
  package var relayObstacle: String? {
    for index in sections.indices where !sections[index].isRejected {
      let section = sections[index]
      let place = JSEPError.place(in: self, at: index)
      let isRTP = section.kind == .audio || section.kind == .video
      if isRTP, !section.has(.rtcpMux) {
        return "\(place) has no a=rtcp-mux, and a relay has one path for RTP and RTCP"
      }
      let fingerprints = section.fingerprints + fingerprints
      let others = sections.contains { !$0.fingerprints.isEmpty }
      if fingerprints.isEmpty, !others {
        return "\(place) has no a=fingerprint, and a relay opens DTLS alone"
      }
    }
    return nil
  }

  /// Returns the remote side of each transport; `numbers` has the transport number of every
  /// section, or nil for a section without a transport.
  package func remoteTransports(
    _ numbers: [Int?], localIsDTLSClient: (Int, SetupRole?) -> Bool?
  ) throws(JSEPError) -> [RemoteTransport] {
    var all: [RemoteTransport] = []
    for (index, number) in zip(sections.indices, numbers) {
      guard let number, !all.contains(where: { $0.number == number }) else { continue }
      let bundle = numbers.indices.filter { numbers[$0] == number }
      let reading = try TransportReading(self, section: index, bundle: bundle)
      all.append(
        RemoteTransport(
          reading, number: number, localIsDTLSClient: localIsDTLSClient(number, reading.setup)))
    }
    return all
  }
}

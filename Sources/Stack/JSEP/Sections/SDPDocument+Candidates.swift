package import SDP
import Wire

extension SDPDocument {
  /// Returns the description with the candidates gathered so far (W3C localDescription).
  ///
  /// A transport's candidates are in the first enabled section that uses it; every such section has
  /// the transport's default address (RFC 9143 section 7.3.2).
  func filled(with transports: [LocalTransport]) -> SDPDocument {
    var document = self
    var done: [Int] = []
    for index in sections.indices where !sections[index].isRejected {
      var section = sections[index]
      // Candidates from another ICE generation do not belong here.
      guard
        let transport = transports.first(where: {
          $0.usernameFragment == section.iceUsernameFragment
        })
      else { continue }
      if let address = transport.defaultAddress, !section.has(.bundleOnly) {
        section.port = address.port
        section.connection = ConnectionData(address.ip)
      }
      if !done.contains(transport.number) {
        var lines = transport.candidates.map { SDPLine(attributeText: $0) }
        if transport.gatheringIsComplete { lines.append(SDPLine(.endOfCandidates)) }
        section.lines.insert(contentsOf: lines, at: 1)
        done.append(transport.number)
      }
      document.sections[index] = section
    }
    return document
  }
}

extension SDPLine {
  init(attributeText text: String) {
    if let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) {
      let value = text[text.utf8.index(after: colon)...]
      self.init(AttributeName(rawValue: String(text[..<colon])), String(value))
    } else {
      self.init(AttributeName(rawValue: text))
    }
  }
}

// MARK: - SessionDescription: Candidates

extension SDPDocument {
  /// Returns the ICE username fragment of an m-section, or else of the session.
  ///
  /// If neither has one, or if `index` is nil, returns the fragments of all sections, because any
  /// of them may share the section's transport (RFC 9143 section 7.1.3).
  func usernameFragments(atMLine index: Int?) -> [String] {
    if let index {
      guard sections.indices.contains(index) else { return [] }
      if let own = sections[index].iceUsernameFragment ?? iceUsernameFragment { return [own] }
    }
    return sections.compactMap(\.iceUsernameFragment) + [iceUsernameFragment].compactMap(\.self)
  }
}

extension SessionDescription {
  /// The maximum number of candidates stored in an m-section; more trickled ones are ignored.
  private static let trickledMaximum = 200

  /// Appends a candidate line to an m-section, unless the section has the same line or the maximum
  /// number of candidates.
  mutating func append(attribute text: String, toSection index: Int) {
    let line = Array("a=\(text)".utf8)
    let newline: [UInt8] = sdp.utf8.contains(0x0d) ? [0x0d, 0x0a] : [0x0a]
    var result: [UInt8] = []
    var section = -1
    var candidates = 0
    var isDone = false
    for given in sdp.utf8.split(separator: 0x0a) {
      let bare = given.last == 0x0d ? given.dropLast() : given
      guard !bare.isEmpty else { continue }
      if bare.starts(with: "m=".utf8) {
        if section == index, !isDone {
          result += line + newline
          isDone = true
        }
        section += 1
      }
      if section == index, bare.starts(with: "a=candidate:".utf8) {
        candidates += 1
        if candidates >= Self.trickledMaximum || bare.elementsEqual(line) { return }
      }
      result += Array(bare) + newline
    }
    guard isDone || section == index else { return }
    if !isDone { result += line + newline }
    sdp = String(decoding: result, as: UTF8.self)
  }

  /// Removes an attribute from an m-section; leaves the rest of the text unchanged.
  mutating func remove(attribute text: String, fromSection index: Int) {
    let line = Array("a=\(text)".utf8)
    var section = -1
    var result: [UInt8] = []
    for given in sdp.utf8.split(separator: 0x0a) {
      let bare = given.last == 0x0d ? given.dropLast() : given
      if bare.starts(with: "m=".utf8) { section += 1 }
      if section != index || !bare.elementsEqual(line) { result += Array(given) + [0x0a] }
    }
    sdp = String(decoding: result, as: UTF8.self)
  }
}

// MARK: - LipSync

/// Lip-sync groups in local descriptions (RFC 5888 section 7).
extension SDPDocument {
  /// The MIDs of the sections that send each MediaStream, for streams with several senders (RFC
  /// 9429 section 5.2.1).
  var commonStreams: [[String]] {
    var found: [(stream: String, senders: [String])] = []
    for section in sections where !section.isRejected {
      guard let mid = section.mid else { continue }
      for stream in section.msids.map(\.streamID) where stream != "-" {
        if let place = found.firstIndex(where: { $0.stream == stream }) {
          found[place].senders.append(mid)
        } else {
          found.append((stream, [mid]))
        }
      }
    }
    var common: [[String]] = []
    for (_, senders) in found where senders.count > 1 && !common.contains(senders) {
      common.append(senders)
    }
    return common
  }

  /// Returns an answer's lip-sync groups: the offer's groups whose local tracks share a stream too
  /// (RFC 9429 section 5.3.1).
  func lipSync(answering offer: SDPDocument) -> [SectionGroup] {
    let common = commonStreams
    return offer.groups.filter { $0.semantics == "LS" }.compactMap { offered in
      let shared = common.lazy.map { $0.filter(offered.mids.contains) }.first { $0.count > 1 }
      return shared.map(SectionGroup.lipSync)
    }
  }
}

// MARK: - OfferRemarks

/// Explains which parts of a remote description have no effect.
package enum OfferRemarks {
  /// Returns sentences about a description's unparsable lines and an offer's refused sections.
  /// - Parameters:
  ///   - codecs: the codecs in the configuration, if it names any.
  ///   - policy: the connection's bundle policy.
  package static func sentences(
    about description: SessionDescription, codecs: [String]? = nil,
    policy: BundlePolicy = .maxCompat
  ) -> [String] {
    guard let document = try? SDPDocument(parsing: description.sdp) else { return [] }
    let lines = document.remarks.map {
      "line \($0.line) of the peer's \(description.type.rawValue) is left out: \($0.reason)"
    }
    guard description.type == .offer else { return lines }
    let capabilities = Capabilities(codecs: codecs)
    let admitted = policy.admits(document)
    return lines
      + document.sections.indices.compactMap { index in
        let section = document.sections[index]
        let place = JSEPError.place(of: section, at: index)
        var reason = refusal(of: section, capabilities)
        if reason == nil, !admitted[index], !section.isRejected {
          reason = "it is not bundled with those before it, as the policy \(policy.rawValue) wants"
        }
        return reason.map { "the offer's \(place) is refused: \($0)" }
      }
  }

  /// Returns the reason for refusing a section; nil if it is acceptable or disabled.
  static func refusal(of section: SDPSection, _ capabilities: Capabilities) -> String? {
    if section.isRejected { return nil }
    if section.kind == .application {
      return section.carriesData
        ? nil : "\(section.transport) \(section.formats.joined(separator: " ")) is not supported"
    }
    guard let kind = section.kind.mediaKind else {
      return "sections of \(section.kind.rawValue) are not supported"
    }
    guard section.carriesRTP else { return "the profile \(section.transport) is not supported" }
    guard !SectionMedia(reading: section, kind: kind, capabilities).carriesMedia else {
      return nil
    }
    let names = codecNames(of: section)
    return names.isEmpty
      ? "it names no codec" : "none of its codecs is supported (\(names.joined(separator: ", ")))"
  }

  /// Returns a section's codecs, such as `PCMU/8000`, without duplicates or RTX.
  private static func codecNames(of section: SDPSection) -> [String] {
    var names: [String] = []
    for format in section.formats {
      let map = section.rtpMaps.first { String($0.payloadType) == format }
      let name = map.map { "\($0.name)/\($0.clockRate)" } ?? staticNames[format]
      guard let name, !names.contains(name), map?.name.lowercased() != "rtx" else { continue }
      names.append(name)
    }
    return names
  }

  /// The names of static payload types, which need no rtpmap line (RFC 3551 section 6).
  private static let staticNames = [
    "0": "PCMU/8000", "3": "GSM/8000", "4": "G723/8000", "5": "DVI4/8000", "7": "LPC/8000",
    "8": "PCMA/8000", "9": "G722/8000", "13": "CN/8000", "15": "G728/8000", "18": "G729/8000",
    "26": "JPEG/90000", "31": "H261/90000", "34": "H263/90000",
  ]
}

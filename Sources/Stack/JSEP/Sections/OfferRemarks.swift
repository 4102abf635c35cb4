package import SDP
import Wire

/// Explains in sentences what parts of a remote description have no effect.
package enum OfferRemarks {
  /// Names the refused sections of an offer, and lines that cannot be parsed.
  /// - Parameters:
  ///   - codecs: those in the configuration, if it names any.
  ///   - policy: the bundle policy of the connection.
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

  /// Why a section is refused; nil if it is acceptable or off.
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

  /// The codecs of a section, such as `PCMU/8000`, without duplicates and RTX.
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

  /// Static payload types (RFC 3551 section 6).
  private static let staticNames = [
    "0": "PCMU/8000", "3": "GSM/8000", "4": "G723/8000", "5": "DVI4/8000", "7": "LPC/8000",
    "8": "PCMA/8000", "9": "G722/8000", "13": "CN/8000", "15": "G728/8000", "18": "G729/8000",
    "26": "JPEG/90000", "31": "H261/90000", "34": "H263/90000",
  ]
}

import Decryption
import ICE
import RTP
import SDP
import Wire

/// The descriptions that were given or seen, by the ICE credentials that they state.
struct DescriptionTable {
  /// A description with what is asked of it often.
  struct Entry {
    var text: String
    var how: Knowledge
    var document: SDPDocument
    var fragments: [String]
    var payloads: [PayloadMeaning]
    var extensions = HeaderExtensionMap()
    var candidates: [ICECandidate]
  }

  private static let entriesMaximum = 4096
  /// How long all descriptions are together, in bytes.
  private static let lengthMaximum = 16 << 20

  private(set) var entries: [Entry] = []
  private var length = 0

  /// Takes a description; gives its number, or nil for a text that is none.
  mutating func add(_ text: String, _ how: Knowledge) -> Int? {
    if let known = entries.firstIndex(where: { $0.text == text }) { return known }
    guard entries.count < Self.entriesMaximum, length + text.utf8.count <= Self.lengthMaximum,
      let document = try? SDPDocument(parsing: text)
    else { return nil }
    length += text.utf8.count
    var entry = Entry(
      text: text, how: how, document: document, fragments: [], payloads: [], candidates: [])
    let scopes = document.sections
    for fragment in [document.iceUsernameFragment] + scopes.map(\.iceUsernameFragment) {
      if let fragment, !entry.fragments.contains(fragment) { entry.fragments.append(fragment) }
    }
    for section in document.sections {
      for candidate in section.candidates {
        if let read = try? ICECandidate(attribute: candidate) { entry.candidates.append(read) }
      }
      for map in section.extensionMaps {
        if let id = UInt8(exactly: map.id) { entry.extensions.add(uri: map.uri, id: id) }
      }
      entry.payloads += DescriptionTable.payloads(of: section)
    }
    entries.append(entry)
    return entries.count - 1
  }

  /// The numbers of the descriptions that state a user name fragment, the newest first.
  func numbers(stating fragment: String) -> [Int] {
    entries.indices.reversed().filter { entries[$0].fragments.contains(fragment) }
  }

  /// The numbers of the descriptions that give an address for media, the newest first: where there
  /// is no ICE.
  func numbers(at address: SocketAddress) -> [Int] {
    let text = address.ip.description
    return entries.indices.reversed().filter { index in
      let document = entries[index].document
      // `IN IP4 192.0.2.1` (RFC 8866 section 5.7).
      let session = document.lines.lazy.compactMap { line -> String? in
        guard case .other(UInt8(ascii: "c"), let value) = line else { return nil }
        return value.split(separator: " ").last.map(String.init)
      }.first
      return document.sections.contains { section in
        section.port == address.port
          && (section.connection?.address ?? session) == text
      }
    }
  }

  private static func payloads(of section: SDPSection) -> [PayloadMeaning] {
    let kind: MediaKind? =
      section.kind == .audio ? .audio : section.kind == .video ? .video : nil
    return section.rtpMaps.map { map in
      let parameters = section.formatParameters.first { $0.format == String(map.payloadType) }
      return PayloadMeaning(
        payloadType: map.payloadType, codec: map.name.lowercased(), clockRate: map.clockRate,
        kind: kind, how: .description,
        associated: parameters?[name: "apt"].flatMap { UInt8($0) })
    }
  }
}

extension DescriptionTable.Entry {
  /// Whether the media of the description is protected; nil where it has none.
  var protectsMedia: Bool? {
    document.sections.first { $0.kind == .audio || $0.kind == .video }.map {
      $0.transport.contains("SAVP")
    }
  }

  /// The keys that it gives for what its writer sends (RFC 4568).
  var srtpKeys: [SRTPKey] {
    document.sections.flatMap { $0.values(CryptoAttribute.self) }.flatMap(\.srtpKeys)
  }

  /// What it says of a source: its section's identifier, and the source that it repairs.
  func source(_ ssrc: UInt32) -> (mid: String?, repairs: UInt32?, canonicalName: String?)? {
    for section in document.sections {
      let lines = section.ssrcs.filter { $0.ssrc == ssrc }
      guard !lines.isEmpty else { continue }
      let group = section.ssrcGroups.first {
        $0.semantics == "FID" && $0.ssrcs.count == 2 && $0.ssrcs[1] == ssrc
      }
      return (
        section.mid, group?.ssrcs.first, lines.first { $0.name == "cname" }?.value
      )
    }
    return nil
  }
}

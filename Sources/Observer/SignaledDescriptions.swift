import ICE
import RTP
import SDP
import Wire

/// Supplied and observed descriptions, indexed by ICE username fragment, text and media port.
struct SignaledDescriptions {
  /// A description with cached fields.
  struct Entry {
    var text: String
    var how: Knowledge
    var document: SDPDocument
    var fragments: [String]
    var payloads: [PayloadMeaning]
    var extensions = HeaderExtensionMap()
    var candidates: [ICECandidate]
    /// Whether the description's media is encrypted; nil if it has no media, or if encryption is
    /// optional.
    var protectsMedia: Bool?
    /// The keys for the packets of the description's author (RFC 4568).
    var srtpKeys: [SRTPKey] = []
    var sources: [UInt32: Source] = [:]
  }

  private static let entriesMaximum = 4096
  /// The limit on all descriptions together, in bytes.
  private static let lengthMaximum = 16 << 20

  private(set) var entries: [Entry] = []
  /// Descriptions that may apply to transports with other addresses: supplied descriptions, and
  /// descriptions without ICE.
  ///
  /// For example, a SIP client may be behind a NAT, and RTSP states the ports in a request.
  private(set) var floating: [Int] = []
  private static let floatingMaximum = 64
  private var length = 0
  /// Descriptions by username fragment, oldest first.
  private var byFragment: [String: [Int]] = [:]
  private var byText: [String: Int] = [:]
  /// Descriptions by media port, oldest first.
  private var byPort: [UInt16: [Int]] = [:]

  /// Adds a description.
  ///
  /// - Returns: its number; nil if the text cannot be parsed or there are too many descriptions.
  mutating func add(_ text: String, _ how: Knowledge) -> Int? {
    if let known = byText[text] { return known }
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
      entry.payloads += SignaledDescriptions.payloads(of: section)
    }
    SignaledDescriptions.read(document, into: &entry)
    for fragment in entry.fragments { byFragment[fragment, default: []].append(entries.count) }
    byText[text] = entries.count
    for port in Set(document.sections.compactMap { UInt16(exactly: $0.port) }) {
      byPort[port, default: []].append(entries.count)
    }
    entries.append(entry)
    if isFloating(entries.count - 1), floating.count < Self.floatingMaximum {
      floating.append(entries.count - 1)
    }
    return entries.count - 1
  }

  /// Returns the numbers of the descriptions with this username fragment, newest first.
  func numbers(stating fragment: String) -> [Int] {
    byFragment[fragment, default: []].reversed()
  }

  /// Returns the numbers of the descriptions that state this media address, newest first; used for
  /// calls without ICE.
  func numbers(at address: SocketAddress) -> [Int] {
    byPort[address.port, default: []].reversed().filter { hasAddress(address, $0) }
  }

  /// Returns whether the description with this number states this media address.
  func hasAddress(_ address: SocketAddress, _ number: Int) -> Bool {
    let text = address.ip.description
    let document = entries[number].document
    // The session level may state the address, as in `IN IP4 192.0.2.1` (RFC 8866 section 5.7).
    let session = document.lines.lazy.compactMap { line -> String? in
      guard case .other(UInt8(ascii: "c"), let value) = line else { return nil }
      return value.split(separator: " ").last.map(String.init)
    }.first
    return document.sections.contains { section in
      section.port == address.port
        && (section.connection?.address ?? session) == text
    }
  }

  private static func payloads(of section: SDPSection) -> [PayloadMeaning] {
    let kind: MediaKind? =
      section.kind == .audio ? .audio : section.kind == .video ? .video : nil
    return section.rtpMaps.map { map in
      let parameters = section.formatParameters.first { $0.format == String(map.payloadType) }
      var meaning = PayloadMeaning(
        payloadType: map.payloadType, codec: map.name.lowercased(), clockRate: map.clockRate,
        kind: kind, how: .description,
        associated: parameters?[name: "apt"].flatMap { UInt8($0) })
      meaning.parameters = parameters?.parameters
      return meaning
    }
  }
}

extension SignaledDescriptions {
  /// A media source that a description announces.
  struct Source {
    var mid: String?
    /// The source whose packets this source retransmits; nil for other sources.
    var repairs: UInt32?
    /// The source that this source protects with FlexFEC, and the source that protects this source.
    var protects: UInt32?
    var protectedBy: UInt32?
    var canonicalName: String?
  }

  /// Returns the sources in a description; the first section with a source determines its
  /// attributes.
  private static func sources(of document: SDPDocument) -> [UInt32: Source] {
    var sources: [UInt32: Source] = [:]
    for section in document.sections {
      var here: [UInt32: Source] = [:]
      var named: Set<UInt32> = []
      for line in section.ssrcs {
        var source = here[line.ssrc] ?? Source(mid: section.mid)
        if line.name == "cname", named.insert(line.ssrc).inserted {
          source.canonicalName = line.value
        }
        here[line.ssrc] = source
      }
      for group in section.ssrcGroups where group.semantics == "FID" && group.ssrcs.count == 2 {
        let repair = group.ssrcs[1]
        if here[repair]?.repairs == nil { here[repair]?.repairs = group.ssrcs[0] }
      }
      for group in section.ssrcGroups where group.semantics == "FEC-FR" && group.ssrcs.count == 2 {
        here[group.ssrcs[1]]?.protects = group.ssrcs[0]
        here[group.ssrcs[0]]?.protectedBy = group.ssrcs[1]
      }
      sources.merge(here) { first, _ in first }
    }
    return sources
  }

  /// Extracts the fields that are needed to process packets.
  private static func read(_ document: SDPDocument, into entry: inout Entry) {
    entry.sources = sources(of: document)
    entry.srtpKeys = document.sections.flatMap { $0.values(CryptoAttribute.self) }
      .flatMap(\.srtpKeys)
    entry.protectsMedia = document.sections.first { $0.kind == .audio || $0.kind == .video }
      .map { $0.transport.contains("SAVP") }
    // Keys with an unprotected profile are optional (RFC 8643).
    if entry.protectsMedia == false, !entry.srtpKeys.isEmpty { entry.protectsMedia = nil }
  }
}

extension SignaledDescriptions {
  func isFloating(_ number: Int) -> Bool {
    entries[number].how == .given || entries[number].fragments.isEmpty
  }

  /// Returns a payload type's encoding if the descriptions agree on it; nil if they differ, or if
  /// none states it.
  func commonMeaning(of type: UInt8, in chosen: [Int]) -> PayloadMeaning? {
    let found = chosen.compactMap { number in
      entries[number].payloads.first { $0.payloadType == type }
    }
    guard let first = found.first,
      found.allSatisfy({ $0.codec == first.codec && $0.clockRate == first.clockRate })
    else { return nil }
    return first
  }
}

extension SignaledDescriptions.Entry {
  func source(_ ssrc: UInt32) -> SignaledDescriptions.Source? { sources[ssrc] }
}

// MARK: - SignalingText

/// Finds session descriptions in SIP messages over UDP (RFC 3261 section 18), and in message
/// bodies.
package enum SignalingText {
  private static let lengthMaximum = 64 << 10
  private static let descriptionsMaximum = 8
  private static let methods = [
    "INVITE", "ACK", "BYE", "CANCEL", "OPTIONS", "REGISTER", "PRACK", "UPDATE", "INFO", "MESSAGE",
    "SUBSCRIBE", "NOTIFY", "REFER", "PUBLISH",
  ]
  private static let schemes = ["sip:", "sips:", "tel:"]

  /// Returns whether the bytes begin a SIP message.
  package static func isSIP(_ bytes: some Collection<UInt8>) -> Bool {
    if bytes.starts(with: "SIP/2.0 ".utf8) { return true }
    return methods.contains { method in
      guard bytes.starts(with: method.utf8) else { return false }
      let rest = bytes.dropFirst(method.utf8.count)
      return schemes.contains { rest.starts(with: " \($0)".utf8) }
    }
  }

  /// Returns the descriptions in a datagram; empty if it is not signaling.
  package static func descriptions(in datagram: [UInt8]) -> [String] {
    guard datagram.count <= lengthMaximum, isSIP(datagram) else { return [] }
    return descriptions(inMessage: datagram)
  }

  /// Returns the descriptions in the body of a message with headers: the entire body, or parts of a
  /// multipart body (RFC 2046 section 5.1).
  static func descriptions(inMessage message: [UInt8]) -> [String] {
    // A body and each of its parts follow an empty line.
    let begin = Array("\r\n\r\nv=0".utf8)
    let boundary = Array("\r\n--".utf8)
    var found: [String] = []
    var index = 0
    while found.count < descriptionsMaximum, let place = message.place(of: begin, from: index) {
      let start = place + 4
      let end = message.place(of: boundary, from: start) ?? message.count
      // The line break before the boundary may belong to the description's last line.
      var text = String(decoding: message[start..<end], as: UTF8.self)
      if text.utf8.last != 10 { text += "\r\n" }
      found.append(text)
      index = end
    }
    return found
  }
}

extension [UInt8] {
  /// Returns the index of the first occurrence of other bytes at or after an index; nil if there is
  /// none.
  fileprivate func place(of other: [UInt8], from start: Int) -> Int? {
    guard let first = other.first, count >= other.count, start <= count - other.count else {
      return nil
    }
    return (start...count - other.count).first { index in
      self[index] == first && self[index..<index + other.count].elementsEqual(other)
    }
  }
}

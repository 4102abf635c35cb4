import Tape
import Wire

/// A session description that a peer sent or received, reduced to the parts that rules examine.
package struct SignaledDescription: Sendable {
  /// The description's type; provisional answers count as answers.
  package enum Kind: Sendable, Hashable { case offer, answer }

  /// An m-section, with the attributes that rules examine.
  package struct Section: Sendable, Hashable {
    package var kind = ""
    package var port: Int64 = 0
    package var mid = ""
    package var isBundleOnly = false
    /// Whether the description's author wants to send, and to receive.
    package var sends = true
    package var receives = true
    package var formats: [Int64] = []
    /// The formats' encoding names, in lower case.
    package var codecs: [Int64: String] = [:]
    /// The formats with NACK (`a=rtcp-fb: nack`); -1 means all.
    package var nacked: Set<Int64> = []
    /// The formats that a retransmission format refers to (`apt=`).
    package var repaired: Set<Int64> = []
    /// The id of the abs-send-time header extension; 0 if it is not negotiated.
    package var sendTime: Int64 = 0
    /// Whether the section names a track or a source (`a=msid`, `a=ssrc`, `a=rid`).
    package var hasSource = false
    package var doubled: [String] = []

    package var isRejected: Bool { port == 0 && !isBundleOnly }
  }

  package var peer: Int64
  package var at: Int64
  /// Whether this is the peer's local description rather than the remote one.
  package var isLocal: Bool
  package var kind: Kind
  package var sections: [Section] = []
  /// The first `a=ice-pwd`, which identifies the same description at both peers.
  package var password = ""
  /// The first `a=setup`: `actpass`, `active` or `passive`; empty if there is none.
  package var setup = ""
  /// A hash of all lines except `o=` and candidates, which may change when a description is read
  /// again.
  package var fingerprint: UInt64 = 0

  /// Returns a format's codec in lower case; nil if the description does not name it.
  package func codec(_ format: Int64) -> String? {
    for section in sections where !section.isRejected {
      if let codec = section.codecs[format] { return codec }
    }
    return nil
  }

  /// The formats in all sections that are not rejected.
  package var formats: Set<Int64> {
    Set(sections.filter { !$0.isRejected }.flatMap(\.formats))
  }

  /// Parses a description's text line by line, ignoring unknown lines.
  init(peer: Int64, at: Int64, isLocal: Bool, kind: Kind, text: String) {
    (self.peer, self.at, self.isLocal, self.kind) = (peer, at, isLocal, kind)
    var direction = Section()
    var seen: Set<Substring> = []
    fingerprint = 0xcbf2_9ce4_8422_2325
    for line in Self.lines(of: text) {
      if password.isEmpty, line.starts("a=ice-pwd:") { password = String(line) }
      if setup.isEmpty, line.starts("a=setup:") { setup = String(line.dropFirst(8)) }
      if line.starts("m=") {
        guard sections.count < 1000 else { break }
        seen = []
        var section = Section()
        (section.sends, section.receives) = (direction.sends, direction.receives)
        Self.readHead(line, into: &section)
        sections.append(section)
      } else if sections.isEmpty {
        Self.readDirection(line, into: &direction)
      } else {
        read(line, &seen)
      }
      if !line.starts("o=") && !line.starts("a=candidate") {
        for byte in line.utf8 { fingerprint = (fingerprint ^ UInt64(byte)) &* 0x100_0000_01b3 }
      }
    }
  }

  /// Splits text into lines; ASCII is split by bytes, which is twenty times as fast.
  private static func lines(of text: String) -> [Substring] {
    guard text.utf8.allSatisfy({ $0 < 0x80 }) else {
      return text.split(whereSeparator: \.isNewline)
    }
    return text.utf8.split { (0x0a...0x0d).contains($0) }.map { Substring($0) }
  }

  private static func readHead(_ line: Substring, into section: inout Section) {
    let parts = line.dropFirst(2).split(separator: " ")
    guard parts.count >= 3 else { return }
    section.kind = String(parts[0])
    section.port = Int64(parts[1].prefix { $0 != "/" }) ?? 0
    section.formats = parts[3...].prefix(300).compactMap { Int64($0) }
    // These static payload types need no rtpmap line (RFC 3551 section 6).
    let usual: [Int64: String] = [
      0: "pcmu", 3: "gsm", 8: "pcma", 9: "g722", 13: "cn", 18: "g729", 34: "h263",
    ]
    for format in section.formats { section.codecs[format] = usual[format] }
  }

  private static func readDirection(_ line: Substring, into section: inout Section) {
    switch line {
    case "a=sendrecv": (section.sends, section.receives) = (true, true)
    case "a=sendonly": (section.sends, section.receives) = (true, false)
    case "a=recvonly": (section.sends, section.receives) = (false, true)
    case "a=inactive": (section.sends, section.receives) = (false, false)
    default: break
    }
  }

  private mutating func read(_ line: Substring, _ seen: inout Set<Substring>) {
    let last = sections.count - 1
    Self.readDirection(line, into: &sections[last])
    guard line.starts("a=") else { return }
    if !seen.insert(line).inserted, sections[last].doubled.count < 20 {
      sections[last].doubled.append(String(line.prefix(60)))
    }
    let body = line.dropFirst(2)
    let colon = body.utf8.firstIndex(of: UInt8(ascii: ":")) ?? body.endIndex
    let name = body[..<colon]
    let value = colon == body.endIndex ? "" : body[body.utf8.index(after: colon)...]
    let format = Int64(value.prefix { $0.isNumber })
    switch name {
    case "mid": sections[last].mid = String(value)
    case "bundle-only": sections[last].isBundleOnly = true
    case "msid", "ssrc", "rid": sections[last].hasSource = true
    case "rtpmap":
      guard let format, let codec = value.split(separator: " ").dropFirst().first else { return }
      sections[last].codecs[format] = codec.prefix { $0 != "/" }.lowercased()
    case "extmap" where value.hasSuffix("/abs-send-time"): sections[last].sendTime = format ?? 0
    case "rtcp-fb" where value.hasSuffix(" nack"):
      sections[last].nacked.insert(value.hasPrefix("*") ? -1 : format ?? -2)
    case "fmtp":
      guard let place = value.firstRange(of: "apt=") else { return }
      if let other = Int64(value[place.upperBound...].prefix { $0.isNumber }) {
        sections[last].repaired.insert(other)
      }
    default: break
    }
  }
}

extension Substring {
  /// Returns whether the text begins with a prefix, compared by bytes.
  fileprivate func starts(_ text: String) -> Bool { utf8.starts(with: text.utf8) }
}

extension SignaledDescription {
  /// Returns all peers' descriptions, in the order in which they were set or seen.
  ///
  /// For an endpoint these are the descriptions that the application set, since a signaled one may
  /// have been discarded. For an observed peer they are the signaled ones.
  static func read(_ connection: borrowing SQLiteConnection, _ facts: CallFacts)
    throws(SQLiteError) -> [SignaledDescription]
  {
    var found: [SignaledDescription] = []
    var latest: [Key: Int] = [:]
    let rows = try connection.prepare(
      """
      WITH
        applied AS (
          SELECT request.row AS row, request.peer AS peer, request.at_ns AS at_ns,
            request.name = 'setLocalDescription' AS is_local,
            request.arguments ->> '$._0.type' AS type, request.arguments ->> '$._0.sdp' AS text
          FROM call_request AS request LEFT JOIN call_reply AS reply
            ON reply.peer = request.peer AND reply.call = request.call
          WHERE request.name IN ('setLocalDescription', 'setRemoteDescription')
            AND reply.error IS NULL AND request.arguments ->> '$._0.sdp' IS NOT NULL
          UNION ALL
          SELECT reply.row, reply.peer, reply.at_ns, 1, reply.reply ->> '$.type',
            reply.reply ->> '$.sdp'
          FROM call_request AS request JOIN call_reply AS reply
            ON reply.peer = request.peer AND reply.call = request.call
          WHERE request.name = 'localDescription' AND json_valid(reply.reply)
            AND reply.reply ->> '$.sdp' IS NOT NULL
        )
      SELECT row, peer, at_ns, is_local, type, text FROM applied
      UNION ALL
      SELECT row, peer, at_ns, direction = 'out', type,
        coalesce(iif(json_valid(message), message ->> '$.sdp', NULL), CAST(message AS TEXT))
      FROM signaling
      WHERE type IN ('offer', 'answer', 'pranswer', 'description')
        AND peer NOT IN (SELECT peer FROM applied)
      ORDER BY row LIMIT 2000
      """)
    while try rows.step() {
      let (peer, at, isLocal) = (rows.integer(1), rows.integer(2), rows.integer(3) != 0)
      guard let text = rows.text(5), text.hasPrefix("v=") else { continue }
      let type = rows.text(4) ?? ""
      guard type != "rollback" else { continue }
      let isOffer =
        type == "offer" || type == "description" && text.contains("a=setup:actpass")
      let description = SignaledDescription(
        peer: peer, at: at, isLocal: isLocal, kind: isOffer ? .offer : .answer, text: text)
      let key = Key(peer: peer, isLocal: isLocal)
      // The application may read its local description again, for example with more candidates.
      if let place = latest[key], isLocal, found[place].kind == description.kind,
        found[place].fingerprint == description.fingerprint,
        found[place].sections.map(\.mid) == description.sections.map(\.mid)
      {
        continue
      }
      latest[key] = found.count
      found.append(description)
    }
    return found
  }

  private struct Key: Hashable {
    var peer: Int64
    var isLocal: Bool
  }
}

extension NetworkFacts {
  /// An offer and its answer, as one peer saw them.
  package struct Exchange: Sendable {
    package var peer: Int64
    package var offer: SignaledDescription
    package var answer: SignaledDescription
  }

  /// Returns a peer's offers with their answers, in order.
  package func exchanges(of peer: Int64) -> [Exchange] {
    var exchanges: [Exchange] = []
    var offers: [Bool: SignaledDescription] = [:]
    // An observer may see an offer and its answer at the same time, with the answer first.
    var early: SignaledDescription?
    for description in descriptions(of: peer) {
      switch description.kind {
      case .offer:
        offers[description.isLocal] = description
        if let answer = early, answer.isLocal != description.isLocal, answer.at == description.at {
          exchanges.append(Exchange(peer: peer, offer: description, answer: answer))
        }
        early = nil
      case .answer:
        guard let offer = offers[!description.isLocal] else {
          early = description
          continue
        }
        exchanges.append(Exchange(peer: peer, offer: offer, answer: description))
      }
    }
    return exchanges
  }

  /// Pairs of peers that are the two ends of a connection, because one received the other's
  /// description.
  package var describedPairs: [(Int64, Int64)] {
    var pairs: [(Int64, Int64)] = []
    for one in descriptions where one.isLocal && !one.password.isEmpty {
      guard
        let other = descriptions.first(where: {
          !$0.isLocal && $0.peer != one.peer && $0.password == one.password
        }), !pairs.contains(where: { $0 == (one.peer, other.peer) })
      else { continue }
      pairs.append((one.peer, other.peer))
    }
    return pairs
  }

  /// Returns the codecs that a peer may receive or send, by payload type; empty unless the take has
  /// both descriptions.
  ///
  /// The answer may assign another payload type to a codec, so codecs are matched by name.
  package func agreedFormats(of peer: Int64, _ direction: WireDirection) -> [Int64: String] {
    let own = descriptions(of: peer)
    var names: [Bool: Set<String>] = [:]
    for one in own {
      for section in one.sections where !section.isRejected {
        names[one.isLocal, default: []].formUnion(section.codecs.values)
      }
    }
    guard let local = names[true], let remote = names[false] else { return [:] }
    let both = local.intersection(remote)
    var agreed: [Int64: String] = [:]
    // The receiver chooses the payload types.
    let isReceiverLocal = direction == .inbound
    for one in own where one.isLocal == isReceiverLocal {
      for section in one.sections where !section.isRejected {
        for format in section.formats {
          let codec = section.codecs[format] ?? ""
          if codec.isEmpty || both.contains(codec) { agreed[format] = codec }
        }
      }
    }
    return agreed
  }
}

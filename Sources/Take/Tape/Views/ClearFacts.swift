import Observer
import RTP
import Secure
import Wire

/// Reads facts that packets contain only in encrypted form, and that rows therefore lack: arrival
/// times and retransmissions.
///
/// The packets are decrypted with the take's keys.
struct ClearFacts {
  /// A transport-wide feedback packet, and the row in `rtcp` that describes it.
  struct Feedback {
    var row: Int64
    /// The index of the end that sent or received the packet.
    var end: Int
    var at: Int64
    var contents: TransportFeedback
  }

  /// The packets that retransmissions repeat.
  struct Retransmissions {
    /// The sequence number of the original packet, by the index of the retransmission.
    var originals: [Int: UInt16] = [:]
    /// Whether any retransmission could be decrypted; if so, a packet that cannot be decrypted is
    /// not a retransmission.
    var hasKeys = false
  }

  private var log = NSSKeyLog()
  /// The keys of each peer, first for the packets that it sends and then for those that it
  /// receives.
  private var receivers: [Int64: [[SRTPReceiver]]] = [:]
  private var given: [SRTPKey] = []

  init(_ facts: ViewFacts) throws(SQLiteError) {
    try readKeys(facts)
    try followHandshakes(facts)
  }

  // MARK: Keys

  private mutating func readKeys(_ facts: ViewFacts) throws(SQLiteError) {
    let events = try facts.prepare("SELECT detail FROM event WHERE type = 'keylog' ORDER BY row")
    while try events.step() {
      guard
        let secret = CanonicalJSON.value(KeyLogText.self, from: events.text(0) ?? "")
      else { continue }
      let line = "CLIENT_RANDOM \(secret.clientRandom) \(secret.masterSecret)\n"
      _ = log.append(line.utf8)
    }
    let calls = try facts.prepare(
      """
      SELECT name, arguments ->> '$._0' FROM call_request WHERE name IN ('keyLog', 'srtpKey')
      ORDER BY row
      """)
    while try calls.step() {
      let (name, text) = calls.values(String.self, String.self)
      if name == "keyLog" {
        _ = log.append(text.utf8)
        _ = log.finish()
      } else if let key = try? SRTPKey(parsing: text), given.count < Self.keyMaximum {
        given.append(key)
      }
    }
    let lines = try facts.prepare(
      "SELECT DISTINCT value FROM sdp_line WHERE attribute = 'crypto' AND value IS NOT NULL")
    while try lines.step(), given.count < Self.keyMaximum {
      given += CryptoAttribute(lines.text(0) ?? "")?.srtpKeys ?? []
    }
  }

  /// The maximum number of supplied keys, and of derived keys per peer and direction, that are
  /// tried.
  private static let keyMaximum = 64

  private struct KeyLogText: Decodable {
    var clientRandom: String
    var masterSecret: String
  }

  /// Derives SRTP keys from recorded handshakes, for each peer as a whole and for each of its
  /// paths.
  ///
  /// Calls without bundling have several handshakes at the same time.
  private mutating func followHandshakes(_ facts: ViewFacts) throws(SQLiteError) {
    guard log.count > 0 else { return }
    let packets = try facts.packets()
    let names = try pathNames(facts)
    let wire = try WireReader(facts)
    var followers: [String: DTLSFollower] = [:]
    for packet in packets.others where packet.ssrc == nil && packet.size > 0 {
      // The first byte shows whether the packet is DTLS (RFC 7983); application data (23) is not
      // needed.
      guard let first = try wire.byte(at: packet.position), (0x14..<0x40).contains(first),
        first != 23
      else { continue }
      let bytes = try wire.bytes(at: packet.position, count: packet.size)
      for place in packets.paths[packet.path] {
        let end = packets.ends[place]
        let path = names[PathOfEnd(path: packet.path, end: end)] ?? ""
        for name in ["\(end.peer)", "\(end.peer) \(path)"] {
          var events: [DTLSFollower.Event] = []
          followers[name, default: DTLSFollower()].receive(
            bytes, from: end.direction == "out" ? 0 : 1, log, into: &events)
          for case .srtpKeys(let profile, let keys) in events { add(profile, keys, of: end.peer) }
        }
      }
    }
  }

  private struct PathOfEnd: Hashable {
    var path: Int64
    var end: ViewFacts.End
  }

  /// Returns the addresses of each path as text, for each of its ends.
  private func pathNames(_ facts: ViewFacts) throws(SQLiteError) -> [PathOfEnd: String] {
    var names: [PathOfEnd: String] = [:]
    let rows = try facts.prepare(
      "SELECT path, peer, direction, local || ' ' || remote FROM path_end")
    while try rows.step() {
      let (path, peer, direction, name) = rows.values(
        Int64.self, Int64.self, String.self, String.self)
      names[PathOfEnd(path: path, end: ViewFacts.End(peer: peer, direction: direction))] = name
    }
    return names
  }

  private mutating func add(_ profile: SRTPProfile, _ keys: [[UInt8]], of peer: Int64) {
    guard let suite = SRTPSuite(profile), keys.count == 2 else { return }
    for end in 0..<2 {
      guard let receiver = try? SRTPReceiver(suite, key: keys[end]),
        receivers[peer]?[end].count ?? 0 < Self.keyMaximum
      else { continue }
      receivers[peer, default: [[], []]][end].insert(receiver, at: 0)
    }
  }

  /// Removes the header of a TURN channel, if there is one (RFC 8656 section 12.4).
  private static func unwrapped(_ bytes: [UInt8]) -> [UInt8] {
    guard bytes.count > 4, (0x40..<0x50).contains(bytes[0]) else { return bytes }
    let length = Int(bytes[2]) << 8 | Int(bytes[3])
    return Array(bytes[4..<min(bytes.count, 4 + length)])
  }

  /// Decrypts a packet; nil if no key fits.
  ///
  /// If there is no key at all, unencrypted RTCP is returned as it is.
  private mutating func opened(
    _ bytes: [UInt8], peer: Int64, isOut: Bool, isRTCP: Bool
  ) -> [UInt8]? {
    let end = isOut ? 0 : 1
    if receivers[peer] == nil {
      // It is unknown which peer a supplied key belongs to, so each key is tried for all peers.
      receivers[peer] = [[], []]
      for key in given {
        for suite in key.suites {
          for end in 0..<2 {
            guard
              let receiver = try? SRTPReceiver(suite, key: key.bytes, identifier: key.identifier)
            else { continue }
            receivers[peer]?[end].append(receiver)
          }
        }
      }
    }
    guard let known = receivers[peer]?[end], !known.isEmpty else {
      return isRTCP && Self.isClear(bytes) ? bytes : nil
    }
    for (place, receiver) in known.enumerated() {
      var copy = bytes
      guard (try? receiver.open(&copy, isRTCP: isRTCP)) != nil else { continue }
      // The next packet probably needs the same key, so the key moves to the front.
      if place > 0 { receivers[peer]?[end].swapAt(0, place) }
      return copy
    }
    return nil
  }

  /// Returns whether the bytes parse as RTCP packets to the end, in which case they are not
  /// encrypted.
  private static func isClear(_ bytes: [UInt8]) -> Bool {
    var offset = 0
    while offset + 4 <= bytes.count {
      guard bytes[offset] >> 6 == 2, (192...223).contains(bytes[offset + 1]) else { return false }
      offset += 4 + 4 * (Int(bytes[offset + 2]) << 8 | Int(bytes[offset + 3]))
    }
    return offset == bytes.count
  }

  // MARK: Feedback

  /// Reads the feedback that is listed in `rtcp`, in the order of its packets.
  mutating func feedback(_ facts: ViewFacts) throws(SQLiteError) -> [Feedback] {
    let packets = try facts.packets()
    // A step may have several feedback packets, so the key also has the end, first number and
    // counter.
    var places = PlaceTable()
    var told: [(row: Int64, at: Int64)] = []
    let rows = try facts.prepare(
      """
      SELECT row, at_ns, peer, direction, fields ->> '$.base', fields ->> '$.feedback'
      FROM rtcp WHERE type = 'transport-cc' ORDER BY row
      """)
    while try rows.step() {
      let end = ViewFacts.End(peer: rows.integer(2), direction: rows.text(3) ?? "")
      guard let place = packets.paths.place(of: end), let base = UInt16(exactly: rows.integer(4)),
        let number = UInt8(exactly: rows.integer(5))
      else { continue }
      let row = rows.integer(0)
      places.update(
        UInt64(bitPattern: row >> 16), Self.key(place, base, number), to: told.count)
      told.append((row, rows.integer(1)))
    }
    guard !told.isEmpty else { return [] }
    var feedback: [Feedback] = []
    let wire = try WireReader(facts)
    var next = 0
    for packet in packets.others where packet.ssrc != nil {
      let step = packet.row >> 16
      while next < told.count, told[next].row >> 16 < step { next += 1 }
      guard next < told.count, told[next].row >> 16 == step else { continue }
      let bytes = Self.unwrapped(try wire.bytes(at: packet.position, count: packet.size))
      for place in packets.paths[packet.path] {
        let end = packets.ends[place]
        guard
          let clear = opened(
            bytes, peer: end.peer, isOut: end.direction == "out", isRTCP: true)
        else { continue }
        for case .transportFeedback(let contents) in RTCPCompound(parsing: clear.span.bytes)
          .packets
        {
          let key = Self.key(place, contents.base, contents.number)
          guard let found = places[UInt64(bitPattern: step), key] else { continue }
          feedback.append(
            Feedback(
              row: told[found].row, end: place, at: told[found].at, contents: contents))
        }
      }
    }
    return feedback
  }

  private static func key(_ end: Int, _ base: UInt16, _ number: UInt8) -> UInt64 {
    UInt64(end) << 24 | UInt64(base) << 8 | UInt64(number)
  }

  /// Decrypts retransmissions, and reads which packets they repeat.
  mutating func retransmissions(_ facts: ViewFacts) throws(SQLiteError) -> Retransmissions {
    var found = Retransmissions()
    guard !receivers.isEmpty || !given.isEmpty else { return found }
    let packets = try facts.packets()
    let wire = try WireReader(facts)
    for (place, packet) in packets.packets.enumerated() where !packets.isMedia(packet) {
      let end = packets.ends[Int(packet.end)]
      let bytes = Self.unwrapped(try wire.bytes(at: packet.position, count: packet.size))
      guard
        let clear = opened(bytes, peer: end.peer, isOut: end.direction == "out", isRTCP: false)
      else { continue }
      found.hasKeys = true
      guard let header = try? RTPHeader(parsing: clear.span.bytes),
        let (sequence, payload) = RTX.unwrap(clear.span.bytes, header: header), !payload.isEmpty
      else { continue }
      found.originals[place] = sequence
    }
    return found
  }
}

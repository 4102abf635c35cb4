import Observer
import RTP
import Secure
import Wire

/// Feedback and retransmissions that are encrypted in a take's packets and have no rows.
///
/// They are read with the keys that the take has.
struct ClearFacts {
  /// Feedback with the row of `rtcp` that holds it.
  struct Feedback {
    var row: Int64
    var end: ViewFacts.End
    var at: Int64
    var contents: TransportFeedback
  }

  /// The original sequence numbers of retransmissions, by row and peer.
  struct Retransmission: Hashable {
    var row: Int64
    var peer: Int64
  }

  private(set) var feedback: [Feedback] = []
  private(set) var originals: [Retransmission: UInt16] = [:]
  /// Whether at least one retransmission could be decrypted; then those that cannot are not
  /// retransmissions.
  private(set) var hasKeys = false

  private var log = NSSKeyLog()
  /// The keys of each peer, for what it sends and what it receives.
  private var receivers: [Int64: [[SRTPReceiver]]] = [:]
  private var given: [SRTPKey] = []

  init(_ facts: ViewFacts) throws(SQLiteError) {
    try readKeys(facts)
    try followHandshakes(facts)
    try readFeedback(facts)
    try readRetransmissions(facts)
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

  /// The number of externally supplied keys that are tried.
  private static let keyMaximum = 64

  private struct KeyLogText: Decodable {
    var clientRandom: String
    var masterSecret: String
  }

  /// Derives SRTP keys from the recorded handshakes, per peer and per path, because calls without
  /// bundling have several handshakes at once.
  private mutating func followHandshakes(_ facts: ViewFacts) throws(SQLiteError) {
    guard log.count > 0 else { return }
    var followers: [String: DTLSFollower] = [:]
    let rows = try facts.prepare(
      """
      SELECT peer, direction, local || ' ' || remote, bytes FROM packet
      WHERE ssrc IS NULL AND protocol = 'dtls' ORDER BY row
      """)
    while try rows.step() {
      let (peer, direction, path) = rows.values(Int64.self, String.self, String.self)
      let bytes = Self.unwrapped(rows.bytes(3))
      // SCTP over DTLS 1.2 is not part of a handshake.
      guard bytes.first != 23 else { continue }
      for name in ["\(peer)", "\(peer) \(path)"] {
        var events: [DTLSFollower.Event] = []
        followers[name, default: DTLSFollower()].receive(
          bytes, from: direction == "out" ? 0 : 1, log, into: &events)
        for case .srtpKeys(let profile, let keys) in events { add(profile, keys, of: peer) }
      }
    }
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

  /// Strips the header of a TURN channel (RFC 8656 section 12.4).
  private static func unwrapped(_ bytes: [UInt8]) -> [UInt8] {
    guard bytes.count > 4, (0x40..<0x50).contains(bytes[0]) else { return bytes }
    let length = Int(bytes[2]) << 8 | Int(bytes[3])
    return Array(bytes[4..<min(bytes.count, 4 + length)])
  }

  /// Decrypts a packet; nil if no key fits.
  private mutating func opened(
    _ bytes: [UInt8], peer: Int64, isOut: Bool, isRTCP: Bool
  ) -> [UInt8]? {
    let end = isOut ? 0 : 1
    if receivers[peer] == nil {
      // Supplied keys are tried on every peer.
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
      // Moves the key to the front, as it most likely fits the next packet too.
      if place > 0 { receivers[peer]?[end].swapAt(0, place) }
      return copy
    }
    return nil
  }

  /// Whether an RTCP packet parses to its end, and so is not encrypted.
  private static func isClear(_ bytes: [UInt8]) -> Bool {
    var offset = 0
    while offset + 4 <= bytes.count {
      guard bytes[offset] >> 6 == 2, (192...223).contains(bytes[offset + 1]) else { return false }
      offset += 4 + 4 * (Int(bytes[offset + 2]) << 8 | Int(bytes[offset + 3]))
    }
    return offset == bytes.count
  }

  // MARK: What they tell

  /// Locates feedback: the peer and the step.
  private struct Place: Hashable {
    var step: Int64
    var peer: Int64
    var direction: String
    var base: Int64
    var number: Int64
  }

  private mutating func readFeedback(_ facts: ViewFacts) throws(SQLiteError) {
    var places: [Place: (row: Int64, at: Int64)] = [:]
    var steps: Set<Int64> = []
    let rows = try facts.prepare(
      """
      SELECT row, at_ns, row >> 16, peer, direction, fields ->> '$.base',
        fields ->> '$.feedback' FROM rtcp WHERE type = 'transport-cc'
      """)
    while try rows.step() {
      let place = Place(
        step: rows.integer(2), peer: rows.integer(3), direction: rows.text(4) ?? "",
        base: rows.integer(5), number: rows.integer(6))
      places[place] = (rows.integer(0), rows.integer(1))
      steps.insert(place.step)
    }
    guard !places.isEmpty else { return }
    let packets = try facts.prepare(
      """
      SELECT row >> 16, peer, direction, bytes FROM packet
      WHERE payload_type IS NULL AND ssrc IS NOT NULL ORDER BY row
      """)
    while try packets.step() {
      let (step, peer, direction) = packets.values(Int64.self, Int64.self, String.self)
      guard steps.contains(step),
        let clear = opened(
          Self.unwrapped(packets.bytes(3)), peer: peer, isOut: direction == "out", isRTCP: true)
      else { continue }
      for case .transportFeedback(let contents) in RTCPCompound(parsing: clear.span.bytes).packets {
        let place = Place(
          step: step, peer: peer, direction: direction, base: Int64(contents.base),
          number: Int64(contents.number))
        guard let found = places[place] else { continue }
        feedback.append(
          Feedback(
            row: found.row, end: ViewFacts.End(peer: peer, direction: direction), at: found.at,
            contents: contents))
      }
    }
  }

  private mutating func readRetransmissions(_ facts: ViewFacts) throws(SQLiteError) {
    let found = try facts.packets()
    var wanted: Set<Retransmission> = []
    var types: Set<UInt8> = []
    for packet in found.packets where !found.isMedia(packet) {
      wanted.insert(Retransmission(row: packet.row, peer: found.ends[packet.direction].peer))
      types.insert(UInt8(truncatingIfNeeded: packet.payloadType))
    }
    guard !wanted.isEmpty else { return }
    // One pass: finding the owner of a path costs as much for one packet as for all.
    let list = types.sorted().map(String.init).joined(separator: ", ")
    let bytes = try facts.prepare(
      """
      SELECT row, peer, direction, bytes FROM packet
      WHERE payload_type IN (\(list)) ORDER BY row
      """)
    while try bytes.step() {
      let (row, peer, direction) = bytes.values(Int64.self, Int64.self, String.self)
      guard wanted.contains(Retransmission(row: row, peer: peer)),
        let clear = opened(
          Self.unwrapped(bytes.bytes(3)), peer: peer, isOut: direction == "out", isRTCP: false)
      else { continue }
      hasKeys = true
      guard let header = try? RTPHeader(parsing: clear.span.bytes),
        let (sequence, payload) = RTX.unwrap(clear.span.bytes, header: header), !payload.isEmpty
      else { continue }
      originals[Retransmission(row: row, peer: peer)] = sequence
    }
  }
}

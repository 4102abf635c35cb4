import Observer
import Tape
import Wire

/// Sent, retransmitted and acknowledged SCTP chunks, for connections whose keys the take has.
///
/// Losses show at both ends: the sender receives acknowledgements with gaps and retransmits.
package struct ChannelFacts: Sendable {
  /// The data chunks that a peer sent, or received.
  package struct Way: Sendable {
    package var peer: Int64
    package var direction: WireDirection
    /// The number of distinct chunks, and of retransmissions.
    package var chunks: Int64 = 0
    package var repeated: Int64 = 0
    /// The number of sequence numbers skipped when later chunks arrived.
    package var skipped: Int64 = 0
    /// The number of acknowledgements of these chunks, and how many of them had gap blocks (RFC
    /// 9260 section 3.3.4).
    package var acknowledgements: Int64 = 0
    package var withGaps: Int64 = 0
    /// The times of the first and last retransmissions or gap blocks.
    package var firstTrouble: Int64 = .max
    package var lastTrouble: Int64 = .min
    /// The longest time between two transmissions of a chunk, which shows how far the sender's
    /// timeout grew.
    package var longestRepeat: Int64 = 0
    fileprivate var highest: UInt32?
    fileprivate var times: [UInt32: Int64] = [:]
  }

  package private(set) var ways: [Way] = []

  /// Whether the take has data channels and keys; without keys, chunks cannot be read.
  private(set) var isNeeded = false
  private var log = NSSKeyLog()
  private var followers: [Int64: DTLSFollower] = [:]
  private var packets = 0

  private static let mostPackets = 500_000
  private static let mostPeers = 1_000
  private static let mostTimes = 20_000

  init() {}

  mutating func prepare(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let rows = try connection.prepare(
      """
      SELECT 'CLIENT_RANDOM ' || (detail ->> '$.clientRandom') || ' '
        || (detail ->> '$.masterSecret') || char(10)
      FROM event WHERE type = 'keylog' AND EXISTS (SELECT 1 FROM channel)
      UNION ALL
      SELECT (arguments ->> '$._0') || char(10) FROM call_request
      WHERE name = 'keyLog' AND EXISTS (SELECT 1 FROM channel)
      """)
    while try rows.step() {
      guard let text = rows.text(0) else { continue }
      if !log.append(Array(text.utf8)).isEmpty { isNeeded = true }
    }
  }

  /// Returns whether a datagram is DTLS, by its first byte (RFC 7983).
  static func mayCarry(_ head: [UInt8]) -> Bool {
    head.first.map { (20...63).contains($0) } ?? false
  }

  /// Adds a datagram, with its sender and receiver if the take has them.
  mutating func add(
    _ bytes: [UInt8], _ ends: [(peer: Int64, direction: WireDirection)], _ at: Int64
  ) {
    guard packets < Self.mostPackets, let first = ends.min(by: { $0.peer < $1.peer }),
      followers[first.peer] != nil || followers.count < Self.mostPeers
    else { return }
    packets += 1
    var events: [DTLSFollower.Event] = []
    let sender = first.direction == .outbound ? 0 : 1
    followers[first.peer, default: DTLSFollower()].receive(bytes, from: sender, log, into: &events)
    for case .data(let from, let packet) in events {
      for end in ends {
        // The direction depends on which end sent the packet, whatever the order of the rows.
        let isSent = (from == 0) == (end.peer == first.peer)
        read(packet, end.peer, isSent ? .outbound : .inbound, at)
      }
    }
  }

  // MARK: SCTP

  /// Parses a packet's chunks (RFC 9260 section 3).
  private mutating func read(
    _ packet: [UInt8], _ peer: Int64, _ direction: WireDirection, _ at: Int64
  ) {
    var place = 12
    while place +| 4 <= packet.count {
      let length = Int(packet[place +| 2]) << 8 | Int(packet[place +| 3])
      guard length >= 4, place +| length <= packet.count else { return }
      switch packet[place] {
      case 0,
        64 where length >= 16:
        countData(number(packet, place +| 4), peer, direction, at)
      case 3 where length >= 16:
        let gaps = Int(packet[place +| 12]) << 8 | Int(packet[place +| 13])
        // An acknowledgement concerns the chunks sent in the opposite direction.
        countAcknowledgement(gaps, peer, direction == .inbound ? .outbound : .inbound, at)
      default: break
      }
      place +|= (length +| 3) / 4 *| 4
    }
  }

  private func number(_ packet: [UInt8], _ place: Int) -> UInt32 {
    guard place +| 4 <= packet.count else { return 0 }
    return packet[place..<(place +| 4)].reduce(0) { $0 << 8 | UInt32($1) }
  }

  private mutating func place(_ peer: Int64, _ direction: WireDirection) -> Int {
    if let place = ways.firstIndex(where: { $0.peer == peer && $0.direction == direction }) {
      return place
    }
    ways.append(Way(peer: peer, direction: direction))
    return ways.count - 1
  }

  private mutating func countData(
    _ number: UInt32, _ peer: Int64, _ direction: WireDirection, _ at: Int64
  ) {
    let place = place(peer, direction)
    defer {
      if ways[place].times.count < Self.mostTimes { ways[place].times[number] = at }
    }
    guard let highest = ways[place].highest else {
      ways[place].highest = number
      ways[place].chunks = 1
      return
    }
    let step = Int32(bitPattern: number &- highest)
    guard abs(Int64(step)) < 1 << 24 else {
      // A new association has restarted the numbers.
      ways[place].highest = number
      ways[place].times.removeAll(keepingCapacity: true)
      ways[place].chunks +|= 1
      return
    }
    if step > 0 {
      ways[place].highest = number
      ways[place].chunks +|= 1
      if step > 1 { ways[place].skipped +|= Int64(step) - 1 }
      // Chunks this old are no longer retransmitted.
      ways[place].times[number &- UInt32(Self.mostTimes)] = nil
      return
    }
    if let before = ways[place].times[number] {
      ways[place].repeated +|= 1
      ways[place].longestRepeat = max(ways[place].longestRepeat, at &- before)
    } else {
      ways[place].chunks +|= 1
    }
    ways[place].trouble(at)
  }

  private mutating func countAcknowledgement(
    _ gaps: Int, _ peer: Int64, _ direction: WireDirection, _ at: Int64
  ) {
    let place = place(peer, direction)
    ways[place].acknowledgements +|= 1
    guard gaps > 0 else { return }
    ways[place].withGaps +|= 1
    ways[place].trouble(at)
  }
}

extension ChannelFacts.Way {
  fileprivate mutating func trouble(_ at: Int64) {
    firstTrouble = min(firstTrouble, at)
    lastTrouble = max(lastTrouble, at)
  }
}

import Wire

/// The unencrypted contents of datagrams other than RTP and RTCP: STUN messages and DTLS headers.
package struct DatagramFacts: Sendable {
  /// A Binding request that a peer sent, with its retransmissions.
  package struct Check: Sendable {
    package var peer: Int64
    package var at: Int64
    package var path: Int64
    /// The time of the response; nil if there was none.
    package var answered: Int64?
    /// Whether the response was an error.
    package var isRefused = false
    /// The copies of the request and of its response at both ends.
    package internal(set) var exchange = Exchange()
  }

  /// The copies of a STUN request and of its response.
  package struct Exchange: Sendable {
    package var requests = Copies()
    package var responses = Copies()

    fileprivate mutating func add(isRequest: Bool, _ direction: WireDirection) {
      if isRequest { requests.add(direction) } else { responses.add(direction) }
    }
  }

  /// How many copies of a message were sent, and how many of them arrived.
  package struct Copies: Sendable {
    package var sent: Int64 = 0
    package var arrived: Int64 = 0

    package var lost: Int64 { max(0, sent -| arrived) }

    fileprivate mutating func add(_ direction: WireDirection) {
      if direction == .outbound { sent +|= 1 } else { arrived +|= 1 }
    }
  }

  /// A STUN error response that a peer received from a server or the remote peer, or that it sent
  /// itself.
  package struct Refusal: Sendable {
    package var peer: Int64
    package var at: Int64
    /// The STUN method: 1 Binding, 3 Allocate, 4 Refresh, 8 CreatePermission, 9 ChannelBind.
    package var method: Int
    package var code: Int
  }

  /// A handshake message, or a fragment of one.
  package struct Message: Sendable {
    package var peer: Int64
    package var direction: WireDirection
    package var at: Int64
    /// The handshake type: 1 ClientHello, 2 ServerHello, ...
    package var type: UInt8
    /// Whether the message is a retransmission.
    package var isRepeat: Bool
  }

  /// An unencrypted alert (RFC 5246 section 7.2).
  package struct Alert: Sendable {
    package var peer: Int64
    package var direction: WireDirection
    package var at: Int64
    package var isFatal: Bool
    package var code: UInt8
  }

  /// Application data records of one peer, direction and epoch; DTLS 1.2 numbers them in the clear.
  package struct Records: Sendable {
    package var peer: Int64
    package var direction: WireDirection
    package var epoch: Int
    package var first: Int64
    package var last: Int64
    package var count: Int64
    package var lowest: Int64
    package var highest: Int64
    /// Per second: the number of records and the highest sequence number.
    package var seconds: [(second: Int64, count: Int64, highest: Int64)] = []

    package var lost: Int64 { max(0, highest -| lowest +| 1 -| count) }
  }

  package private(set) var checks: [Check] = []
  /// The number of checks that each peer received, and the arrival of the first and last.
  package private(set) var incoming: [(peer: Int64, count: Int64, first: Int64, last: Int64)] = []
  package private(set) var refusals: [Refusal] = []
  /// The error responses that a peer itself sent.
  package private(set) var localRefusals: [Refusal] = []
  package private(set) var messages: [Message] = []
  package private(set) var alerts: [Alert] = []
  package private(set) var records: [Records] = []

  private var transactions: [Transaction: Int] = [:]
  /// The transactions by their 96 random bits alone, which are the same at both ends.
  private var exchanges: [TransactionID: Exchange] = [:]
  private var seen: Set<MessageName> = []
  private static let most = 50_000

  private struct TransactionID: Hashable {
    var one: UInt64
    var two: UInt32
  }

  private struct Transaction: Hashable {
    var peer: Int64
    var id: TransactionID
  }

  private struct MessageName: Hashable {
    var peer: Int64
    var direction: WireDirection
    var type: UInt8
    var number: UInt32
    var offset: UInt32
    var digest: UInt64
  }

  /// Returns whether the entire datagram is needed rather than only its head, as for handshakes and
  /// STUN errors.
  static func needsAll(_ head: [UInt8]) -> Bool {
    guard let first = head.first else { return false }
    return first == 22 || first == 1
  }

  mutating func add(
    _ bytes: [UInt8], _ size: Int64, _ peer: Int64, _ direction: WireDirection, _ path: Int64,
    _ at: Int64
  ) {
    guard let first = bytes.first else { return }
    switch first {
    case 0...3: addSTUN(bytes, peer, direction, path, at)
    case 20...63: addRecords(bytes, peer, direction, at)
    default: break
    }
  }

  // MARK: STUN

  private mutating func addSTUN(
    _ bytes: [UInt8], _ peer: Int64, _ direction: WireDirection, _ path: Int64, _ at: Int64
  ) {
    guard bytes.count >= 20, number(bytes, 4, 4) == 0x2112_a442 else { return }
    let type = Int(number(bytes, 0, 2))
    // The class bits are interleaved with the method's (RFC 8489 section 5).
    let method = type & 0x000f | (type & 0x00e0) >> 1 | (type & 0x3e00) >> 2
    let name = Transaction(
      peer: peer,
      id: TransactionID(
        one: number(bytes, 8, 8), two: UInt32(truncatingIfNeeded: number(bytes, 16, 4))))
    if method == 1, exchanges.count < Self.most || exchanges[name.id] != nil {
      exchanges[name.id, default: Exchange()].add(isRequest: type & 0x0110 == 0, direction)
    }
    switch (type & 0x0110, direction) {
    case (0x0000, .outbound) where method == 1:
      guard transactions[name] == nil, checks.count < Self.most else { return }
      transactions[name] = checks.count
      checks.append(Check(peer: peer, at: at, path: path))
    case (0x0000, .inbound) where method == 1: countIncoming(peer, at)
    case (0x0100, .inbound):
      if let place = transactions[name], checks[place].answered == nil {
        checks[place].answered = at
      }
    case (0x0110, .outbound):
      guard let code = errorCode(bytes), localRefusals.count < Self.most else { return }
      localRefusals.append(Refusal(peer: peer, at: at, method: method, code: code))
    case (0x0110, .inbound):
      if let place = transactions[name], checks[place].answered == nil {
        (checks[place].answered, checks[place].isRefused) = (at, true)
      }
      guard let code = errorCode(bytes), refusals.count < Self.most else { return }
      refusals.append(Refusal(peer: peer, at: at, method: method, code: code))
    default: break
    }
  }

  /// Sets the copies of each check, after all datagrams were added.
  mutating func finish() {
    for (name, place) in transactions {
      checks[place].exchange = exchanges[name.id] ?? Exchange()
    }
  }

  private mutating func countIncoming(_ peer: Int64, _ at: Int64) {
    if let place = incoming.firstIndex(where: { $0.peer == peer }) {
      incoming[place].count +|= 1
      incoming[place].last = max(incoming[place].last, at)
    } else if incoming.count < Self.most {
      incoming.append((peer, 1, at, at))
    }
  }

  /// Returns the code in the ERROR-CODE attribute (RFC 8489 section 14.8); nil if there is none.
  private func errorCode(_ bytes: [UInt8]) -> Int? {
    var place = 20
    while place +| 4 <= bytes.count {
      let length = Int(number(bytes, place +| 2, 2))
      if number(bytes, place, 2) == 0x0009, length >= 4, place +| 8 <= bytes.count {
        return Int(bytes[place +| 6] & 7) *| 100 +| Int(bytes[place +| 7])
      }
      place +|= 4 +| (length +| 3) / 4 *| 4
    }
    return nil
  }

  // MARK: DTLS

  private mutating func addRecords(
    _ bytes: [UInt8], _ peer: Int64, _ direction: WireDirection, _ at: Int64
  ) {
    var place = 0
    while place +| 13 <= bytes.count {
      let type = bytes[place]
      guard (20...26).contains(type), bytes[place +| 1] == 254 else { return }
      let epoch = Int(number(bytes, place +| 3, 2))
      let length = Int(number(bytes, place +| 11, 2))
      let end = place +| 13 +| length
      if epoch > 0, type == 23 {
        count(peer, direction, epoch, Int64(number(bytes, place +| 5, 6)), at)
      } else if epoch == 0, type == 22, end <= bytes.count {
        addMessages(bytes[(place +| 13)..<end], peer, direction, at)
      } else if epoch == 0, type == 21, length == 2, end <= bytes.count, alerts.count < Self.most {
        alerts.append(
          Alert(
            peer: peer, direction: direction, at: at, isFatal: bytes[place +| 13] == 2,
            code: bytes[place +| 14]))
      }
      place = end
    }
  }

  private mutating func addMessages(
    _ bytes: ArraySlice<UInt8>, _ peer: Int64, _ direction: WireDirection, _ at: Int64
  ) {
    var place = bytes.startIndex
    while place +| 12 <= bytes.endIndex, messages.count < Self.most {
      func field(_ offset: Int, _ count: Int) -> UInt64 {
        bytes[(place +| offset)..<(place +| offset +| count)].reduce(0) { $0 << 8 | UInt64($1) }
      }
      let length = Int(field(9, 3))
      let end = min(bytes.endIndex, place +| 12 +| length)
      // A new handshake numbers its messages from 0 again, but unlike retransmissions, they have
      // different contents.
      let digest = bytes[place..<end].reduce(0xcbf2_9ce4_8422_2325 as UInt64) {
        ($0 ^ UInt64($1)) &* 0x100_0000_01b3
      }
      let name = MessageName(
        peer: peer, direction: direction, type: bytes[place],
        number: UInt32(truncatingIfNeeded: field(4, 2)),
        offset: UInt32(truncatingIfNeeded: field(6, 3)), digest: digest)
      messages.append(
        Message(
          peer: peer, direction: direction, at: at, type: bytes[place],
          isRepeat: !seen.insert(name).inserted))
      place +|= 12 +| length
    }
  }

  private mutating func count(
    _ peer: Int64, _ direction: WireDirection, _ epoch: Int, _ number: Int64, _ at: Int64
  ) {
    guard
      let place = records.firstIndex(where: {
        $0.peer == peer && $0.direction == direction && $0.epoch == epoch
      })
    else {
      guard records.count < Self.most else { return }
      records.append(
        Records(
          peer: peer, direction: direction, epoch: epoch, first: at, last: at, count: 1,
          lowest: number, highest: number, seconds: [(at / 1_000_000_000, 1, number)]))
      return
    }
    records[place].count +|= 1
    records[place].last = max(records[place].last, at)
    records[place].lowest = min(records[place].lowest, number)
    records[place].highest = max(records[place].highest, number)
    let (second, end) = (at / 1_000_000_000, records[place].seconds.count - 1)
    if records[place].seconds[end].second < second, end < Self.most {
      records[place].seconds.append((second, 1, records[place].highest))
    } else {
      records[place].seconds[end].count +|= 1
      records[place].seconds[end].highest = records[place].highest
    }
  }

  private func number(_ bytes: [UInt8], _ place: Int, _ count: Int) -> UInt64 {
    guard place >= 0, place +| count <= bytes.count else { return 0 }
    return bytes[place..<(place +| count)].reduce(0) { $0 << 8 | UInt64($1) }
  }
}

extension CallFacts {
  /// Returns how many handshake messages of each end did not arrive, to end a sentence; empty if
  /// the take does not have both ends, or if all messages arrived.
  func lostHandshakeMessages(of peer: Int64, from: Int64, to: Int64) -> String {
    guard let other = self.peer(peer)?.other else { return "" }
    let ways = [(peer, other, "its own"), (other, peer, "the remote peer's")]
    let parts = ways.compactMap { sender, receiver, whose -> String? in
      let messages = handshakeMessages(from: sender, to: receiver, during: from...max(from, to))
      return messages.lost > 0 ? "\(messages.lost) of \(whose) \(messages.sent)" : nil
    }
    return parts.isEmpty
      ? "" : "; \(parts.joined(separator: " and ")) handshake messages were lost on the way"
  }

  /// Returns how many handshake messages one end sent to the other, and how many of them were lost.
  func handshakeMessages(
    from sender: Int64, to receiver: Int64, during times: ClosedRange<Int64> = .min ... .max
  ) -> (sent: Int64, lost: Int64) {
    func count(_ peer: Int64, _ direction: WireDirection) -> Int64 {
      Int64(
        network.datagrams.messages.count {
          $0.peer == peer && $0.direction == direction && times.contains($0.at)
        })
    }
    let sent = count(sender, .outbound)
    return (sent, max(0, sent -| count(receiver, .inbound)))
  }
}

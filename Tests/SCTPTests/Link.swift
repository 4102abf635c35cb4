import HeapModule
import SCTP
import Seeded
import Wire

extension SeededGenerator {
  mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(max(1, bound))) }

  mutating func happens(_ percent: Int) -> Bool { below(100) < percent }
}

/// A link's effect on packets.
struct LinkQuality {
  var loss = 0
  var duplication = 0
  var delay = Interval.milliseconds(25)
  /// The maximum random delay added, so that packets overtake each other.
  var jitter = Interval.zero
  /// Bytes per second in each direction; nil for no limit.
  var rate: Int?
  /// How long a packet may wait for the link before it is dropped.
  var queue = Interval.milliseconds(100)
}

/// One side's received messages and events.
struct Seen {
  var states: [SCTPState] = []
  var failures: [String] = []
  var messages: [(channel: DataChannelNumber, binary: Bool, bytes: [UInt8])] = []
  var announced: [DataChannelNumber] = []
  var opened: [DataChannelNumber] = []
  var closing: [DataChannelNumber] = []
  var closed: [DataChannelNumber] = []
  var low: [DataChannelNumber] = []
  var packets = 0
}

/// Two associations and a network between them, in virtual time.
struct Link {
  var sides: [SCTPAssociation]
  var seen = [Seen(), Seen()]
  var now = Instant.zero
  var quality: LinkQuality
  /// Changes or drops a packet in transit, given the sender's side, the bytes, and the sending
  /// time.
  var tamper: ((Int, [UInt8], Instant) -> [UInt8]?)?

  private var dice: SeededGenerator
  private var travelling = Heap<Packet>()
  private var order = 0
  private var busy = [Instant.zero, Instant.zero]

  init(seed: UInt64 = 1, _ quality: LinkQuality = LinkQuality()) {
    dice = SeededGenerator(seed: seed)
    self.quality = quality
    sides = (0..<2).map { side in
      var word = seed &* 2 &+ UInt64(side)
      let bytes = withUnsafeBytes(of: &word) { Array($0) }
      return SCTPAssociation(entropy: Entropy(seed: bytes).stream("sctp"))
    }
  }

  /// Starts both sides, with side 0 as the DTLS client; `change` adjusts each side's parameters.
  mutating func start(_ change: (Int, inout SCTPParameters) -> Void = { _, _ in }) {
    for side in 0..<2 {
      var parameters = SCTPParameters(isClient: side == 0, remoteMaximumMessageSize: 0)
      change(side, &parameters)
      step(side, .start(parameters))
    }
  }

  /// Starts both sides, and runs until both are connected.
  mutating func connect(_ change: (Int, inout SCTPParameters) -> Void = { _, _ in }) {
    start(change)
    run { $0.sides.allSatisfy { $0.state == .connected } }
  }

  mutating func open(_ side: Int, _ options: DataChannelInit = DataChannelInit())
    -> DataChannelNumber
  {
    let number = sides[side].nextChannel
    step(side, .open(options))
    return number
  }

  mutating func send(_ side: Int, _ channel: DataChannelNumber, _ text: String) {
    step(side, .send(channel, binary: false, Array(text.utf8)))
  }

  mutating func step(_ side: Int, _ input: SCTPAssociation.Input) {
    var outbox = Outbox<SCTPAssociation.Output>()
    sides[side].step(input, at: now, into: &outbox)
    while let output = outbox.next() { record(output, from: side) }
  }

  private mutating func record(_ output: SCTPAssociation.Output, from side: Int) {
    switch output {
    case .packet(let bytes): carry(bytes, from: side)
    case .state(let state): seen[side].states.append(state)
    case .failure(let reason): seen[side].failures.append(reason)
    case .channelAnnounced(let channel): seen[side].announced.append(channel)
    case .channelOpened(let channel): seen[side].opened.append(channel)
    case .channelClosing(let channel): seen[side].closing.append(channel)
    case .channelClosed(let channel, _): seen[side].closed.append(channel)
    case .channelFailure(_, let reason): seen[side].failures.append(reason)
    case .message(let channel, let binary, let bytes):
      seen[side].messages.append((channel, binary, bytes))
    case .bufferedAmountLow(let channel): seen[side].low.append(channel)
    }
  }

  private mutating func carry(_ original: [UInt8], from side: Int) {
    seen[side].packets += 1
    guard let bytes = tamper.map({ $0(side, original, now) }) ?? original else { return }
    guard !dice.happens(quality.loss) else { return }
    var leaves = now
    if let rate = quality.rate {
      leaves = max(now, busy[side])
      guard leaves - now <= quality.queue else { return }
      leaves += Interval(nanoseconds: Int64(bytes.count + 65) * 1_000_000_000 / Int64(rate))
      busy[side] = leaves
    }
    for _ in 0..<(dice.happens(quality.duplication) ? 2 : 1) {
      let extra = dice.below(Int(quality.jitter.nanoseconds) + 1)
      let at = leaves + quality.delay + Interval(nanoseconds: Int64(extra))
      travelling.insert(Packet(at: at, order: order, to: 1 - side, bytes: bytes))
      order += 1
    }
  }

  /// Runs until a condition holds; returns false if nothing is left to happen or the time has run
  /// out.
  @discardableResult
  mutating func run(
    for limit: Interval = .seconds(3600), until isDone: (Link) -> Bool = { _ in false }
  ) -> Bool {
    let end = now + limit
    while !isDone(self) {
      let timers = sides.map(\.deadline)
      let timer = earliest(timers[0], timers[1])
      guard let next = earliest(timer, travelling.min?.at), next <= end else {
        now = end
        return isDone(self)
      }
      now = max(now, next)
      if let packet = travelling.min, packet.at <= now {
        travelling.removeMin()
        step(packet.to, .packet(packet.bytes))
      } else {
        for side in 0..<2 where timers[side].map({ $0 <= now }) ?? false { step(side, .deadline) }
      }
    }
    return true
  }

  /// A packet in transit; packets are ordered by arrival.
  private struct Packet: Comparable {
    var at: Instant
    var order: Int
    var to: Int
    var bytes: [UInt8]

    static func < (left: Packet, right: Packet) -> Bool {
      left.at != right.at ? left.at < right.at : left.order < right.order
    }
  }
}

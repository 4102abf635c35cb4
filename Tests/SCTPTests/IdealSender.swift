import Seeded

/// Simulates the throughput that RFC 9260 section 7.2 allows an all-knowing sender.
///
/// Such a sender knows that a packet is lost when three later packets are acknowledged, retransmits
/// only lost packets, and has no timeouts. Its window grows with every byte.
///
/// It shares no code with the association, so its result is an independent limit for a path.
struct IdealSender {
  /// Bytes per second, each packet's payload, and its size on the bottleneck.
  let rate: Double
  let payload = 1144.0
  let weight = 1225.0
  /// The one-way delay, the bottleneck's queue, and the random losses.
  let delay = 0.025
  let queue = 0.1
  let lossPercent = 1

  private var dice: SeededGenerator
  private var now = 0.0
  /// The window in packets, and its slow-start threshold.
  private var window = 4.0
  private var threshold = Double.infinity
  /// The number of the first packet that was sent after the window was last halved.
  private var recovered = 0
  private var next = 0
  private var highest = -1
  private var inFlight: [Int] = []
  private var free = 0.0
  /// Packets and acknowledgements in transit.
  private var arrivals: [(at: Double, number: Int)] = []
  private var acknowledgements: [(at: Double, numbers: [Int])] = []
  private var waiting: [Int] = []
  private var lastArrived = -1
  private var gapUntil = 0.0

  init(rate: Int, seed: UInt64) {
    self.rate = Double(rate)
    dice = SeededGenerator(seed: seed)
  }

  /// Returns the mean payload rate in bytes per second, after the first seconds.
  static func goodput(rate: Int, seed: UInt64) -> Double {
    var sender = IdealSender(rate: rate, seed: seed)
    let (start, end) = (5.0, 205.0)
    var packets = 0
    while sender.now < end {
      sender.send()
      if sender.step(), sender.now > start { packets += 1 }
    }
    return Double(packets) * sender.payload / (end - start)
  }

  private mutating func send() {
    while Double(inFlight.count) < window {
      let leaves = max(now, free)
      if !dice.happens(lossPercent), leaves - now <= queue {
        free = leaves + weight / rate
        arrivals.append((free + delay, next))
      }
      inFlight.append(next)
      next += 1
    }
  }

  /// Processes the next event; returns true when a packet arrived.
  private mutating func step() -> Bool {
    if let back = acknowledgements.first, back.at <= arrivals.first?.at ?? .infinity {
      acknowledgements.removeFirst()
      now = back.at
      acknowledge(back.numbers)
      return false
    }
    guard !arrivals.isEmpty else {
      // All packets in flight were lost: an all-knowing sender notices that without a timeout.
      acknowledge([])
      inFlight = []
      return false
    }
    let packet = arrivals.removeFirst()
    now = packet.at
    // After a gap every packet is acknowledged, otherwise every second packet.
    if packet.number != lastArrived + 1 { gapUntil = now + 2 * delay + max(0, free - now) }
    lastArrived = packet.number
    waiting.append(packet.number)
    if waiting.count > 1 || now < gapUntil, !dice.happens(lossPercent) {
      acknowledgements.append((now + delay, waiting))
      waiting = []
    }
    return true
  }

  private mutating func acknowledge(_ numbers: [Int]) {
    let isUsed = Double(inFlight.count) >= window
    highest = max(highest, numbers.last ?? -1)
    // The numbers are in order, and nothing is known about numbers above the highest.
    let reached = inFlight.prefix { $0 <= highest }
    let lost = reached.filter { $0 + 3 <= highest && !numbers.contains($0) }
    let open = reached.filter { $0 + 3 > highest && !numbers.contains($0) }
    inFlight.replaceSubrange(..<reached.endIndex, with: open)
    if isUsed, window > threshold {
      window += Double(numbers.count) / window
    } else if isUsed, highest >= recovered {
      window += min(2, Double(numbers.count))
    }
    if lost.contains(where: { $0 >= recovered }) {
      window = max(window / 2, 4)
      threshold = window
      recovered = next
    }
  }
}

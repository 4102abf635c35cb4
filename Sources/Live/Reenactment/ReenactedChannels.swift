import SCTP
import Wire

/// Replays the recorded sender's data channel messages, at their recorded times, over an
/// association with the live client.
///
/// Channels that the recorded sender opened, and negotiated channels, are opened again. A channel
/// that the recorded receiver opened is matched by label with one that the client opens. Messages
/// wait until their channel is open.
struct ReenactedChannels {
  private var association: SCTPAssociation
  private var outputs = Outbox<SCTPAssociation.Output>()
  private let parameters: SCTPParameters
  private var openings: [ReenactmentPlan.Channel]
  private let awaited: [ReenactmentPlan.Channel]
  private let messages: [ReenactmentPlan.Message]
  private var next = 0
  private var waiting: [ReenactmentPlan.Message] = []
  /// The new association's channels, by their numbers in the take.
  private var numbers: [Int64: DataChannelNumber] = [:]
  private let began: Instant
  private(set) var sent = 0

  /// The maximum number of rounds per call, so that an endless loop in the association ends.
  private static let stepsMaximum = 1_000

  init(_ plan: ReenactmentPlan, _ parameters: SCTPParameters, seed: [UInt8], began: Instant) {
    self.parameters = parameters
    self.began = began
    openings = plan.channels.filter { $0.isRemote || $0.options.negotiated }
    awaited = plan.channels.filter { !$0.isRemote && !$0.options.negotiated }
    messages = plan.messages
    association = SCTPAssociation(entropy: Entropy(seed: seed).stream("sctp"))
  }

  /// The time at which `advance` is due.
  var deadline: Instant? {
    var due = association.deadline
    if let opening = openings.first { due = earliest(due, began + opening.distance) }
    if next < messages.count { due = earliest(due, began + messages[next].distance) }
    return due
  }

  /// Whether a message or a channel's opening is still due.
  var isPending: Bool { next < messages.count || !openings.isEmpty }

  /// The number of messages not sent so far.
  var unsent: Int { messages.count - sent }

  /// Starts the association; like the methods below, returns the packets to send.
  mutating func begin(at now: Instant) -> [[UInt8]] {
    association.step(.start(parameters), at: now, into: &outputs)
    return settle(at: now)
  }

  /// Handles a packet from the client.
  mutating func receive(_ packet: [UInt8], at now: Instant) -> [[UInt8]] {
    association.step(.packet(packet), at: now, into: &outputs)
    return settle(at: now)
  }

  /// Runs whatever is due: timers, openings, messages.
  mutating func advance(to now: Instant) -> [[UInt8]] {
    if let due = association.deadline, due <= now {
      association.step(.deadline, at: now, into: &outputs)
    }
    while let opening = openings.first, began + opening.distance <= now {
      openings.removeFirst()
      guard association.refusal(ofOpening: opening.options) == nil else { continue }
      numbers[opening.number] = association.nextChannel
      association.step(.open(opening.options), at: now, into: &outputs)
    }
    while next < messages.count, began + messages[next].distance <= now {
      waiting.append(messages[next])
      next += 1
    }
    return settle(at: now)
  }

  /// Sends messages whose channels are open, and returns the association's packets.
  private mutating func settle(at now: Instant) -> [[UInt8]] {
    var packets: [[UInt8]] = []
    var steps = 0
    while steps < ReenactedChannels.stepsMaximum {
      steps += 1
      while let output = outputs.next() {
        switch output {
        case .packet(let bytes): packets.append(bytes)
        case .channelAnnounced(let number): adopt(number)
        default: break
        }
      }
      let ready = waiting.firstIndex { message in
        numbers[message.channel].map { association.state(of: $0) == .open } ?? false
      }
      guard let ready, let number = numbers[waiting[ready].channel] else { break }
      let message = waiting.remove(at: ready)
      guard association.refusal(ofSending: message.bytes.count, on: number) == nil else { continue }
      sent += 1
      association.step(
        .send(number, binary: message.isBinary, message.bytes), at: now, into: &outputs)
    }
    return packets
  }

  /// Finds the recorded channel for one that the client opened.
  private mutating func adopt(_ number: DataChannelNumber) {
    let label = association.options(of: number)?.label
    let recorded = awaited.first { $0.options.label == label && numbers[$0.number] == nil }
    if let recorded { numbers[recorded.number] = number }
  }
}

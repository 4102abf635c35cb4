import Peer
import SCTP
import Stats
import Wire

/// The data channels of calls between others, as both ends have them.
struct ObservedChannels {
  private struct Association {
    var transport: Int
    var peers: [UInt32]
    var follower = SCTPFollower()
    /// The number that its first channel has in its peers.
    var numbers: [Int: UInt32] = [:]
  }

  /// How many associations are followed: each may hold some megabytes of messages on their way.
  private static let associationsMaximum = 64

  private var associations: [Association] = []
  /// The places by number of the transport.
  private var places: [Int: Int] = [:]
  /// How many channels the first peer of a call has: peers of a call count alike.
  private var counts: [UInt32: UInt32] = [:]
  /// Chunks that were acknowledged and not seen, of all.
  private(set) var missed = 0

  /// Handles a packet of SCTP in the clear.
  mutating func receive(
    _ packet: [UInt8], transport: Int, from end: Int, _ peers: [UInt32], at now: Instant,
    into outbox: inout Outbox<ObserverOutput>
  ) {
    guard peers.count == 2, (0...1).contains(end) else { return }
    if places[transport] == nil {
      guard associations.count < Self.associationsMaximum else { return }
      places[transport] = associations.count
      associations.append(Association(transport: transport, peers: peers))
    }
    guard let place = places[transport] else { return }
    associations[place].peers = peers
    var events: [SCTPFollower.Event] = []
    associations[place].follower.receive(packet, from: end, into: &events)
    for event in events { report(event, place, at: now, into: &outbox) }
  }

  private mutating func report(
    _ event: SCTPFollower.Event, _ place: Int, at now: Instant,
    into outbox: inout Outbox<ObserverOutput>
  ) {
    let peers = associations[place].peers
    switch event {
    case .channel(let channel):
      let number = number(of: channel, place)
      for end in 0..<2 {
        outbox.append(
          ObserverOutput(
            .event(.dataChannel(DataChannelRecord(channel, number, end))), of: peers[end],
            at: now))
      }
    case .message(let channel, let end, let isBinary, let bytes):
      let message = DataMessage(
        channel: number(of: channel, place), isBinary: isBinary, bytes: bytes)
      outbox.append(ObserverOutput(sent: message, by: peers[end], at: now))
      outbox.append(ObserverOutput(.event(.message(message)), of: peers[1 - end], at: now))
    case .missed(let count): missed += count
    }
  }

  /// The number of a channel in its peers, which may have others on other transports.
  private mutating func number(of channel: FollowedChannel, _ place: Int) -> UInt32 {
    if let known = associations[place].numbers[channel.number] { return known }
    let first = associations[place].peers[0]
    let number = counts[first, default: 0]
    counts[first] = number &+ 1
    associations[place].numbers[channel.number] = number
    return number
  }

  /// The channels of a peer that are not closed, as its statistics have them.
  func objects(of peer: UInt32, at now: Instant, _ wallClock: WallClock) -> [StatsObject] {
    var objects: [StatsObject] = []
    for association in associations {
      guard let end = association.peers.firstIndex(of: peer) else { continue }
      for channel in association.follower.channels where channel.state != .closed {
        guard let number = association.numbers[channel.number] else { continue }
        var stats = StatsBuilder(
          id: "D\(peer)-\(number)", type: "data-channel",
          timestamp: wallClock.milliseconds(at: now))
        stats.set("label", channel.options.label)
        stats.set("protocol", channel.options.protocol)
        stats.set("dataChannelIdentifier", channel.options.id)
        stats.set("state", channel.state.rawValue)
        stats.set("messagesSent", channel.messages[end])
        stats.set("bytesSent", channel.bytes[end])
        stats.set("messagesReceived", channel.messages[1 - end])
        stats.set("bytesReceived", channel.bytes[1 - end])
        objects.append(stats.build())
      }
    }
    return objects
  }
}

extension DataChannelRecord {
  /// A channel as one of its ends has it.
  fileprivate init(_ channel: FollowedChannel, _ number: UInt32, _ end: Int) {
    var counters = DataChannelCounters()
    counters.messagesSent = channel.messages[end]
    counters.bytesSent = channel.bytes[end]
    counters.messagesReceived = channel.messages[1 - end]
    counters.bytesReceived = channel.bytes[1 - end]
    self.init(
      channel: number, isRemote: channel.opener.map { $0 != end } ?? false,
      options: channel.options, state: channel.state, counters: counters)
  }
}

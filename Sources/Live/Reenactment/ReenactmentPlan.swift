import Export
import Peer
import RTP
import Replay
package import SCTP
package import SDP
package import Tape
package import Wire

/// Everything that one end of a recorded call received, packet by packet, so that a live client can
/// receive the same with the same timing.
///
/// Lost packets are not included, and late ones keep their times. RTP and RTCP are decrypted: by
/// replaying the take of an endpoint, or by the observer of a call.
package struct ReenactmentPlan: Sendable {
  /// The format of packets with one payload type.
  package struct Format: Hashable, Sendable {
    package var payloadType: UInt8
    /// The encoding name in lower case, such as `vp8` or `rtx`.
    package var name: String
    package var clockRate: UInt32
    package var channels: UInt8?
    /// The fmtp parameters; empty if there are none.
    package var parameters = ""

    /// Encodings that repair or accompany media.
    private static let companions: Set<String> = [
      "rtx", "red", "ulpfec", "flexfec", "flexfec-03", "telephone-event", "cn",
    ]

    package var isMedia: Bool { !Format.companions.contains(name) }
    package var isRetransmission: Bool { name == "rtx" }
    package var isRedundancy: Bool { name == "red" }
    package var isCorrection: Bool { name == "ulpfec" || name.hasPrefix("flexfec") }

    /// The name in messages, as in `H264 (profile-level-id=42e01f)`.
    package var description: String {
      name.uppercased() + (parameters.isEmpty || !isMedia ? "" : " (\(parameters))")
    }
  }

  /// The packets with one SSRC.
  package struct Stream: Hashable, Sendable {
    package var ssrc: UInt32
    /// The index of the stream's section.
    package var section: Int
    /// The payload types of the stream's packets, and of redundant blocks in them, in order of
    /// appearance.
    package var payloadTypes: [UInt8] = []
    /// The stream whose packets this one retransmits (RFC 4588).
    package var repairs: UInt32?
    /// The RID if the stream is a simulcast layer.
    package var layer: String?
    package var packets = 0
  }

  /// An m-section of the recorded call with received packets.
  package struct Section: Hashable, Sendable {
    package var kind: MediaKind
    package var mid: String
    /// The negotiated formats, in order of preference.
    package var formats: [Format] = []
    /// The URIs of header extensions, by id.
    package var extensions: [UInt8: String] = [:]
    package var feedback: [RTCPFeedback] = []
    /// Whether the recorded sender could initially also receive media in this section.
    package var isTwoWay = false
    /// Whether the recorded sender initially sent media in this section.
    package var sendsFirst = true
    /// The SSRCs that the sender's descriptions announce, and the original SSRC of each repair
    /// SSRC.
    package var announced: [UInt32] = []
    package var repairs: [UInt32: UInt32] = [:]

    /// Returns the format with the given payload type; nil if there is none.
    package func format(_ type: UInt8) -> Format? { formats.first { $0.payloadType == type } }
  }

  /// A received packet with its time.
  package struct Packet: Hashable, Sendable {
    /// The time since the recorded receiver was connected.
    package var distance: Interval
    package var isRTCP: Bool
    package var bytes: [UInt8]
  }

  /// A data channel of the recorded call, to be created again.
  package struct Channel: Hashable, Sendable {
    /// The channel's number in the take.
    package var number: Int64
    /// The time from the recorded receiver's connection to the channel's creation.
    package var distance: Interval
    /// Whether the recorded sender created the channel.
    package var isRemote: Bool
    package var options: DataChannelInit
  }

  /// A message received over a data channel.
  package struct Message: Hashable, Sendable {
    package var distance: Interval
    /// The number of the channel in the take.
    package var channel: Int64
    package var isBinary: Bool
    package var bytes: [UInt8]
  }

  /// The take's path as the user named it.
  package let take: String
  /// The recorded receiver's peer number.
  package let peer: Int64
  package let label: String
  package var sections: [Section] = []
  package var streams: [Stream] = []
  /// The received packets, in order of time.
  package var packets: [Packet] = []
  package var channels: [Channel] = []
  package var messages: [Message] = []
  /// The later descriptions of the recorded sender, in order of time.
  package var changes: [Change] = []
  /// The round trips that the recorded receiver measured, in order of time.
  package var roundTrips: [RoundTrip] = []
  /// The delays of the recorded sender's trickled candidates after its first description.
  package var candidates: [Interval] = []
  /// Media packets that another endpoint of the take sent but the receiver did not receive.
  package var spares: [[UInt8]] = []
  /// The number of packets with unknown payload types, which are not played.
  package var unexplained = 0

  /// The time from the connected state to the last packet or message.
  package var duration: Interval {
    max(packets.last?.distance ?? .zero, messages.last?.distance ?? .zero)
  }

  /// The number of RTP packets.
  package var mediaPackets: Int { packets.count { !$0.isRTCP } }

  /// Reads everything that a peer of a take received.
  ///
  /// - Parameters:
  ///   - peer: the recorded receiver; nil for the only peer that received media.
  ///   - hasSpares: whether to look in the take's other peers for packets that were lost.
  package init(
    take: String, peer: Int64?, hasSpares: Bool = false,
    progress: @escaping (_ at: Instant, _ end: Instant) -> Void = { _, _ in }
  ) throws(TapeError) {
    let facts = try ReceiverFacts(take: take, peer: peer)
    self.take = take
    self.peer = facts.peer
    label = facts.label
    var sorter = PacketSorter(facts)
    var finder = RoundTripFinder()
    let replay = try FollowedReplay(take: take, only: facts.isEndpoint ? facts.peer : nil)
    let report = try ReenactmentPlan.follow(replay, progress) { bytes, kind, isSent, ends, at in
      // The replay of an endpoint states the direction; an observed end is known by its address.
      let isOwn =
        facts.isEndpoint
        ? isSent : facts.receives(from: ends.destination, to: ends.source)
      if isOwn, kind == .rtcp { finder.add(sent: bytes, at: at) }
      guard !isSent, facts.receives(from: ends.source, to: ends.destination) else { return }
      if kind == .rtcp { finder.add(received: bytes, at: at) }
      sorter.add(bytes, isRTCP: kind == .rtcp, at: at)
    }
    guard case .identical = report.verdict else {
      throw TapeError(
        path: take, place: "step \(report.steps + 1)",
        reason: "the replay differs there, so later packets cannot be decrypted; "
          + "retake replay shows the difference")
    }
    (sections, streams, packets, unexplained) = sorter.finished()
    guard mediaPackets > 0 else {
      throw TapeError(
        path: take, place: "peer \(facts.peer)",
        reason: "no received media could be decrypted, so there is nothing to send; choose another "
          + "--peer, or import the capture again with its keys")
    }
    (channels, messages) = (facts.channels, facts.messages)
    candidates = facts.candidates
    roundTrips = finder.roundTrips(from: facts.connected ?? .zero)
    findChanges(facts)
    if hasSpares, facts.isEndpoint { try findSpares(beside: facts, progress) }
  }

  /// Collects packets that the take's other endpoints sent but the receiver never got.
  private mutating func findSpares(
    beside facts: ReceiverFacts, _ progress: @escaping (Instant, Instant) -> Void
  ) throws(TapeError) {
    let known = Set(streams.map(\.ssrc))
    let received = Set(packets.lazy.filter { !$0.isRTCP }.compactMap { Self.key(of: $0.bytes) })
    for other in facts.otherEndpoints {
      var found: [[UInt8]] = []
      let replay = try FollowedReplay(take: take, only: other)
      _ = try ReenactmentPlan.follow(replay, progress) { bytes, kind, isSent, _, _ in
        guard isSent, kind == .rtp, let key = Self.key(of: bytes),
          known.contains(UInt32(key >> 16)), !received.contains(key)
        else { return }
        found.append(bytes)
      }
      spares += found
    }
  }

  /// Returns a packet's SSRC and sequence number as one number.
  package static func key(of bytes: [UInt8]) -> UInt64? {
    guard let header = try? RTPHeader(parsing: bytes.span.bytes) else { return nil }
    return key(header.ssrc, header.sequence)
  }

  package static func key(_ ssrc: UInt32, _ sequence: UInt16) -> UInt64 {
    UInt64(ssrc) << 16 | UInt64(sequence)
  }

  private typealias Follower = (
    [UInt8], ClearKind, _ isSent: Bool, (source: String, destination: String), Instant
  ) -> Void

  private enum ClearKind { case rtp, rtcp }

  private static func follow(
    _ replay: FollowedReplay, _ progress: (Instant, Instant) -> Void, _ follower: @escaping Follower
  ) throws(TapeError) -> ReplayReport {
    try replay.run(progress: progress) { sight, source, destination, at in
      guard case .clear(let bytes, let kind, let isSent) = sight else { return }
      let clear: ClearKind
      switch kind {
      case .rtp: clear = .rtp
      case .rtcp: clear = .rtcp
      case .sctp: return
      }
      follower(bytes, clear, isSent, ("\(source)", "\(destination)"), at)
    }
  }
}

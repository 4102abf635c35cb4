import Glibc
package import Live
package import Peer
import RTP
import SCTP
import Secure
import Synchronization
import Tape
package import Wire

/// How the live client's NACKs are answered.
package enum RepairRule: String, CaseIterable, Sendable {
  /// Only with the recorded retransmissions, at their recorded times.
  case asRecorded = "as-recorded"
  /// Immediately with the requested packet, if the take has it.
  case honest
}

/// Sends a plan's packets to a live client on a separate thread, with their recorded timing,
/// starting once the client is connected; also answers the client's requests.
package final class ReenactmentPlayer: Sendable {
  /// The numbers of packets and messages that were sent, received and requested.
  package struct Tally: Hashable, Sendable {
    /// RTP packets sent at their recorded times.
    package var media = 0
    package var reports = 0
    /// RTP packets of the plan that were omitted.
    package var leftOut = 0
    /// Retransmissions that the client requested in NACKs; repeated requests count again.
    package var requested = 0
    /// Requested packets that were sent again.
    package var repaired = 0
    /// Key frame requests, which a recording cannot fulfil.
    package var keyframeRequests = 0
    /// RTP packets received from the client.
    package var received = 0
    /// Data channel messages that were sent, and those whose channel never opened.
    package var messages = 0
    package var unsentMessages = 0
  }

  private struct State {
    var send: (@Sendable (RelayedPacket) -> Void)?
    var rewriter: PacketRewriter?
    /// The recorded SSRC of each new SSRC.
    var recorded: [UInt32: UInt32] = [:]
    var began: Instant?
    var isOver = false
    var tally = Tally()
    /// Each sent RTP packet's due time, in sending order; nil for a repair, which is due
    /// immediately.
    var due: [Instant?] = []
    var data: Agreement.Data?
    var isDTLSClient = false
    var channels: ReenactedChannels?
    var answers = ReportAnswers()
    /// The sender SSRC in the answers to the client's reports.
    var sender: UInt32 = 1
  }

  private let plan: ReenactmentPlan
  private let rule: RepairRule
  private let clock: TakeClock
  private let state = Mutex(State())
  /// The packets that can be sent again, by SSRC and sequence number.
  private let reserve: [UInt64: [UInt8]]
  /// Yields after the last packet, or when the player is stopped.
  package let ended: AsyncStream<Void>
  private let end: AsyncStream<Void>.Continuation

  package init(_ plan: ReenactmentPlan, repair rule: RepairRule, clock: TakeClock) {
    self.plan = plan
    self.rule = rule
    self.clock = clock
    reserve = rule == .honest ? plan.reserve : [:]
    (ended, end) = AsyncStream<Void>.makeStream()
  }

  /// The counts so far.
  package var tally: Tally {
    state.withLock { state in
      var tally = state.tally
      tally.messages = state.channels?.sent ?? 0
      tally.unsentMessages = state.channels?.unsent ?? 0
      return tally
    }
  }

  /// Each sent RTP packet's due time, in sending order; nil for repairs.
  package var dueInstants: [Instant?] { state.withLock { $0.due } }

  /// Whether there is an agreement with the client.
  package var isReady: Bool { state.withLock { $0.rewriter != nil } }

  package var hasBegun: Bool { began != nil }

  /// The start of the plan's time; nil before the client is connected.
  package var began: Instant? { state.withLock { $0.began } }

  /// Whether sending has ended.
  package var isOver: Bool { state.withLock { $0.isOver } }

  // MARK: The call

  /// Sets the agreement with the client, and the closure that sends packets to it.
  package func play(
    _ agreement: Agreement, sending send: @escaping @Sendable (RelayedPacket) -> Void
  ) {
    state.withLock { state in
      state.send = send
      state.rewriter = PacketRewriter(plan, agreement, leavesRepairsOut: rule == .honest)
      state.data = agreement.data
      state.sender = agreement.ssrcs.values.min() ?? 1
      state.recorded = Dictionary(agreement.ssrcs.map { ($0.value, $0.key) }) { first, _ in first }
    }
  }

  /// Sets the local DTLS role, which determines the stream ids of data channels.
  package func settle(isDTLSClient: Bool) { state.withLock { $0.isDTLSClient = isDTLSClient } }

  /// Begins when the client is connected, and stops when the connection ends.
  package func follow(_ states: PeerConnectionStates) {
    if states.connection == .failed || states.connection == .closed || states.dtls == .closed {
      return stop()
    }
    guard states.connection == .connected else { return }
    let begins = state.withLock { state in
      guard state.began == nil, !state.isOver, state.rewriter != nil else { return false }
      state.began = clock.now + Self.readiness
      return true
    }
    if begins { startWorker(named: "reenact") { [self] in run() } }
  }

  /// The time between `connected` and the first packet.
  ///
  /// The client's DTLS handshake ends half a round trip after the local one, and only then do
  /// browsers set up their receivers, which would miss earlier packets, such as those of the first
  /// key frame.
  private static let readiness = Interval.milliseconds(250)

  package func stop() {
    state.withLock { $0.isOver = true }
    end.yield()
    end.finish()
  }

  // MARK: The thread

  private func run() {
    guard let began = state.withLock({ $0.began }) else { return }
    state.withLock { state in
      guard let data = state.data else { return }
      var channels = ReenactedChannels(
        plan, data.parameters(isClient: state.isDTLSClient), seed: drawSeed(), began: began)
      send(channels.begin(at: clock.now), over: data, state.send)
      state.channels = channels
    }
    var next = 0
    var isComplete = false
    while true {
      let due = next < plan.packets.count ? began + plan.packets[next].distance : nil
      let (other, isPending) = state.withLock { state in
        (
          earliest(state.channels?.deadline, state.answers.deadline), state.channels?.isPending
        )
      }
      if due == nil, isPending != true, !isComplete {
        isComplete = true
        end.yield()
      }
      // The last message still has to be acknowledged.
      guard let wake = earliest(due, other) ?? (isPending == nil ? nil : clock.now + .seconds(1))
      else { return stop() }
      guard wait(until: wake) else { return }
      state.withLock { state in
        if let due, due <= clock.now {
          send(plan.packets[next], due: due, &state)
          next += 1
        }
        advanceChannels(&state)
        for (bytes, transport) in state.answers.advance(to: clock.now, from: state.sender) {
          state.send?(RelayedPacket(kind: .rtcp, transport: transport, bytes: bytes))
        }
      }
    }
  }

  private func advanceChannels(_ state: inout State) {
    guard let due = state.channels?.deadline, due <= clock.now, let data = state.data else {
      return
    }
    send(state.channels?.advance(to: clock.now) ?? [], over: data, state.send)
  }

  private func send(
    _ packets: [[UInt8]], over data: Agreement.Data, _ send: (@Sendable (RelayedPacket) -> Void)?
  ) {
    for bytes in packets {
      send?(RelayedPacket(kind: .sctp, transport: data.transport, bytes: bytes))
    }
  }

  /// The maximum time between checks for a stop, in nanoseconds.
  private static let sleepMaximum: Int64 = 20_000_000

  /// Sleeps until an instant; returns false if the player was stopped.
  private func wait(until due: Instant) -> Bool {
    while true {
      if state.withLock({ $0.isOver }) { return false }
      let left = (due - clock.now).nanoseconds
      guard left > 0 else { return true }
      var pause = timespec(
        tv_sec: 0, tv_nsec: Int(min(left, ReenactmentPlayer.sleepMaximum)))
      clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nil)
    }
  }

  private func send(
    _ packet: ReenactmentPlan.Packet, due: Instant, _ state: inout State
  ) {
    guard let rewritten = state.rewriter?.rewrite(packet) else {
      if !packet.isRTCP { state.tally.leftOut += 1 }
      return
    }
    if packet.isRTCP {
      state.tally.reports += 1
    } else {
      state.tally.media += 1
      state.due.append(due)
    }
    // Send under the lock, so that packets are sent in the order of `due`.
    state.send?(
      RelayedPacket(
        kind: packet.isRTCP ? .rtcp : .rtp, transport: rewritten.transport,
        bytes: rewritten.bytes))
  }

  // MARK: The client's packets

  /// Handles a packet from the client.
  package func receive(_ packet: RelayedPacket) {
    switch packet.kind {
    case .rtp:
      state.withLock { state in
        state.tally.received += 1
        state.answers.receive(media: packet.bytes)
      }
    case .rtcp:
      for report in RTCPCompound(parsing: packet.bytes.span.bytes).packets {
        receive(report, over: packet.transport)
      }
    case .sctp:
      state.withLock { state in
        guard let data = state.data else { return }
        send(state.channels?.receive(packet.bytes, at: clock.now) ?? [], over: data, state.send)
      }
    }
  }

  private func receive(_ report: RTCPPacket, over transport: Int) {
    switch report {
    case .senderReport, .extendedReport:
      state.withLock { state in
        let now = clock.now
        guard let began = state.began, let first = plan.roundTrips.first else { return }
        state.answers.receive(
          report, over: transport, at: now, notBefore: began + first.distance,
          roundTrip: plan.roundTrip(at: now - began) ?? first.value)
      }
    case .genericNACK(let request):
      state.withLock { state in
        for sequence in request.sequences { repair(request.mediaSSRC, sequence, &state) }
      }
    case .pictureLoss: state.withLock { $0.tally.keyframeRequests += 1 }
    case .fullIntraRequest(let request):
      state.withLock { $0.tally.keyframeRequests += request.entries.count }
    default: break
    }
  }

  private func repair(_ ssrc: UInt32, _ sequence: UInt16, _ state: inout State) {
    state.tally.requested += 1
    guard let recorded = state.recorded[ssrc],
      let bytes = reserve[ReenactmentPlan.key(recorded, sequence)],
      let again = state.rewriter?.repeated(bytes)
    else { return }
    state.tally.repaired += 1
    state.due.append(nil)
    state.send?(
      RelayedPacket(kind: .rtp, transport: again.transport, bytes: again.bytes))
  }
}

extension ReenactmentPlan {
  /// All media packets that the take has, by SSRC and sequence number: received ones, originals of
  /// received retransmissions, and those that only another peer has.
  var reserve: [UInt64: [UInt8]] {
    var reserve: [UInt64: [UInt8]] = [:]
    let sources = Dictionary(streams.map { ($0.ssrc, $0) }) { first, _ in first }
    for packet in packets where !packet.isRTCP {
      guard let header = try? RTPHeader(parsing: packet.bytes.span.bytes),
        let stream = sources[header.ssrc]
      else { continue }
      if stream.repairs == nil {
        reserve[ReenactmentPlan.key(header.ssrc, header.sequence)] = packet.bytes
      } else if let original = original(of: packet.bytes, header, stream),
        let key = ReenactmentPlan.key(of: original), reserve[key] == nil
      {
        reserve[key] = original
      }
    }
    for bytes in spares {
      guard let key = ReenactmentPlan.key(of: bytes), reserve[key] == nil else { continue }
      reserve[key] = bytes
    }
    return reserve
  }

  /// Returns the packet that a retransmission repeats (RFC 4588 section 4); nil if it is only
  /// padding.
  private func original(of bytes: [UInt8], _ header: RTPHeader, _ stream: Stream) -> [UInt8]? {
    guard let source = stream.repairs, header.payload.count > 2 else { return nil }
    let type =
      sections[stream.section].format(header.payloadType)?.repeatedType
      ?? formatsInUse(ofSection: stream.section).first(where: \.isMedia)?.payloadType
    guard let type else { return nil }
    var original = bytes
    original[1] = bytes[1] & 0x80 | type & 0x7f
    let place = header.payload.lowerBound
    original[2] = bytes[place]
    original[3] = bytes[place + 1]
    for index in 0..<4 {
      original[8 + index] = UInt8(truncatingIfNeeded: source >> (24 - 8 * UInt32(index)))
    }
    original.removeSubrange(place..<place + 2)
    return original
  }
}

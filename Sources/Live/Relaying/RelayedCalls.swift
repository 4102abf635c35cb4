import ICE
import JSEP
package import Live
import Peer
package import SDP
import Secure
import Wire

/// The client's or the server's end of a relayed call.
package enum RelaySide: Int, Sendable {
  /// The client that connects to the relay's address, such as a page.
  case near
  /// The application's server, which the relay connects to.
  case far

  package var other: RelaySide { self == .near ? .far : .near }
}

/// The two legs of a call through a relay.
package struct RelayLegs: Sendable {
  /// The call's number, counted from 1.
  package var number: Int
  package var near: PeerConnection
  package var far: PeerConnection

  /// Returns the leg towards an end.
  package func leg(_ side: RelaySide) -> PeerConnection { side == .near ? near : far }
}

/// A relay's calls, which are recognised by their descriptions.
///
/// A description with known ICE credentials, or with another version of a known `o=` line (RFC 8866
/// section 5.2), belongs to that connection; any other offer begins a call. An answer belongs to an
/// unanswered offer with the same sections that was forwarded to the answering end: preferably to
/// one on the same channel, then to one whose connection is known or has no description from this
/// end, and finally to the oldest.
package actor RelayedCalls {
  /// The number of the WebSocket or HTTP exchange that carries a message.
  package typealias Channel = Int

  final class Call {
    let legs: RelayLegs
    let path: RelayPath
    /// The last description from each end.
    var said: [RelaySide: Said] = [:]
    /// The last description forwarded to each end, and its original; the original is nil if the
    /// stand-in made the description.
    var shown: [RelaySide: (description: SessionDescription, original: String?)] = [:]
    /// The server's message in whose form the stand-in can offer; nil if there is none.
    var form: MessageForm?
    /// Whether the client has not answered an offer of the stand-in.
    var awaitsAnswer = false
    /// The ICE username fragments that each end has used.
    var fragments: [RelaySide: Set<String>] = [:]
    /// The side that received an offer and has not answered.
    var pending: RelaySide?
    var channel: Channel
    /// The path of the call's session in WHIP or WHEP; nil if no response has named one.
    var session: String?
    /// The ICE restart that awaits the other end's fragment.
    var restart: Restart?
    /// Whether a message is being processed, in which case the call's next messages wait.
    var isBusy = false
    var waiting: [CheckedContinuation<Void, Never>] = []

    init(_ legs: RelayLegs, _ path: RelayPath, _ channel: Channel) {
      self.legs = legs
      self.path = path
      self.channel = channel
    }

    func record(_ said: Said, from side: RelaySide) {
      self.said[side] = said
      guard fragments[side, default: []].count < RelayedCalls.fragmentsMaximum else { return }
      fragments[side, default: []].formUnion(said.fragments)
    }
  }

  /// A description that one of the ends sent.
  struct Said {
    var document: SDPDocument
    var text: String

    var origin: String { "\(document.origin.username) \(document.origin.sessionID)" }
    var version: String { "\(document.origin.sessionVersion)" }
    /// The sections' kinds and MIDs, which an answer must repeat (RFC 9429 section 5.3.1).
    var sections: [String] { document.sections.map { "\($0.kind) \($0.mid ?? "")" } }
    var fragments: Set<String> {
      Set(
        ([document.iceUsernameFragment] + document.sections.map(\.iceUsernameFragment))
          .compactMap { $0 })
    }
  }

  /// Callbacks that report forwarded packets and descriptions, and that send the stand-in's offers.
  struct Events: Sendable {
    /// Called with a decrypted packet that is forwarded, the side that sent it, and the time.
    var packet: @Sendable (Int, RelayedPacket, RelaySide, Instant) -> Void
    /// Called with a description, as received or as the stand-in replaced or made it, and the side
    /// that it comes from.
    var description: @Sendable (Int, SDPDocument, String, RelaySide) -> Void
    /// Sends the client an offer in the form of a message from the server; returns whether it was
    /// sent.
    var offer: @Sendable (RelayLegs, SessionDescription, MessageForm) async -> Bool
  }

  private let session: Session
  private let configurations: (near: PeerConfiguration, far: PeerConfiguration)
  private let maximum: Int
  /// The time limits for a call to connect, and for a failed leg to recover.
  private let limits: (connecting: Duration, failed: Duration)
  private let standIn: (any FarEndStandIn)?
  let events: Events
  private(set) var calls: [Call] = []
  private var count = 0
  private var faults: [RelayFault] = []

  /// The maximum number of calls in a take: higher peer numbers belong to observed ends.
  static let countMaximum = 5000
  /// The maximum number of username fragments to remember per end.
  static let fragmentsMaximum = 1000

  init(
    session: Session, near: PeerConfiguration, far: PeerConfiguration, maximum: Int,
    connectingWithin limit: Duration, failedFor failed: Duration,
    standIn: (any FarEndStandIn)? = nil, events: Events
  ) {
    self.session = session
    configurations = (near, far)
    self.maximum = maximum
    limits = (limit, failed)
    self.standIn = standIn
    self.events = events
  }

  /// The number of calls so far.
  package var callCount: Int { count }

  /// The number of calls that have not ended.
  package var openCount: Int {
    calls.filter { $0.legs.near.connectionState != .closed }.count
  }

  // MARK: Descriptions

  /// Applies a description from one side, and returns the one to forward to the other side.
  ///
  /// - Parameter isRepeatable: whether the message has a form in which the stand-in could offer.
  package func pass(
    _ type: SDPType?, _ sdp: String, from side: RelaySide, on channel: Channel,
    isRepeatable: Bool = false
  ) async throws(SignalingRefusal) -> (text: String, legs: RelayLegs) {
    let document: SDPDocument
    do throws(SDPError) {
      document = try SDPDocument(parsing: sdp)
    } catch {
      throw SignalingRefusal("a description cannot be read: \(error.description)")
    }
    if let echo = echoed(sdp, from: side, on: channel) { return echo }
    let said = Said(document: document, text: sdp)
    let (call, type) = try call(for: said, type, from: side, on: channel)
    if side == .far, type == .offer { await settleOffer(of: call) }
    await enter(call)
    defer { leave(call) }
    if let known = call.said[side], known.text == sdp, let shown = call.shown[side.other],
      shown.original == sdp
    {
      return (shown.description.sdp, call.legs)
    }
    call.channel = channel
    call.record(said, from: side)
    let description = SessionDescription(type: type, sdp: sdp)
    let (forwarded, text) = replaced(
      document, type, from: side, in: call, isRepeatable: isRepeatable)
    call.path.learn(forwarded)
    events.description(call.legs.number, forwarded, text ?? sdp, side)
    if side == .near, type == .answer {
      // Notify the stand-in first: the leg may be connected as soon as it has the answer.
      standIn?.observe(answer: document, in: call.legs.number)
      standIn?.settle(isDTLSClient: document.firstSetup == .passive, in: call.legs.number)
    }
    do throws(PeerError) {
      try await call.legs.leg(side).setRemoteDescription(description)
      let shown = try await call.legs.leg(side.other).show(
        SessionDescription(type: type, sdp: text ?? sdp))
      if side == .far, type == .answer, let shown = try? SDPDocument(parsing: shown.sdp) {
        standIn?.settle(isDTLSClient: shown.firstSetup == .active, in: call.legs.number)
      }
      call.shown[side.other] = (shown, sdp)
      switch type {
      case .offer: call.pending = side.other
      case .answer: call.pending = nil
      default: break
      }
      return (shown.sdp, call.legs)
    } catch {
      throw SignalingRefusal("the relay cannot carry a description: \(error.message)")
    }
  }

  /// Returns the description to forward, with its text if the stand-in replaces the server's.
  private func replaced(
    _ document: SDPDocument, _ type: SDPType, from side: RelaySide, in call: Call,
    isRepeatable: Bool
  ) -> (SDPDocument, text: String?) {
    guard let standIn, side == .far, type != .rollback else { return (document, nil) }
    let offer = type == .offer ? nil : call.said[.near]?.document
    let (number, path, clock, seen) = (
      call.legs.number, call.path, session.clock, events.packet
    )
    let send: @Sendable (RelayedPacket) -> Void = { [near = call.legs.near] packet in
      path.pass(packet, from: .far, at: clock.now) { packet, _ in
        near.send(packet)
        seen(number, packet, .far, clock.now)
      }
    }
    var client = StandInClient(send: send)
    if isRepeatable || call.form != nil {
      client.offer = { [weak self] document in
        await self?.offer(document, in: number) ?? false
      }
    }
    let replacement = standIn.replace(document, answering: offer, in: call.legs, to: client)
    return replacement.map { ($0, $0.text) } ?? (document, nil)
  }

  // MARK: Offers of the stand-in

  /// Remembers a message from the server in whose form the stand-in can offer: the last offer, or
  /// the last answer if there was no offer.
  func remember(_ form: MessageForm, of number: Int) {
    guard let call = calls.last(where: { $0.legs.number == number }) else { return }
    var form = form
    form.isOffer = call.shown[.near]?.description.type == .offer
    if call.form?.isOffer != true || form.isOffer { call.form = form }
  }

  /// Sends the client an offer of the stand-in.
  ///
  /// - Returns: whether it was sent; false also while another offer is not answered.
  private func offer(_ document: SDPDocument, in number: Int) async -> Bool {
    guard let call = calls.last(where: { $0.legs.number == number }) else { return false }
    await enter(call)
    defer { leave(call) }
    guard let form = call.form, call.pending == nil, !call.awaitsAnswer else { return false }
    let text = document.text
    guard
      let shown = try? await call.legs.near.show(SessionDescription(type: .offer, sdp: text))
    else { return false }
    call.path.learn(document)
    events.description(number, document, text, .far)
    call.shown[.near] = (shown, nil)
    call.pending = .near
    call.awaitsAnswer = true
    let isSent = await events.offer(call.legs, shown, form)
    if !isSent { (call.pending, call.awaitsAnswer) = (nil, false) }
    return isSent
  }

  /// Applies a client's answer to an offer of the stand-in.
  ///
  /// - Returns: the call's legs; nil if the description is for the server.
  func accept(
    _ type: SDPType?, _ sdp: String
  ) async throws(SignalingRefusal) -> RelayLegs? {
    guard calls.contains(where: \.awaitsAnswer), let document = try? SDPDocument(parsing: sdp),
      type == .answer || type == nil && document.firstSetup != .actpass
    else { return nil }
    let said = Said(document: document, text: sdp)
    guard let call = calls.last(where: { $0.awaitsAnswer && isKnown(said, in: $0, .near) }) else {
      return nil
    }
    await enter(call)
    defer { leave(call) }
    guard call.awaitsAnswer else { return nil }
    call.awaitsAnswer = false
    if call.pending == .near { call.pending = nil }
    call.record(said, from: .near)
    events.description(call.legs.number, document, sdp, .near)
    standIn?.observe(answer: document, in: call.legs.number)
    do throws(PeerError) {
      try await call.legs.near.setRemoteDescription(SessionDescription(type: .answer, sdp: sdp))
    } catch {
      throw SignalingRefusal("the relay cannot carry a description: \(error.message)")
    }
    return call.legs
  }

  /// Waits until the client has answered an offer of the stand-in, or the time limit has passed.
  ///
  /// After a further offer, it would be unclear to which of the two an answer belongs.
  private func settleOffer(of call: Call) async {
    for _ in 0..<RelayedCalls.answerChecks where call.awaitsAnswer {
      try? await Task.sleep(for: RelayedCalls.answerCheck)
    }
    call.awaitsAnswer = false
  }

  /// The interval of checks for an answer to a stand-in's offer, and their maximum number.
  private static let answerCheck = Duration.milliseconds(20)
  private static let answerChecks = 250

  // MARK: Known descriptions

  /// Returns the original of a description that a side received and sends back unchanged.
  ///
  /// On another channel it is not an echo, but an offer to another client of the relay.
  private func echoed(
    _ sdp: String, from side: RelaySide, on channel: Channel
  ) -> (text: String, legs: RelayLegs)? {
    for call in calls.reversed() where call.channel == channel {
      if let shown = call.shown[side], shown.description.sdp == sdp {
        return shown.original.map { ($0, call.legs) }
      }
    }
    return nil
  }

  /// Returns the call that a description belongs to, or begins, and the description's type.
  private func call(
    for said: Said, _ type: SDPType?, from side: RelaySide, on channel: Channel
  ) throws(SignalingRefusal) -> (Call, SDPType) {
    let open = calls.filter { call in
      call.pending == side && call.said[side.other].map { $0.sections == said.sections } ?? false
    }
    let answered =
      open.last { $0.channel == channel } ?? open.first { isKnown(said, in: $0, side) }
      ?? open.first { $0.said[side] == nil } ?? open.first
    let known = calls.last { isKnown(said, in: $0, side) }
    // Without a stated type, a description from a side with an unanswered offer is the answer.
    let type = type ?? (answered == nil ? .offer : .answer)
    if type != .offer {
      guard let call = answered ?? known else {
        throw SignalingRefusal("an answer arrived without an offer")
      }
      return (call, type)
    }
    if let known { return (known, type) }
    return (try begin(on: channel), type)
  }

  /// Returns whether a description belongs to a connection that is already known.
  private func isKnown(_ said: Said, in call: Call, _ side: RelaySide) -> Bool {
    if call.fragments[side]?.isDisjoint(with: said.fragments) == false { return true }
    guard let before = call.said[side] else { return false }
    // Some servers use the same origin for all sessions, but then the version is the same as well.
    return before.origin == said.origin && before.version != said.version
      && !said.document.origin.sessionID.description.allSatisfy { $0 == "0" }
  }

  // MARK: Beginning and end

  private func begin(on channel: Channel) throws(SignalingRefusal) -> Call {
    calls.removeAll { $0.legs.near.connectionState == .closed }
    guard calls.count < maximum else {
      throw SignalingRefusal(
        "the relay already has its maximum of \(maximum) calls; try again later")
    }
    guard count < RelayedCalls.countMaximum else {
      throw SignalingRefusal(
        "the take has \(count) calls and cannot hold more: begin another recording")
    }
    count += 1
    let (number, seen, path, clock) = (count, events.packet, RelayPath(), session.clock)
    let standIn = standIn
    let pair = session.makeRelay(
      labels: ("near \(number)", "far \(number)"), near: configurations.near,
      far: configurations.far
    ) { packet, isFromFar, now, send in
      let side: RelaySide = isFromFar ? .far : .near
      guard let packet = standIn.map({ $0.pass(packet, from: side, in: number) }) ?? packet else {
        return
      }
      path.pass(packet, from: side, at: now) { packet, isHeld in
        send(packet)
        seen(number, packet, side, isHeld ? clock.now : now)
      }
    }
    let legs = RelayLegs(number: number, near: pair.0, far: pair.1)
    let call = Call(legs, path, channel)
    calls.append(call)
    if !faults.isEmpty { set(faults, in: call) }
    watch(legs)
    return call
  }

  /// Sets the faults for all calls from now on, and records them with both legs' signaling.
  package func set(_ faults: [RelayFault]) {
    guard faults != self.faults else { return }
    self.faults = faults
    for call in calls { set(faults, in: call) }
  }

  private func set(_ faults: [RelayFault], in call: Call) {
    call.path.set(faults)
    var names: [String] = []
    for fault in faults where !names.contains(fault.description) { names.append(fault.description) }
    for leg in [call.legs.near, call.legs.far] {
      leg.recordSignaling(
        SignalingMessage(
          isInbound: true, transport: "relay", type: "fault",
          message: names.joined(separator: "\n")))
    }
  }

  /// Ends both legs when one has ended or stays failed, or when the near leg does not connect in
  /// time.
  private nonisolated func watch(_ legs: RelayLegs) {
    let (limits, standIn) = (limits, standIn)
    if let standIn {
      Task {
        for await states in legs.near.stateChanges { standIn.follow(states, in: legs.number) }
      }
    }
    for (one, other) in [(legs.near, legs.far), (legs.far, legs.near)] {
      Task {
        var failure: Task<Void, Never>?
        for await states in one.stateChanges {
          if states.connection == .closed || states.dtls == .closed { break }
          guard states.connection == .failed else {
            failure?.cancel()
            failure = nil
            continue
          }
          // An ICE restart may still recover the leg, as it would recover the call without a relay.
          guard failure == nil else { continue }
          failure = Task {
            guard (try? await Task.sleep(for: limits.failed)) != nil else { return }
            await one.close()
          }
        }
        failure?.cancel()
        await other.close()
        await one.close()
        await one.retire()
      }
    }
    Task {
      try? await legs.near.waitUntilConnected(timeout: limits.connecting)
      guard legs.near.connectionState != .connected else { return }
      await legs.near.close()
    }
  }

  /// Waits until a call's previous messages are processed, which keeps them in order.
  func enter(_ call: Call) async {
    guard call.isBusy else {
      call.isBusy = true
      return
    }
    await withCheckedContinuation { call.waiting.append($0) }
  }

  func leave(_ call: Call) {
    guard !call.waiting.isEmpty else {
      call.isBusy = false
      return
    }
    call.waiting.removeFirst().resume()
  }
}

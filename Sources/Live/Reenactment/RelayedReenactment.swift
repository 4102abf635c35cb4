import JSEP
package import Live
package import Peer
import RTP
package import Relaying
package import SDP
package import Signaling
import Synchronization
package import Tape
import Wire

/// A re-enactment for an application that reaches its own server through a relay.
///
/// The application and its server negotiate as always. In the first call in which the server would
/// send media of the recorded kinds, the client is shown the recorded formats and streams, as far
/// as the descriptions allow, and gets the recorded packets. The server's media ends at the relay,
/// which sends reports on it. The client's media still reaches the server, and the server's
/// feedback on that media reaches the client.
package final class RelayedReenactment: FarEndStandIn, Reenacting {
  /// The call that is played.
  private struct Part {
    var call: Int
    var leg: PeerConnection
    /// The leg to the server, which gets the reports.
    var far: PeerConnection
    var reports = ServerReports()
    var player: ReenactmentPlayer
    var client: StandInClient
    var agreement: Agreement
    /// The offer that the client has not answered yet; nil if there is none.
    var offer: SDPDocument?
    /// The last description for the client, without a transport.
    var described: SDPDocument
    /// The number of the recorded sender's later descriptions that the client was offered.
    var changes = 0
    /// Whether the client has not yet answered the last of the recorded sender's descriptions that
    /// it was offered.
    var isChanging = false
    /// The indexes of the sections that are played.
    var places: Set<Int> { Set(agreement.sections.values.map(\.place)) }

    /// Plays according to a new agreement, unless it equals the current one.
    mutating func play(_ agreement: Agreement) {
      guard !player.isReady || agreement != self.agreement else { return }
      self.agreement = agreement
      player.play(agreement, sending: client.send)
    }
  }

  package let plan: ReenactmentPlan
  package let finished: AsyncStream<Void>
  private let finish: AsyncStream<Void>.Continuation
  private let rule: RepairRule
  private let clock: TakeClock
  private let connectionLimit: Duration
  private let notice: @Sendable (String) -> Void
  private let part = Mutex<Part?>(nil)
  private let refusals = Mutex<[String]>([])

  /// - Parameters:
  ///   - connectionLimit: the time limit for the client to connect, once the call is chosen.
  ///   - notice: receives a sentence when a call is played, or when it cannot be played.
  package init(
    _ plan: ReenactmentPlan, repair rule: RepairRule, clock: TakeClock, connectionLimit: Duration,
    notice: @escaping @Sendable (String) -> Void
  ) {
    self.plan = plan
    self.rule = rule
    self.clock = clock
    self.connectionLimit = connectionLimit
    self.notice = notice
    (finished, finish) = AsyncStream<Void>.makeStream()
  }

  package var outcome: ReenactmentOutcome? {
    part.withLock { part in
      part.map {
        ReenactmentOutcome(player: $0.player, agreement: $0.agreement, leg: $0.leg.number)
      }
    }
  }

  /// The number of the recorded sender's later descriptions that the client has answered.
  package var changesSent: Int {
    part.withLock { part in part.map { $0.changes - ($0.isChanging ? 1 : 0) } ?? 0 }
  }

  package var refused: [String] { refusals.withLock { $0 } }

  package func close() async { part.withLock { $0?.player }?.stop() }

  // MARK: Descriptions

  package func replace(
    _ description: SDPDocument, answering offer: SDPDocument?, in legs: RelayLegs,
    to receiver: StandInClient
  ) -> SDPDocument? {
    let result = part.withLock { part -> Result<(SDPDocument, isNew: Part?), CallRefusal>? in
      guard part == nil || part?.call == legs.number else { return nil }
      let client = Self.client(of: description, answering: offer, playing: part?.places ?? [])
      let agreement: Agreement
      do throws(CallRefusal) {
        agreement = try Agreement(plan, with: client, answersOffer: false)
      } catch {
        return .failure(error)
      }
      let isNew = part == nil
      // If the application's signaling has no form for later offers, all media is sent from the
      // start.
      let states = receiver.offer.map { _ in plan.states(after: part?.changes ?? 0) }
      let shown = described(description, to: client, agreement, states)
      var new =
        part
        ?? Part(
          call: legs.number, leg: legs.near, far: legs.far,
          player: ReenactmentPlayer(plan, repair: rule, clock: clock), client: receiver,
          agreement: agreement, described: shown)
      new.reports.learn(description)
      new.client = receiver
      new.described = shown
      // The server's new description includes the states of a change that the client has not
      // answered, so that change no longer awaits an answer.
      new.isChanging = false
      if offer == nil {
        new.offer = shown
      } else {
        new.play(agreement)
      }
      part = new
      return .success((shown, isNew ? new : nil))
    }
    switch result {
    case nil: return nil
    case .failure(let refusal)?:
      refuse(refusal, in: legs.number)
      return nil
    case .success((let shown, let new))?:
      if let new { watch(new) }
      return shown
    }
  }

  package func observe(answer: SDPDocument, in call: Int) {
    let refusal = part.withLock { part -> CallRefusal? in
      guard var new = part, new.call == call, let offer = new.offer else { return nil }
      new.offer = nil
      // An answer to a change accepts the change, and the agreement stays the same.
      guard !new.isChanging else {
        new.isChanging = false
        part = new
        return nil
      }
      do throws(CallRefusal) {
        let agreement = try Agreement(
          plan, with: Self.opened(answer, to: offer, playing: new.places), answersOffer: false,
          numberedBy: offer)
        new.play(agreement)
        part = new
        return nil
      } catch {
        // An answer that stops everything leaves nothing to play.
        part = new.player.hasBegun ? new : nil
        return error
      }
    }
    if let refusal { refuse(refusal, in: call) }
  }

  package func settle(isDTLSClient: Bool, in call: Int) {
    part.withLock { part in
      guard let part, part.call == call else { return }
      part.player.settle(isDTLSClient: isDTLSClient)
    }
  }

  /// Sends the server a report on its media when one is due, because the client never gets that
  /// media.
  private func report(on packet: RelayedPacket) {
    let now = clock.now
    let (report, far) = part.withLock { part -> (RelayedPacket?, PeerConnection?) in
      (part?.reports.receive(packet, at: now), part?.far)
    }
    if let report { far?.send(report) }
  }

  private func refuse(_ refusal: CallRefusal, in call: Int) {
    refusals.withLock { $0.append(refusal.reason) }
    let isPlayed = part.withLock { $0?.call == call }
    notice(
      isPlayed
        ? "call \(call) is still played, but a change in it was refused: \(refusal.reason)"
        : "call \(call) is only relayed: \(refusal.reason)")
  }

  /// Returns the client's side of a description from the server: the sections in which the server
  /// would send, with the formats that the client may receive.
  ///
  /// - Parameter played: the sections in which packets are already played, which count as sent even
  ///   if the server has stopped sending in them.
  private static func client(
    of server: SDPDocument, answering offer: SDPDocument?, playing played: Set<Int>
  ) -> SDPDocument {
    var client = offer ?? server
    for place in client.sections.indices {
      guard server.sections.indices.contains(place) else { continue }
      let section = server.sections[place]
      if section.isRejected { client.sections[place].port = 0 }
      let theirs = section.direction ?? server.direction ?? .sendrecv
      let sends = !section.isRejected && (theirs.sends || played.contains(place))
      let own = client.sections[place].direction ?? client.direction ?? .sendrecv
      let isOffered = offer != nil
      let direction = MediaDirection(
        sends: theirs.receives && (!isOffered || own.sends),
        receives: sends && (!isOffered || own.receives))
      client.sections[place].lines.removeAll { line in
        guard case .attribute(let attribute) = line else { return false }
        if MediaDirection(rawValue: attribute.name.rawValue) != nil { return true }
        if attribute.name == .bundleOnly { return section.isRejected }
        // The recorded streams replace the server's, so their SSRCs need not avoid the server's
        // SSRCs.
        return !isOffered && (attribute.name == .ssrc || attribute.name == .ssrcGroup)
      }
      client.sections[place].append(direction.attributeName)
    }
    return client
  }

  /// Returns the client's answer as if the client had been offered media in all sections that are
  /// played, even in those in which the recorded sender does not send yet.
  private static func opened(
    _ answer: SDPDocument, to offer: SDPDocument, playing played: Set<Int>
  ) -> SDPDocument {
    var opened = answer
    for place in played where opened.sections.indices.contains(place) {
      guard offer.sections.indices.contains(place) else { continue }
      let offered = offer.sections[place].direction ?? offer.direction ?? .sendrecv
      let own = answer.sections[place].direction ?? answer.direction ?? .sendrecv
      guard !offered.sends else { continue }
      opened.sections[place].setDirection(MediaDirection(sends: own.sends, receives: true))
    }
    return opened
  }

  /// Returns the server's description with the recorded media in the sections that are played.
  ///
  /// - Parameter recorded: the recorded sender's states of the sections; nil to send in all.
  private func described(
    _ server: SDPDocument, to client: SDPDocument, _ agreement: Agreement,
    _ recorded: [Int: ReenactmentPlan.SectionState]?
  ) -> SDPDocument {
    var states: [Int: ReenactmentPlan.SectionState] = [:]
    for index in agreement.sections.keys {
      // The client's media goes to the server, whatever the recorded sender would have received.
      states[index] = ReenactmentPlan.SectionState(
        sends: recorded.map { $0[index]?.isSending ?? false } ?? true, receives: true)
    }
    let played = agreement.answer(to: client, plan, states: states)
    var shown = server
    let places = agreement.sections.values.map(\.place) + (agreement.data.map { [$0.place] } ?? [])
    for place in places where shown.sections.indices.contains(place) {
      shown.replaceMedia(at: place, with: played.sections[place])
    }
    return shown
  }

  // MARK: Later descriptions of the recorded sender

  /// Offers the client the recorded sender's later descriptions at their times.
  ///
  /// Each waits until the one before is answered, and until no offer of the client or the server is
  /// open. So the last ones may be late, and get some time after the last packet.
  private func offerChanges(of player: ReenactmentPlayer) async {
    var limit: Instant?
    while true {
      var pause = Self.pauseMaximum
      var isDue = false
      let current = part.withLock { $0 }
      if let current, current.player === player, current.client.offer != nil,
        let began = player.began
      {
        guard current.isChanging || current.changes < plan.changes.count else { return }
        isDue = current.isChanging
        if !isDue {
          let change = plan.changes[current.changes]
          let left = began + change.distance - clock.now
          isDue = left <= .zero
          if isDue, current.offer == nil { await offer(change, in: current) }
          if !isDue { pause = min(pause, left) }
        }
      }
      if player.isOver {
        let last = limit ?? clock.now + Self.patience
        limit = last
        let isOpen = current?.leg.connectionState == .connected
        guard isDue, isOpen, clock.now < last else { return }
      }
      guard (try? await Task.sleep(for: .nanoseconds(pause.nanoseconds))) != nil else { return }
    }
  }

  /// How long descriptions that are due may be late after the last packet.
  private static let patience = Interval.seconds(10)
  private static let pauseMaximum = Interval.milliseconds(20)

  private func offer(_ change: ReenactmentPlan.Change, in current: Part) async {
    let offer = current.agreement.relayedOffer(changing: current.described, to: change.states)
    // Record the offer first, because the answer may arrive before sending returns.
    part.withLock { part in
      part?.offer = offer
      part?.described = offer
      part?.changes += 1
      part?.isChanging = true
    }
    guard await current.client.offer?(offer) != true else { return }
    part.withLock { part in
      guard part?.isChanging == true else { return }
      part?.offer = nil
      part?.described = current.described
      part?.changes -= 1
      part?.isChanging = false
    }
  }

  // MARK: The call

  private func watch(_ part: Part) {
    notice("call \(part.call) is played")
    let (limit, player) = (connectionLimit, part.player)
    let changes =
      plan.changes.isEmpty ? nil : Task { [weak self] in await self?.offerChanges(of: player) }
    Task { [finish] in
      for await _ in player.ended { break }
      await changes?.value
      finish.yield()
    }
    Task { [weak self] in
      try? await Task.sleep(for: limit)
      if !player.hasBegun, self?.outcome?.player === player { player.stop() }
    }
  }

  package func follow(_ states: PeerConnectionStates, in call: Int) {
    let player = part.withLock { part -> ReenactmentPlayer? in
      guard let current = part, current.call == call else { return nil }
      if states.connection == .closed, !current.player.hasBegun {
        // The application may try again, over a new connection.
        part = nil
        return nil
      }
      return current.player
    }
    player?.follow(states)
  }

  package func pass(_ packet: RelayedPacket, from side: RelaySide, in call: Int) -> RelayedPacket? {
    guard
      let (player, ownsData) = part.withLock({ part -> (ReenactmentPlayer, Bool)? in
        guard let part, part.call == call else { return nil }
        return (part.player, part.agreement.data != nil)
      })
    else { return packet }
    if side == .near {
      player.receive(packet)
    } else {
      report(on: packet)
    }
    switch packet.kind {
    case .rtp: return side == .near ? packet : nil
    case .sctp: return ownsData ? nil : packet
    case .rtcp:
      // Keep the client's RTCP about its own media, and the server's feedback on that media.
      let kept: Set<RTCPType> =
        side == .near
        ? [.senderReport, .sourceDescription, .goodbye, .application]
        : [.transportFeedback, .payloadFeedback]
      let bytes = RTCPCompound.bytes(of: packet.bytes) { kept.contains($0) }
      guard !bytes.isEmpty else { return nil }
      return RelayedPacket(kind: .rtcp, transport: packet.transport, bytes: bytes)
    }
  }
}

// MARK: - ReenactmentRelay

/// A proxy between an application and its server, with a re-enactment in place of the server's
/// media.
package struct ReenactmentRelay: Sendable {
  package let service: RelayedReenactment
  /// The proxy to which the application connects instead of its server.
  package let proxy: ProxyServer
  private let relay: RelayService

  /// Listens for the application.
  ///
  /// - Parameters:
  ///   - connectionLimit: the time limit for a call to connect.
  ///   - notice: receives a sentence when a call is played or cannot be played, and for each
  ///     message that is refused or cannot be searched.
  package init(
    _ plan: ReenactmentPlan, in session: Session, repair rule: RepairRule,
    proxied: ProxyServer.Settings, rules: SDPRules = SDPRules(), connectionLimit: Duration,
    notice: @escaping @Sendable (String) -> Void
  ) async throws(HTTPError) {
    var settings = RelayService.Settings()
    settings.rules = rules
    settings.connectionLimit = connectionLimit
    let service = RelayedReenactment(
      plan, repair: rule, clock: session.clock, connectionLimit: connectionLimit, notice: notice)
    let relay = RelayService(session, settings, standIn: service)
    proxy = try await ProxyServer.listen(
      proxied, notice: notice, rewrite: { await relay.rewrite($0) })
    (self.service, self.relay) = (service, relay)
  }

  /// Ends all calls and completes the take.
  package func finish() async throws(TapeError) {
    await proxy.shutdown()
    _ = try await relay.finish()
  }
}

import JSEP
package import Live
package import Peer
package import SDP
package import Signaling
import Synchronization
package import Tape
import Wire

/// Relays and records calls between two ends whose signaling passes through a proxy.
///
/// Each description is forwarded with the relay's addresses and keys, so that both ends connect to
/// the relay. The take has both legs of each call with their signaling as received and as sent, and
/// an observer of the decrypted packets.
package final class RelayService: Sendable {
  /// The legs' configurations, and limits on calls.
  package struct Settings: Sendable {
    /// The configurations of the legs towards clients and towards the server.
    package var near = PeerConfiguration()
    package var far = PeerConfiguration()
    package var rules = SDPRules()
    /// The maximum number of simultaneous calls.
    package var callsMaximum = 64
    /// The time limit for a call to connect.
    package var connectionLimit = Duration.seconds(120)
    /// The time limit for a failed leg to recover by an ICE restart.
    package var failureLimit = Duration.seconds(10)

    package init() {}
  }

  package let calls: RelayedCalls
  private let session: Session
  private let settings: Settings
  private let observer: RelayObserver?
  private let hasStandIn: Bool
  /// The legs of each WebSocket's last call, to which its further messages belong.
  private let channels = Mutex<[Int: RelayLegs]>([:])
  /// The number of recorded bytes of signaling.
  private let recordedBytes = Mutex(0)

  /// The maximum number of WebSockets to remember, and the maximum size in bytes of recorded
  /// messages that contain no signaling.
  private static let channelsMaximum = 4096
  private static let messageMaximum = 64 << 10
  /// The maximum number of recorded bytes of signaling, because a client may send any amount.
  private static let recordedMaximum = 256 << 20
  /// The maximum size in bytes of a message that is sent again with another description.
  private static let formMaximum = 256 << 10

  /// - Parameter standIn: what may replace the server's media; nil forwards all of it.
  package init(
    _ session: Session, _ settings: Settings, standIn: (any FarEndStandIn)? = nil
  ) {
    self.session = session
    self.settings = settings
    let clock = session.clock
    let observer = session.tape.map { tape in
      RelayObserver(
        tape, startUnixNanoseconds: clock.wallClock.unixNanosecondsAtZero,
        now: { clock.now })
    }
    self.observer = observer
    calls = RelayedCalls(
      session: session, near: settings.near, far: settings.far, maximum: settings.callsMaximum,
      connectingWithin: settings.connectionLimit, failedFor: settings.failureLimit,
      standIn: standIn,
      events: RelayedCalls.Events(
        packet: { call, packet, side, now in
          observer?.show(packet, of: call, from: side, at: now)
        },
        description: { call, document, text, side in
          observer?.show(document, text, of: call, from: side)
        },
        offer: { [rules = settings.rules] legs, offer, form in
          guard let text = await form.text(offering: offer.sdp, rules) else { return false }
          legs.near.recordSignaling(
            SignalingMessage(
              isInbound: false, transport: "websocket", type: "offer", message: text))
          return await form.send(text)
        }))
    hasStandIn = standIn != nil
  }

  /// Replaces and records the signaling in a message.
  package func rewrite(_ message: ProxiedMessage) async -> ProxiedOutcome {
    guard let text = String(validating: message.bytes, as: UTF8.self) else {
      let obstacle = SignalingObstacle.find(inBinary: message.bytes)
      return obstacle.map { .refused($0) } ?? .unchanged
    }
    let side: RelaySide = message.isFromClient ? .near : .far
    let parts = Mutex<[(type: String, legs: RelayLegs)]>([])
    let consumed = Mutex<RelayLegs?>(nil)
    let shownLast = Mutex<(sdp: String, call: Int)?>(nil)
    let isForm =
      hasStandIn && message.sendToClient != nil && text.utf8.count <= RelayService.formMaximum
    let isRepeatable = isForm ? await MessageForm.canOffer(in: text, settings.rules) : false
    var signaling = SignalingText(rules: settings.rules) {
      [calls, hasStandIn, isRepeatable]
      (part) async throws(SignalingRefusal) -> SignalingReplacement? in
      switch part {
      case .description(let type, let sdp):
        if hasStandIn, side == .near, let legs = try await calls.accept(type, sdp) {
          consumed.withLock { $0 = legs }
          return nil
        }
        let (shown, legs) = try await calls.pass(
          type, sdp, from: side, on: message.channel, isRepeatable: isRepeatable)
        parts.withLock { $0.append((type?.rawValue ?? "description", legs)) }
        shownLast.withLock { $0 = (shown, legs.number) }
        if let session = message.location { await calls.name(session: session, of: legs.number) }
        return SignalingReplacement(shown)
      case .candidate(let candidate):
        guard
          let (shown, legs) = await calls.pass(candidate, from: side, on: message.channel)
        else { return nil }
        parts.withLock { $0.append(("candidate", legs)) }
        return shown
      case .fragment(let fragment):
        let (shown, legs) = try await calls.pass(
          fragment: fragment, from: side, session: message.path)
        parts.withLock { $0.append(("candidate", legs)) }
        return SignalingReplacement(shown)
      }
    }
    do throws(SignalingRefusal) {
      let new = try await signaling.replacing(in: text, type: message.type)
      if let legs = consumed.withLock({ $0 }) {
        legs.near.recordSignaling(
          SignalingMessage(
            isInbound: true, transport: message.transport, type: "answer", message: text))
        return .consumed
      }
      if isRepeatable, let send = message.sendToClient, let last = shownLast.withLock({ $0 }) {
        await calls.remember(
          MessageForm(message: new, description: last.sdp, send: send), of: last.call)
      }
      record(text, new, message, side, parts.withLock { $0 })
      return new == text ? .unchanged : .replaced(Array(new.utf8))
    } catch {
      return .refused(error.reason)
    }
  }

  /// Records a message as received and as forwarded; a message without signaling belongs to its
  /// WebSocket's last call.
  private func record(
    _ text: String, _ new: String, _ message: ProxiedMessage, _ side: RelaySide,
    _ parts: [(type: String, legs: RelayLegs)]
  ) {
    var calls: [(type: String, legs: RelayLegs)] = []
    for part in parts where !calls.contains(where: { $0.legs.number == part.legs.number }) {
      calls.append(part)
    }
    let isSocket = message.transport == "websocket"
    channels.withLock { channels in
      if let last = calls.last, isSocket {
        if channels.count >= RelayService.channelsMaximum { channels.removeAll() }
        channels[message.channel] = last.legs
      } else if calls.isEmpty, isSocket, text.utf8.count <= RelayService.messageMaximum,
        let legs = channels[message.channel]
      {
        calls = [("message", legs)]
      }
    }
    for (type, legs) in calls {
      let size = text.utf8.count + new.utf8.count
      let isRecorded = recordedBytes.withLock { bytes in
        guard bytes + size <= RelayService.recordedMaximum else { return false }
        bytes += size
        return true
      }
      guard isRecorded else { return }
      legs.leg(side).recordSignaling(
        SignalingMessage(
          isInbound: true, transport: message.transport, type: type, message: text))
      legs.leg(side.other).recordSignaling(
        SignalingMessage(
          isInbound: false, transport: message.transport, type: type, message: new))
    }
  }

  /// Ends all calls and completes the take.
  ///
  /// - Returns: the take's summary, and the number of packets and descriptions that the observer
  ///   missed.
  package func finish() async throws(TapeError) -> (summary: TakeSummary?, unseen: UInt64) {
    await session.closeConnections()
    await observer?.finish()
    return (try await session.finish(), observer?.droppedCount ?? 0)
  }
}

// MARK: - MessageForm

/// A server's message that contains a description, kept so that the client can be sent the same
/// message with another description.
struct MessageForm: Sendable {
  /// The message as it was forwarded.
  let message: String
  /// The description that the message contains and that an offer replaces.
  let description: String
  let send: @Sendable (String) async -> Bool
  var isOffer = false

  init(message: String, description: String, send: @escaping @Sendable (String) async -> Bool) {
    self.message = message
    self.description = description
    self.send = send
  }

  /// Returns the message with an offer in place of its description; nil if that is not possible.
  func text(offering sdp: String, _ rules: SDPRules) async -> String? {
    let description = description
    var signaling = SignalingText(rules: rules) { part in
      guard case .description(_, description) = part else { return nil }
      return SignalingReplacement(sdp, type: .offer)
    }
    let text = try? await signaling.replacing(in: message)
    return text == message ? nil : text
  }

  /// Returns whether an offer can be sent in the form of a message: it contains an offer, states
  /// the type of its description in a value, or consists of the description.
  static func canOffer(in message: String, _ rules: SDPRules) async -> Bool {
    if SignalingText.isDescription(message) { return true }
    let isOffer = Mutex(false)
    var signaling = SignalingText(rules: rules) { part in
      guard case .description(let type, let sdp) = part else { return nil }
      if type == .offer || type == nil && sdp.contains("a=setup:actpass") {
        isOffer.withLock { $0 = true }
      }
      return SignalingReplacement(sdp, type: .offer)
    }
    guard (try? await signaling.replacing(in: message)) != nil else { return false }
    return signaling.statesType || isOffer.withLock { $0 }
  }
}

// MARK: - FarEndStandIn

/// The means by which a stand-in reaches the client of its call.
package struct StandInClient: Sendable {
  /// Sends the client a packet as if the server had sent it.
  package var send: @Sendable (RelayedPacket) -> Void
  /// Sends the client an offer without a transport, in the form of the server's messages, and
  /// returns whether it was sent; nil if the application's signaling has no such form.
  package var offer: (@Sendable (SDPDocument) async -> Bool)?
}

/// A substitute that sends media to a client in place of the server, as a re-enactment does.
///
/// It chooses its call by the descriptions; all other calls are relayed. In that call, the server's
/// signaling is still forwarded, but its media and the client's reports about media end at the
/// relay.
package protocol FarEndStandIn: Sendable {
  /// Decides whether to replace a description from the server that is about to be forwarded.
  ///
  /// - Parameters:
  ///   - offer: the client's offer if the server answers it; nil if the server offers.
  /// - Returns: the description to forward instead, without a transport; nil to forward the
  ///   server's.
  func replace(
    _ description: SDPDocument, answering offer: SDPDocument?, in legs: RelayLegs,
    to client: StandInClient
  ) -> SDPDocument?
  /// Called with the client's answer to an offer of the server or of the stand-in.
  func observe(answer: SDPDocument, in call: Int)
  /// Called with the DTLS role of the leg to the client, which an answer settles.
  func settle(isDTLSClient: Bool, in call: Int)
  /// Called with the states of the leg to the client after each change.
  func follow(_ states: PeerConnectionStates, in call: Int)
  /// Decides what to forward in place of a packet.
  /// - Returns: the packet to forward; nil to forward none.
  func pass(_ packet: RelayedPacket, from side: RelaySide, in call: Int) -> RelayedPacket?
}

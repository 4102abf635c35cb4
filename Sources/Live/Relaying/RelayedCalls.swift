package import JSEP
package import Live
package import Peer
package import SDP
import Wire

/// A side of a relay.
package enum RelaySide: Sendable {
  /// Whoever calls the relay's address: a page.
  case near
  /// Whoever the relay calls: the application's server.
  case far

  var other: RelaySide { self == .near ? .far : .near }
}

/// The calls that go through a relay, found by what their descriptions say.
///
/// An offer of an end that is known by its `o=` line (RFC 8866 section 5.2) is of the same
/// connection; another one begins a call. An answer belongs to the offer that its end was shown
/// last and did not answer, on the same channel first.
package actor RelayedCalls {
  /// Identifies where a message came: a WebSocket, or a client of HTTP.
  package typealias Channel = Int

  private final class Call {
    let near: PeerConnection
    let far: PeerConnection
    /// The origins of both ends, as far as they are known.
    var origins: [RelaySide: String] = [:]
    var fragments: [RelaySide: Set<String>] = [:]
    /// The side that was shown an offer and has not answered.
    var pending: RelaySide?
    var channel: Channel

    init(_ legs: (PeerConnection, PeerConnection), _ channel: Channel) {
      (near, far) = legs
      self.channel = channel
    }

    /// The leg that an end talks to.
    func leg(_ side: RelaySide) -> PeerConnection { side == .near ? near : far }
  }

  private let session: Session
  private let configuration: PeerConfiguration
  private let maximum: Int
  private let onPacket: @Sendable (Int, RelayedPacket, RelaySide, Instant) -> Void
  private var calls: [Call] = []
  private var count = 0

  package init(
    session: Session, configuration: PeerConfiguration, maximum: Int = 64,
    onPacket: @escaping @Sendable (Int, RelayedPacket, RelaySide, Instant) -> Void
  ) {
    self.session = session
    self.configuration = configuration
    self.maximum = maximum
    self.onPacket = onPacket
  }

  /// How many calls there were.
  package var callCount: Int { count }

  /// Passes a description of one side on; returns what the other side gets.
  package func pass(
    _ type: SDPType?, _ sdp: String, from side: RelaySide, on channel: Channel
  ) async throws(SignalingRefusal) -> SessionDescription {
    let document: SDPDocument
    do throws(SDPError) {
      document = try SDPDocument(parsing: sdp)
    } catch {
      throw SignalingRefusal("a description cannot be read: \(error.description)")
    }
    let origin = "\(document.origin.username) \(document.origin.sessionID)"
    let answered = calls.last { $0.pending == side && $0.channel == channel }
      ?? calls.first { $0.pending == side && ($0.origins[side] ?? origin) == origin }
    let known = calls.last { $0.origins[side] == origin }
    // Who was shown an offer answers it, unless it says that this is an offer.
    let type = type ?? (answered == nil ? .offer : .answer)
    let call: Call
    if type != .offer, let answered {
      call = answered
    } else if let known {
      call = known
    } else {
      guard type == .offer else {
        throw SignalingRefusal("an answer came for which there is no offer")
      }
      call = try begin(on: channel)
    }
    call.channel = channel
    call.origins[side] = origin
    call.fragments[side, default: []].formUnion(
      ([document.iceUsernameFragment] + document.sections.map(\.iceUsernameFragment))
        .compactMap { $0 })
    let description = SessionDescription(type: type, sdp: sdp)
    do throws(PeerError) {
      try await call.leg(side).setRemoteDescription(description)
      let shown = try await call.leg(side.other).show(description)
      call.pending = type == .offer ? side.other : type == .answer ? nil : call.pending
      return shown
    } catch {
      throw SignalingRefusal("the relay cannot carry a description: \(error.message)")
    }
  }

  /// Passes a candidate on; returns what the other side gets in its place: one of the relay's own.
  package func pass(
    _ candidate: CandidateInit, from side: RelaySide, on channel: Channel
  ) async -> String {
    guard let call = call(of: candidate, from: side, on: channel) else { return "" }
    try? await call.leg(side).addICECandidate(candidate)
    guard !candidate.candidate.isEmpty else { return "" }
    // What was shown to the other side has all candidates of its leg: it gets one of them again.
    let shown = try? await call.leg(side.other).localDescription
    guard let shown, let document = try? SDPDocument(parsing: shown.sdp) else { return "" }
    return document.sections.flatMap(\.candidates).first ?? ""
  }

  private func call(
    of candidate: CandidateInit, from side: RelaySide, on channel: Channel
  ) -> Call? {
    let fields = candidate.candidate.split(separator: " ")
    let stated = fields.firstIndex(of: "ufrag").flatMap { place in
      place + 1 < fields.count ? String(fields[place + 1]) : nil
    }
    if let fragment = candidate.usernameFragment ?? stated,
      let call = calls.last(where: { $0.fragments[side]?.contains(fragment) == true })
    {
      return call
    }
    return calls.last { $0.channel == channel } ?? calls.last
  }

  private func begin(on channel: Channel) throws(SignalingRefusal) -> Call {
    calls.removeAll { [.closed, .failed].contains($0.near.connectionState) }
    guard calls.count < maximum else {
      throw SignalingRefusal("\(maximum) calls go through the relay already; try again later")
    }
    count += 1
    let (number, onPacket) = (count, onPacket)
    let legs = session.makeRelay(
      labels: ("near \(number)", "far \(number)"), configuration: configuration
    ) { packet, isSecond, now in
      onPacket(number, packet, isSecond ? .far : .near, now)
    }
    let call = Call(legs, channel)
    calls.append(call)
    watch(legs)
    return call
  }

  /// Ends one leg when the other one has ended or failed.
  private nonisolated func watch(_ legs: (PeerConnection, PeerConnection)) {
    for (one, other) in [(legs.0, legs.1), (legs.1, legs.0)] {
      Task {
        for await states in one.stateChanges {
          if [.failed, .closed].contains(states.connection) { break }
          if states.dtlsTransports.contains(.closed) { break }
        }
        await other.close()
      }
    }
  }
}

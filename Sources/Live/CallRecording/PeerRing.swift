package import Importing
package import Live
import Peer
import SDP
import Secure
import Synchronization
package import Tape
package import Wire

/// Retains the packets of a session's peers in a ring instead of recording a take.
///
/// It keeps each step's datagrams, DTLS secrets and session descriptions. When a peer fails, the
/// last seconds are written to a take.
package final class PeerRing: PeerSink {
  private struct State {
    /// The session's zero instant as Unix time, in nanoseconds.
    var start: Int64 = 0
    var labels: [String] = []
  }

  private let recorder: FlightRecorder
  private let state = Mutex(State())

  /// - Parameter recorder: holds the ring and writes its takes.
  package init(_ recorder: FlightRecorder) { self.recorder = recorder }

  package func begin(_ wallClock: WallClock) {
    state.withLock { $0.start = wallClock.unixNanosecondsAtZero }
  }

  package func addPeer(label: String, role: String) -> (actor: UInt32, peer: UInt32) {
    let number = state.withLock { state in
      state.labels.append(label)
      return UInt32(clamping: state.labels.count)
    }
    // A relay's take shows both ends of each leg, so the remote end gets a name too.
    let remote = role == "relay" ? label.replacing(" ", with: " end ") : ""
    recorder.name(label, owner: number, remote: remote)
    return (number, number)
  }

  package func end(actor: UInt32) { recorder.end(owner: actor) }

  package func record(_ step: StepRecord) {
    guard let input = step.peerInput else { return }
    let start = state.withLock { $0.start }
    let now = start +| step.at.nanoseconds
    switch input {
    case .datagram(let datagram, let arrival):
      var packet = RingPacket(
        at: start +| arrival.nanoseconds,
        tuple: FiveTuple(from: datagram.remote, to: datagram.local), bytes: datagram.bytes)
      packet.ecn = datagram.ecn
      recorder.append(packet, of: step.actor)
    case .call(_, .setRemoteDescription(let description)),
      .call(_, .setLocalDescription(let description?)):
      if !description.sdp.isEmpty { recorder.add(description: description.sdp, of: step.actor) }
    default: break
    }
    for output in step.peerOutputs { record(output, of: step.actor, at: now) }
    recorder.pass(to: now)
  }

  private func record(_ output: PeerOutput, of actor: UInt32, at now: Int64) {
    switch output {
    case .datagram(let datagram):
      let packet = RingPacket(
        at: now, tuple: FiveTuple(from: datagram.local, to: datagram.remote),
        bytes: datagram.bytes)
      recorder.append(packet, of: actor, isOutbound: true)
    case .reply(_, .description(let description)):
      recorder.add(description: description.sdp, of: actor)
    case .event(.keyLog(let log)):
      let secrets = log.secrets
      recorder.add(
        keyLog: "CLIENT_RANDOM \(hexadecimal(secrets.clientRandom)) "
          + "\(hexadecimal(secrets.masterSecret))\n", of: actor)
    case .event(.frame(let frame)) where frame.kind == .video:
      // A received frame's packets arrived before this event; a sent frame's packets follow it.
      recorder.recordFrame(
        of: RingStream(owner: actor, ssrc: frame.ssrc), isKey: frame.isKey,
        at: frame.isInbound ? now -| Self.assembly : now)
    case .event(.state(let transition)) where Self.failures.contains(transition.to):
      // Several state machines of a connection may fail together; only one take is written.
      recorder.write(
        RingTrigger(
          key: "failure \(actor)",
          words: "\(transition.machine) of \(label(of: actor)) is now \(transition.to)"))
    default: break
    }
  }

  /// The time, in nanoseconds, within which the packets of nearly every received frame arrive.
  private static let assembly: Int64 = 2_000_000_000

  /// The states that count as failures.
  private static let failures: Set<String> = ["failed", "timed-out"]

  private func label(of actor: UInt32) -> String {
    let place = Int(actor) - 1
    return state.withLock { $0.labels.indices.contains(place) ? $0.labels[place] : "peer \(actor)" }
  }

  package func finish(_ path: String) async -> TakeSummary {
    await TakeSummary(path: path, recorder)
  }
}

extension TakeSummary {
  /// Summarizes the takes of a ring, once all of them are written.
  package init(path: String, _ recorder: FlightRecorder) async {
    self.init(path: path, steps: 0, packets: 0, bytes: 0)
    parts = await recorder.finish().map { part in
      var take = TakeSummary(
        path: part.capture.take, steps: part.capture.steps, packets: part.capture.datagrams,
        bytes: part.capture.bytes)
      take.words = part.words
      return take
    }
  }
}

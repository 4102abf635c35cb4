package import AudioSession
import Media
import Peer
package import Wire

/// An audio session and a call on one clock: one peer sends what the session captures, and the
/// session plays what that peer receives.
package final class VirtualAudioCall {
  /// The session; advance time and deliver audio through the call, not here.
  package let session: VirtualAudioSession
  package let call: VirtualCall
  private let peer: Int
  private let transceiver: UInt32

  /// Connects a session with a peer's transceiver whose source is the application.
  package init(
    _ session: VirtualAudioSession, _ call: VirtualCall, peer: Int, transceiver: UInt32
  ) {
    self.session = session
    self.call = call
    self.peer = peer
    self.transceiver = transceiver
    call.onEvent = { [weak self] peer, event in self?.play(event, of: peer) }
  }

  /// Delivers microphone audio and sends the result.
  package func deliver(_ chunk: PCMChunk) {
    session.deliver(chunk, from: .unit)
    forward()
  }

  /// Advances both; everything due happens at its instant.
  package func run(for interval: Interval) {
    let end = call.now + interval
    while let due = session.deadline, due <= end {
      call.run(until: due)
      // Received audio may have moved the deadline.
      catchUp()
      forward()
    }
    call.run(until: end)
    catchUp()
    forward()
  }

  private func catchUp() { session.wait(call.now - session.now) }

  private func forward() {
    let blocks = session.blocks
    session.clear()
    for captured in blocks {
      call.step(peer, .captured(transceiver: transceiver, .audio(captured.block)))
    }
  }

  private func play(_ event: PeerEvent, of peer: Int) {
    guard peer == self.peer, case .frame(let frame) = event, frame.isInbound,
      case .audio(let block) = frame.decoded
    else { return }
    catchUp()
    session.receive(block, on: frame.transceiver)
  }
}

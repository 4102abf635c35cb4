package import AudioSession
import Media
import Peer
package import Wire

/// An audio session and a call on one clock: one peer sends what the session captures, and the
/// session plays what that peer receives.
package final class VirtualAudioCall {
  /// The session; let time pass and hand audio in here, not there.
  package let session: VirtualAudioSession
  package let call: VirtualCall
  private let peer: Int
  private let transceiver: UInt32

  /// Joins a session with the transceiver of a peer whose source is the application.
  package init(
    _ session: VirtualAudioSession, _ call: VirtualCall, peer: Int, transceiver: UInt32
  ) {
    self.session = session
    self.call = call
    self.peer = peer
    self.transceiver = transceiver
    call.onEvent = { [weak self] peer, event in self?.play(event, of: peer) }
  }

  /// Hands audio of the microphone in, and sends what becomes of it.
  package func deliver(_ chunk: PCMChunk) {
    session.deliver(chunk, from: .unit)
    forward()
  }

  /// Lets time pass for both; what is due comes at its instant, whoever it is due for.
  package func run(for interval: Interval) {
    let end = call.now + interval
    while let due = session.deadline, due <= end {
      call.run(until: due)
      // What the call received may have moved the deadline.
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

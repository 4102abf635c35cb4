package import Media
package import Peer
import Synchronization
import Tape
import Wire

/// A connection that uses a take instead of a network: everything received, bound, resolved and
/// captured in the recording is repeated at its recorded instant, on a clock that does not wait.
///
/// Where the recorded application made a call, the take waits until the current application makes
/// it. Nothing is sent over a network.
package final class RecordedPeer: Sendable {
  /// A replay's result so far.
  package struct Report: Hashable, Sendable {
    /// The number of the peer's steps in the take, and how many were reached.
    package var recordedSteps = 0
    package var steps = 0
    /// The number of datagrams sent exactly as in the recording, and the number of all other
    /// datagrams, sent or missing.
    package var sentAsRecorded = 0
    package var sentOtherwise = 0
    /// One sentence for each call that differs from the recorded call.
    package var deviations: [String] = []
  }

  /// The connection, as a session would create it.
  package let connection: PeerConnection
  /// The messages on the recorded application's signaling channel.
  package let signaling: [SignalingMessage]
  /// The recorded application's calls.
  package let calls: [PeerCall]

  private let loop: MediaLoop
  private let progress: Mutex<Report>

  /// Opens a take and runs the steps up to the application's first call.
  package init(
    path: String, peer: UInt32, codecs: @escaping @Sendable () -> any CodecFactory
  ) throws(SessionError) {
    let script: RecordedScript
    let mailbox: Mailbox<MediaLoop.Message>
    do throws(TapeError) {
      script = try RecordedScript(path: path, peer: peer)
    } catch {
      throw .take(error)
    }
    signaling = script.signaling
    calls = script.calls
    progress = Mutex(Report(recordedSteps: script.steps.count))
    do throws(SystemError) {
      mailbox = try Mailbox()
      loop = MediaLoop(mailbox: mailbox)
      let key = loop.nextKey()
      let observers = PeerObservers(port: DataChannelPort(mailbox: mailbox, key: key))
      connection = PeerConnection(
        label: script.label, number: peer, loop: loop, key: key, observers: observers)
      let thread = try RecordedThread(
        mailbox: mailbox, script: script, engine: { PeerMachine(codecs: codecs()) },
        observer: { event, now in observers.observe(event, at: now) })
      try startThread(named: "retake-take") { thread.run() }
    } catch {
      throw .system(error)
    }
  }

  /// Waits until the application has made all recorded calls, then runs the rest of the recording
  /// without further calls, and closes.
  /// - Parameter limit: the maximum time to wait.
  package func finish(within limit: Duration) async -> Report {
    let report = await withTaskGroup(of: Void.self) { group in
      group.addTask { await self.waitForCalls() }
      group.addTask { try? await Task.sleep(for: limit) }
      await group.next()
      group.cancelAll()
      // Ending the recording also ends the wait.
      return await self.finishRecording()
    }
    if let report { progress.withLock { $0 = report } }
    await connection.close()
    await loop.stop()
    return progress.withLock { $0 }
  }
}

extension RecordedPeer {
  /// Returns once the application has made all recorded calls or the recording has ended.
  private func waitForCalls() async {
    await withCheckedContinuation { continuation in
      let message = MediaLoop.Message.followRecording { continuation.resume() }
      if !loop.mailbox.post(message) { continuation.resume() }
    }
  }

  private func finishRecording() async -> Report? {
    await withCheckedContinuation { continuation in
      let message = MediaLoop.Message.finishRecording { continuation.resume(returning: $0) }
      if !loop.mailbox.post(message) { continuation.resume(returning: nil) }
    }
  }
}

/// One peer's steps in a take.
struct RecordedScript: Sendable {
  struct Step: Sendable {
    var number: Int
    var at: Instant
    var input: PeerInput
    /// The datagrams sent in this step.
    var sent: [[UInt8]]
  }

  private(set) var label = ""
  private(set) var steps: [Step] = []

  init(path: String, peer: UInt32) throws(TapeError) {
    let reader = try TapeReader(path: path)
    var peers: [UInt32] = []
    do throws(TapeFault) {
      while let chunk = try reader.next() {
        for step in chunk.steps {
          // Only endpoints have application calls.
          guard let number = step.peer else { continue }
          if !peers.contains(number) { peers.append(number) }
          guard number == peer else { continue }
          append(step, chunk.rows)
        }
      }
    } catch {
      switch error {
      case .unreadable(let reason): throw reason
      case .altered(let alteration, _):
        throw TapeError(path: path, place: "", reason: alteration.description)
      }
    }
    guard !steps.isEmpty else {
      throw TapeError(
        path: path, place: "peer \(peer)",
        reason: "the take has no such peer, only "
          + peers.map { "peer \($0)" }.joined(separator: ", "))
    }
  }

  private mutating func append(_ step: TapeChunk.Step, _ rows: RowList) {
    var sent: [[UInt8]] = []
    for row in step.outputRows {
      if let packet = PacketRow(rows, row) { sent.append(packet.bytes) }
    }
    guard let input = step.input as? PeerInput else { return }
    if case .genesis = input { label = ActorWords(step, rows).label }
    steps.append(Step(number: step.head.number, at: step.head.at, input: input, sent: sent))
  }

  var signaling: [SignalingMessage] {
    steps.compactMap { if case .signaling(let message) = $0.input { message } else { nil } }
  }

  var calls: [PeerCall] {
    steps.compactMap { if case .call(_, let call) = $0.input { call } else { nil } }
  }
}

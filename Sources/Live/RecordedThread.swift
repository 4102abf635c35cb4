import Peer
import Wire

/// Drives a peer from a take, and waits for the application where the recorded one called.
final class RecordedThread {
  private struct Waiting {
    var call: PeerCall
    var complete: @Sendable (PeerReply) -> Void
  }

  private let mailbox: Mailbox<MediaLoop.Message>
  private let poller: Poller
  private let script: RecordedScript
  private let makeEngine: () -> any PeerEngine
  private let observer: PeerDriver.Observer

  private var engine: (any PeerEngine)?
  private var outbox = Outbox<PeerOutput>()
  private var next = 0
  private var now = Instant.zero
  private var waiting: [Waiting] = []
  private var lastCallID: UInt32 = 1 << 31
  private var report = RecordedPeer.Report()
  private var waitsForCalls = true
  private var isClosed = false
  private var completions: [@Sendable () -> Void] = []
  private var isStopping = false

  init(
    mailbox: Mailbox<MediaLoop.Message>, script: RecordedScript,
    engine: @escaping () -> any PeerEngine, observer: @escaping PeerDriver.Observer
  ) throws(SystemError) {
    self.mailbox = mailbox
    self.script = script
    makeEngine = engine
    self.observer = observer
    report.recordedSteps = script.steps.count
    poller = try Poller()
    try poller.add(mailbox.descriptor, tag: 0)
  }

  /// Handles messages until it is told to stop.
  func run() {
    engine = makeEngine()
    while !isStopping {
      advance()
      guard (try? poller.wait(waits: true)) != nil else { break }
      for message in mailbox.takeAll() { handle(message) }
    }
    for message in mailbox.close() { refuse(message) }
    for call in waiting { call.complete(.failure(.ended)) }
    for complete in completions { complete() }
  }

  private func handle(_ message: MediaLoop.Message) {
    switch message {
    case .call(_, let call, let complete): take(call, complete)
    case .captured(_, _, _, let budget):
      // What was captured comes from the take.
      budget.giveBack()
    case .finishRecording(let complete):
      waitsForCalls = false
      advance()
      complete(report)
    case .remove(_, let complete): complete()
    case .stop(let complete):
      isStopping = true
      completions.append(complete)
    case .add, .input, .resolved: break
    }
  }

  private func refuse(_ message: MediaLoop.Message) {
    switch message {
    case .call(_, _, let complete): complete(.failure(.ended))
    case .captured(_, _, _, let budget): budget.giveBack()
    case .finishRecording(let complete): complete(report)
    case .remove(_, let complete), .stop(let complete): completions.append(complete)
    case .add, .input, .resolved: break
    }
  }

  // MARK: The recording

  /// Lets the recording go on up to the next call that is the application's to make.
  private func advance() {
    while next < script.steps.count {
      let recorded = script.steps[next]
      if case .call(_, let call) = recorded.input, call.changesThings {
        guard let first = waiting.first else {
          if waitsForCalls || isClosed { return }
          // Whoever tests the beginning of a call need not close it.
          if call != .close {
            note("step \(recorded.number): the recorded application called \(call.name)")
          }
          perform(recorded, recorded.input)
          continue
        }
        waiting.removeFirst()
        guard first.call.name == call.name else {
          note(
            "step \(recorded.number): \(first.call.name) was called where the recorded application "
              + "called \(call.name)")
          now = max(now, recorded.at)
          answer(first)
          continue
        }
        if first.call != call {
          note("step \(recorded.number): \(call.name) was called with other arguments")
        }
        perform(recorded, first)
      } else {
        perform(recorded, recorded.input)
      }
    }
    // Behind the end of the recording, calls are answered as they come.
    for call in waiting { answer(call) }
    waiting = []
  }

  private func note(_ deviation: String) { report.deviations.append(deviation) }

  private func take(_ call: PeerCall, _ complete: @escaping @Sendable (PeerReply) -> Void) {
    let request = Waiting(call: call, complete: complete)
    // What only looks is answered at once, and closing never waits for a call that does not come.
    guard call.changesThings, call != .close || nextCall == .close else {
      answer(request)
      if call == .close { isClosed = true }
      return
    }
    waiting.append(request)
    advance()
    if call == .close { isClosed = true }
  }

  /// The call that the recording waits for.
  private var nextCall: PeerCall? {
    guard next < script.steps.count, case .call(_, let call) = script.steps[next].input else {
      return nil
    }
    return call
  }

  // MARK: Steps

  /// Makes a recorded step with the application's own call.
  private func perform(_ recorded: RecordedScript.Step, _ request: Waiting) {
    lastCallID &+= 1
    guard case .call(let id, _) = recorded.input else { return }
    perform(recorded, .call(id: id, request.call), request)
  }

  private func perform(
    _ recorded: RecordedScript.Step, _ input: PeerInput, _ request: Waiting? = nil
  ) {
    next += 1
    now = max(now, recorded.at)
    report.steps += 1
    let sent = step(input, request)
    let same = zip(sent, recorded.sent).prefix { $0.0 == $0.1 }.count
    report.sentAsRecorded += same
    report.sentOtherwise += max(sent.count, recorded.sent.count) - same
  }

  /// Makes a step that the recording does not have.
  private func answer(_ request: Waiting) {
    lastCallID &+= 1
    report.sentOtherwise += step(.call(id: lastCallID, request.call), request).count
  }

  /// Makes a step and gives the datagrams that would be sent.
  private func step(_ input: PeerInput, _ request: Waiting?) -> [[UInt8]] {
    guard let engine else { return [] }
    engine.step(input, at: now, into: &outbox)
    var sent: [[UInt8]] = []
    var reply: PeerReply?
    while let output = outbox.next() {
      switch output {
      case .datagram(let datagram): sent.append(datagram.bytes)
      case .reply(_, let given): reply = given
      case .event(let event): observer(event, now)
      case .bindSocket, .closeSocket, .resolveName: break
      }
    }
    if let request { request.complete(reply ?? .failure(.ended)) }
    return sent
  }
}

extension PeerCall {
  /// Whether a call does more than look.
  fileprivate var changesThings: Bool {
    switch self {
    case .getStats, .localDescription, .transceivers: false
    default: true
    }
  }

  /// The name of the method.
  fileprivate var name: String { String("\(self)".prefix { $0 != "(" }) }
}

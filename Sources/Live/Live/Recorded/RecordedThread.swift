import DequeModule
import Peer
import Tape
import Wire

/// Drives a peer from a take, and waits for the application wherever the recorded application made
/// a call.
final class RecordedThread {
  /// An application's request to its peer.
  fileprivate enum Request: Hashable {
    case call(PeerCall)
    case send(DataMessage)
  }

  fileprivate struct Waiting {
    var request: Request
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
  private var waiting = Deque<Waiting>()
  /// Requests that still wait for their replies.
  private var unanswered: [(id: UInt32, complete: @Sendable (PeerReply) -> Void)] = []
  private var lastCallID: UInt32 = 1 << 31
  private var report = RecordedPeer.Report()
  private var waitsForCalls = true
  /// Closures to call once the application has made all recorded calls.
  private var followers: [@Sendable () -> Void] = []
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

  /// Handles messages until the thread is stopped.
  func run() {
    engine = makeEngine()
    while !isStopping {
      advance()
      guard (try? poller.wait(waits: true)) != nil else { break }
      for message in mailbox.removeAll() { handle(message) }
      notifyFollowers()
    }
    for message in mailbox.close() { refuse(message) }
    for request in waiting { request.complete(.failure(.ended)) }
    for request in unanswered { request.complete(.failure(.ended)) }
    for complete in followers + completions { complete() }
  }

  private func handle(_ message: MediaLoop.Message) {
    switch message {
    // Ignore the application's capturer events: the take supplies them, like captured media.
    case .call(_, .noteCapture, let complete): complete(.done)
    case .call(_, let call, let complete): handle(.call(call), complete)
    case .send(_, let message, let complete): handle(.send(message), complete)
    case .captured(_, _, _, let budget):
      // Ignore the application's captured media: the take supplies it.
      budget.release()
    case .followRecording(let complete): followers.append(complete)
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
    case .call(_, _, let complete), .send(_, _, let complete): complete(.failure(.ended))
    case .captured(_, _, _, let budget): budget.release()
    case .followRecording(let complete): completions.append(complete)
    case .finishRecording(let complete): complete(report)
    case .remove(_, let complete), .stop(let complete): completions.append(complete)
    case .add, .input, .resolved: break
    }
  }

  // MARK: The recording

  /// Notifies followers once the application has no recorded call left to make.
  ///
  /// Closing is optional: a test may cover only the start of a call.
  private func notifyFollowers() {
    guard !waitsForCalls || isClosed || nextRequest == nil || nextRequest == .call(.close) else {
      return
    }
    for tell in followers { tell() }
    followers = []
  }

  /// Runs the recording up to the application's next call.
  private func advance() {
    while next < script.steps.count {
      let recorded = script.steps[next]
      guard let wanted = Request(recorded.input), wanted.changesThings else {
        perform(recorded)
        continue
      }
      guard let first = waiting.first else {
        if waitsForCalls || isClosed { return }
        // A test that covers only the start of a call does not have to close the connection.
        if wanted != .call(.close) {
          record(recorded, "the recorded application called \(wanted.text)")
        }
        perform(recorded)
        continue
      }
      waiting.removeFirst()
      guard first.request.name == wanted.name else {
        record(
          recorded,
          "\(first.request.text) was called where the recorded application called \(wanted.text)")
        now = max(now, recorded.at)
        answer(first)
        continue
      }
      if first.request != wanted {
        let differences = first.request.differences(from: wanted).joined(separator: ", ")
        record(recorded, "\(wanted.name) was called with other arguments: \(differences)")
      }
      perform(recorded, first)
    }
    // After the end of the recording, calls are answered as they arrive.
    for request in waiting { answer(request) }
    waiting = []
  }

  private func record(_ recorded: RecordedScript.Step, _ deviation: String) {
    report.deviations.append("step \(recorded.number): \(deviation)")
  }

  private func handle(_ request: Request, _ complete: @escaping @Sendable (PeerReply) -> Void) {
    let isClose = request == .call(.close)
    // Read-only calls are answered immediately, and closing never waits for a missing call.
    if !request.changesThings || isClose && nextRequest != request {
      answer(Waiting(request: request, complete: complete))
    } else {
      waiting.append(Waiting(request: request, complete: complete))
      advance()
    }
    if isClose { isClosed = true }
  }

  /// The request that the recording is waiting for.
  private var nextRequest: Request? {
    next < script.steps.count ? Request(script.steps[next].input) : nil
  }

  // MARK: Steps

  /// Performs a recorded step; the application's request, if any, replaces the recorded request.
  private func perform(_ recorded: RecordedScript.Step, _ request: Waiting? = nil) {
    next += 1
    now = max(now, recorded.at)
    report.steps += 1
    var input = recorded.input
    if let request {
      switch recorded.input {
      case .call(let id, _), .send(let id, _): input = request.input(id: id)
      default: break
      }
    }
    let sent = step(input, request)
    let same = zip(sent, recorded.sent).prefix { $0.0 == $0.1 }.count
    report.sentAsRecorded += same
    report.sentOtherwise += max(sent.count, recorded.sent.count) - same
  }

  /// Performs a request that is missing from the recording.
  private func answer(_ request: Waiting) {
    lastCallID &+= 1
    report.sentOtherwise += step(request.input(id: lastCallID), request).count
  }

  /// Performs a step and returns the datagrams that would be sent.
  private func step(_ input: PeerInput, _ request: Waiting?) -> [[UInt8]] {
    guard let engine else { return [] }
    if let request {
      switch input {
      case .call(let id, _), .send(let id, _): unanswered.append((id, request.complete))
      default: break
      }
    }
    engine.step(input, at: now, into: &outbox)
    var sent: [[UInt8]] = []
    var replies: [(complete: @Sendable (PeerReply) -> Void, reply: PeerReply)] = []
    while let output = outbox.next() {
      switch output {
      case .datagram(let datagram): sent.append(datagram.bytes)
      case .reply(let id, let reply):
        guard let index = unanswered.firstIndex(where: { $0.id == id }) else { continue }
        replies.append((unanswered.remove(at: index).complete, reply))
      case .event(let event): observer(event, now)
      case .relayed: break
      case .request: break
      }
    }
    // Deliver replies after all other outputs of the step.
    for entry in replies { entry.complete(entry.reply) }
    return sent
  }
}

extension RecordedThread.Waiting {
  fileprivate func input(id: UInt32) -> PeerInput {
    switch request {
    case .call(let call): .call(id: id, call)
    case .send(let message): .send(id: id, message)
    }
  }
}

extension RecordedThread.Request {
  /// Extracts an input's request; nil if it has none.
  fileprivate init?(_ input: PeerInput) {
    switch input {
    case .call(_, let call): self = .call(call)
    case .send(_, let message): self = .send(message)
    default: return nil
    }
  }

  /// Whether the request changes the peer.
  fileprivate var changesThings: Bool {
    switch self {
    case .call(.getStats), .call(.localDescription), .call(.transceivers), .call(.dataChannels),
      .call(.streams), .call(.readDescription), .call(.trackState), .call(.noteCapture):
      false
    default: true
    }
  }

  fileprivate var name: String {
    switch self {
    case .call(let call): String("\(call)".prefix { $0 != "(" })
    case .send: "send"
    }
  }

  private var arguments: CallArguments {
    switch self {
    case .call(let call): CallArguments(call)
    case .send(let message): CallArguments(message)
    }
  }

  /// The request on one line: its name, then its arguments if any.
  fileprivate var text: String {
    let arguments = arguments.text
    return arguments.isEmpty ? name : "\(name)(\(arguments))"
  }

  /// Returns the arguments that differ from the recorded request's, which has the same name.
  fileprivate func differences(from recorded: Self) -> [String] {
    arguments.differences(from: recorded.arguments)
  }
}

// MARK: - CallArguments

/// A call's arguments by name, for reporting differences.
///
/// They are found by reflection, so a new field in a description or source needs no change here.
struct CallArguments {
  /// Simple values in order, each with its path: `source`, `description.sdp`.
  private var values: [(name: String, value: Any)] = []

  /// Collects a call's arguments.
  /// - Parameter call: an enum case with its arguments, or a struct of arguments.
  init(_ call: Any) {
    let mirror = Mirror(reflecting: call)
    if mirror.displayStyle == .enum {
      // A case without arguments has no children.
      if let child = mirror.children.first { add("", child.value, depth: 0) }
    } else {
      add("", call, depth: 0)
    }
  }

  private static let depthMaximum = 4

  private mutating func add(_ name: String, _ value: Any, depth: Int) {
    let mirror = Mirror(reflecting: value)
    switch mirror.displayStyle {
    case .optional?:
      if let some = mirror.children.first {
        add(name, some.value, depth: depth)
      } else {
        values.append((name, "nothing"))
      }
    case .tuple? where depth < Self.depthMaximum, .struct? where depth < Self.depthMaximum:
      guard !mirror.children.isEmpty else { return values.append((name, value)) }
      for child in mirror.children {
        // Unlabelled values are named `.0`, `.1`.
        let label = child.label.flatMap { $0.hasPrefix(".") ? nil : $0 } ?? ""
        let place = [name, label].filter { !$0.isEmpty }.joined(separator: ".")
        add(place, child.value, depth: depth + 1)
      }
    default: values.append((name, value))
    }
  }

  /// All arguments on one line.
  var text: String {
    values.map { name, value in
      (name.isEmpty ? "" : "\(name): ") + Self.short(value)
    }.joined(separator: ", ")
  }

  /// Returns the arguments that differ from the recorded call's, with both values.
  func differences(from recorded: CallArguments) -> [String] {
    let names = values.map(\.name)
    guard names == recorded.values.map(\.name) else {
      return ["\(text), recorded \(recorded.text)"]
    }
    return zip(values, recorded.values).compactMap { present, recorded in
      Self.difference(present.name, present.value, recorded.value)
    }
  }

  private static func difference(_ name: String, _ present: Any, _ recorded: Any) -> String? {
    let name = name.isEmpty ? "" : "\(name): "
    let (new, old) = (String(describing: present), String(describing: recorded))
    guard new != old else { return nil }
    // For text of several lines, report the first line that differs.
    let lines = new.split(whereSeparator: \.isNewline)
    let oldLines = old.split(whereSeparator: \.isNewline)
    guard max(lines.count, oldLines.count) > 1 else {
      return "\(name)\(short(present)), recorded \(short(recorded))"
    }
    let same = zip(lines, oldLines).prefix { $0 == $1 }.count
    func line(_ lines: [Substring]) -> String {
      same < lines.count ? "\"\(lines[same].prefix(lengthMaximum))\"" : "its end"
    }
    return "\(name)line \(same + 1) is \(line(lines)), recorded \(line(oldLines))"
  }

  private static let lengthMaximum = 80

  /// Returns a value shortened for a sentence.
  private static func short(_ value: Any) -> String {
    if let bytes = value as? [UInt8] {
      let text = String(decoding: bytes, as: UTF8.self)
      let isText = text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0xfffd }
      return isText && bytes.count <= lengthMaximum ? "\"\(text)\"" : "\(bytes.count) bytes"
    }
    let text = String(describing: value)
    if text.contains(where: \.isNewline) { return "\(text.count) characters" }
    return text.count > lengthMaximum ? "\(text.prefix(lengthMaximum))..." : text
  }
}

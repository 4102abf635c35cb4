import Observer
package import Wire

extension MachineKind {
  /// Reports of another stack about its connections; that stack cannot be executed again.
  package static let reported = MachineKind(rawValue: 5)
}

/// The kinds of input; the numbers are stored, so they must never change.
private enum ReportedStep {
  static let connection = StepKind(1)
  static let call = StepKind(2)
  static let reply = StepKind(4)
  static let event = StepKind(5)
  static let stats = StepKind(6)
  static let notSeen = StepKind(7)
  static let frame = StepKind(8)
}

/// The configuration of an actor whose inputs come from a report file.
package struct ReportedGenesis: Codable, Hashable, Sendable {
  /// The name of the file's format.
  package var format: String
  /// What the file says about its browser, machine and page, as JSON; nil if it says nothing.
  package var head: String?
  /// Whether a description that the browser generated itself is read from its call's result; nil in
  /// older takes, where it is not.
  package var readsResults: Bool?

  package init(format: String, head: String?) {
    self.format = format
    self.head = head
    readsResults = true
  }
}

/// A report of another stack, with the connection that it is about.
///
/// The time is the report's own time. If the file is not in order, the step's time is later.
package enum ReportedInput: RecordedInput {
  case genesis(ReportedGenesis)
  /// A connection was created, with its configuration as JSON.
  case connection(peer: UInt32, at: Instant, label: String, configuration: String)
  /// The page called an API; a call that is not about a connection has peer 0.
  case call(peer: UInt32, at: Instant, id: UInt32, name: String, arguments: String)
  /// A call returned a result as JSON, or failed with an error.
  case reply(peer: UInt32, at: Instant, id: UInt32, reply: String?, error: String?)
  case event(peer: UInt32, at: Instant, name: String, detail: String)
  /// A `getStats` report was found, whose JSON has the form of `ReportedStats.value`.
  case stats(peer: UInt32, at: Instant, id: UInt32, report: String)
  /// An encoded frame was received.
  case frame(ReportedFrame)
  /// Something is missing from the file, with the kind of coverage and the reason.
  case notSeen(what: String, reason: String)
  /// Required by the protocol; it never occurs, because reports have no deadlines.
  case deadline

  package var stepKind: StepKind {
    switch self {
    case .genesis: .genesis
    case .connection: ReportedStep.connection
    case .call: ReportedStep.call
    case .reply: ReportedStep.reply
    case .event: ReportedStep.event
    case .stats: ReportedStep.stats
    case .frame: ReportedStep.frame
    case .notSeen: ReportedStep.notSeen
    case .deadline: .deadline
    }
  }

  package var byteCount: Int {
    switch self {
    case .genesis, .deadline: 0
    case .connection(_, _, let label, let text): label.utf8.count + text.utf8.count
    case .call(_, _, _, let name, let text), .event(_, _, let name, let text):
      name.utf8.count + text.utf8.count
    case .reply(_, _, _, let reply, let error): (reply ?? error ?? "").utf8.count
    case .stats(_, _, _, let text): text.utf8.count
    case .frame(let frame): frame.bytes?.count ?? 0
    case .notSeen(let what, let reason): what.utf8.count + reason.utf8.count
    }
  }

  package var title: String {
    switch self {
    case .genesis(let genesis): "a \(genesis.format)"
    case .connection(let peer, _, _, _): "connection \(peer) is made"
    case .call(_, _, _, let name, _): name
    case .reply(_, _, let id, _, let error): error == nil ? "result of \(id)" : "failure of \(id)"
    case .event(_, _, let name, _): name
    case .stats: "getStats"
    case .frame(let frame): "\(frame.codec) frame of \(counted(frame.size, "byte"))"
    case .notSeen(let what, _): what
    case .deadline: "deadline"
    }
  }

  package func write(to transcript: inout Transcript) {
    switch self {
    case .genesis(let genesis):
      transcript.addActor(.reported, configuration: CanonicalJSON.text(genesis), seed: [])
    case .connection(let peer, let at, let label, let configuration):
      let arguments = JSONText.object([
        ("label", .text(label)), ("configuration", JSONText(configuration)),
      ])
      add(CallRequestRow(name: Self.maker, arguments: arguments.text), peer, at, &transcript)
    case .call(let peer, let at, let id, let name, let arguments):
      add(CallRequestRow(call: id, name: name, arguments: arguments), peer, at, &transcript)
    case .reply(let peer, let at, let id, let reply, let error):
      add(CallReplyRow(call: id, reply: reply, error: error), peer, at, &transcript)
    case .event(let peer, let at, let name, let detail):
      add(EventRow(type: name, detail: detail), peer, at, &transcript)
    case .stats(let peer, let at, let id, let report):
      add(CallRequestRow(call: id, name: Self.sampler, arguments: report), peer, at, &transcript)
    case .frame(let frame): frame.write(to: &transcript)
    case .notSeen(let what, let reason):
      transcript.add(CallRequestRow(name: what, arguments: reason), of: 0)
    case .deadline: break
    }
  }

  private func add(
    _ row: some StampedRow, _ peer: UInt32, _ at: Instant, _ transcript: inout Transcript
  ) {
    transcript.add(of: peer, at: at) { $0.add(row) }
  }

  fileprivate static let maker = "RTCPeerConnection"
  fileprivate static let sampler = "getStats"
}

/// An encoded frame that a page received and passed on.
package struct ReportedFrame: Hashable, Sendable {
  package var peer: UInt32
  package var at: Instant
  /// The track number, which `ReportedMachine.track(of:mid:)` returns.
  package var track: UInt32
  package var isVideo: Bool
  package var codec: String
  package var ssrc: UInt32
  package var rtpTime: UInt32
  package var isKey: Bool
  /// The size in pixels; nil for audio, or if the browser does not report a size.
  package var width: Int?
  package var height: Int?
  package var size: Int
  /// The encoded bytes; nil in a take without media.
  package var bytes: [UInt8]?

  package init(
    peer: UInt32, at: Instant, track: UInt32, isVideo: Bool, codec: String, ssrc: UInt32,
    rtpTime: UInt32, isKey: Bool, bytes: [UInt8]
  ) {
    (self.peer, self.at, self.track, self.isVideo) = (peer, at, track, isVideo)
    (self.codec, self.ssrc, self.rtpTime, self.isKey) = (codec, ssrc, rtpTime, isKey)
    (self.bytes, size) = (bytes, bytes.count)
  }

  fileprivate init(_ frame: FrameRow, _ format: FormatRow) {
    (peer, at, track) = (format.peer.number, frame.at, format.track)
    (isVideo, codec, ssrc) = (format.kind == "video", format.codec, format.ssrc)
    (rtpTime, isKey) = (frame.rtpTime.number, format.isKey)
    (width, height) = (format.width, format.height)
    (size, bytes) = (frame.size, frame.bytes)
  }

  fileprivate func write(to transcript: inout Transcript) {
    // Another stack decoded the frame, so here it counts as not decoded.
    var format = FormatRow(
      track: track, kind: isVideo ? "video" : "audio", direction: .inbound, codec: codec,
      ssrc: ssrc, outcome: "not decoded", isKey: isKey)
    (format.width, format.height) = (width, height)
    transcript.add(of: peer, at: at) { transcript in
      let number = transcript.format(of: format)
      transcript.add(
        FrameRow(
          at: at, format: number, rtpTime: WireNumber(number: rtpTime), size: size,
          bytes: transcript.keepsMedia ? bytes : nil))
    }
  }
}

/// Restores the inputs of report files from their rows.
package struct ReportedDecoder: InputDecoder {
  /// Frame formats by number; formats that later rows can no longer refer to are dropped.
  private var formats: [Int64: FormatRow] = [:]
  private static let formatsMaximum = 65_536

  package init() {}

  package mutating func input(of head: StepHead, _ rows: borrowing RowList, _ range: Range<Int>)
    -> (any RecordedInput)?
  {
    if head.kind == .deadline { return ReportedInput.deadline }
    guard let row = range.last else { return nil }
    switch head.kind {
    case .genesis:
      return ActorRow(rows, row)
        .flatMap { CanonicalJSON.value(ReportedGenesis.self, from: $0.configuration) }
        .map { ReportedInput.genesis($0) }
    case ReportedStep.reply:
      return CallReplyRow(rows, row).map {
        ReportedInput.reply(
          peer: $0.peer.number, at: $0.at, id: $0.call, reply: $0.reply, error: $0.error)
      }
    case ReportedStep.frame:
      for row in range.dropLast() {
        guard let format = FormatRow(rows, row) else { return nil }
        if formats.count >= Self.formatsMaximum { formats.removeAll() }
        formats[format.number] = format
      }
      guard let frame = FrameRow(rows, row), let format = formats[frame.format.number] else {
        return nil
      }
      return ReportedInput.frame(ReportedFrame(frame, format))
    case ReportedStep.event:
      return EventRow(rows, row).map {
        ReportedInput.event(peer: $0.peer.number, at: $0.at, name: $0.type, detail: $0.detail)
      }
    default:
      return CallRequestRow(rows, row).flatMap { Self.input(of: head.kind, $0) }
    }
  }

  private static func input(of kind: StepKind, _ row: CallRequestRow) -> ReportedInput? {
    switch kind {
    case ReportedStep.connection:
      guard row.name == ReportedInput.maker,
        let value = try? JSONValue(parsing: row.arguments, limits: ReportedLines.limits),
        let label = value["label"]?.text
      else { return nil }
      return .connection(
        peer: row.peer.number, at: row.at, label: label,
        configuration: value["configuration"]?.json ?? "null")
    case ReportedStep.call:
      return .call(
        peer: row.peer.number, at: row.at, id: row.call, name: row.name, arguments: row.arguments)
    case ReportedStep.stats:
      guard row.name == ReportedInput.sampler else { return nil }
      return .stats(peer: row.peer.number, at: row.at, id: row.call, report: row.arguments)
    case ReportedStep.notSeen: return .notSeen(what: row.name, reason: row.arguments)
    default: return nil
    }
  }
}

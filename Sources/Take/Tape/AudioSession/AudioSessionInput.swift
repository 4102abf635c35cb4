package import AudioSession
import Media
import Wire

extension MachineKind {
  /// An audio session and the device that it uses.
  package static let audioSession = MachineKind(rawValue: 4)
}

extension StepKind {
  /// A block of recorded audio.
  fileprivate static let deliver = StepKind(5)
  /// A block of a remote track, to be played.
  fileprivate static let rendered = StepKind(6)
  /// An event of the audio device.
  fileprivate static let event = StepKind(7)
  /// The device's reply to an operation that the session requested.
  fileprivate static let answer = StepKind(8)
  /// The device's request for the next blocks to play.
  fileprivate static let pull = StepKind(9)
}

/// The JSON in a delivery's row, which describes everything but the samples.
private struct DeliveryHead: Codable {
  var source: AudioSourceID
  var format: AudioFormat
  var captureTime: Int64
}

extension AudioSessionAction: RecordedInput {
  package var stepKind: StepKind {
    switch self {
    case .genesis: .genesis
    case .deadline: .deadline
    case .call: .call
    case .event: .event
    case .answer: .answer
    case .deliver: .deliver
    case .rendered: .rendered
    case .pull: .pull
    }
  }

  package var byteCount: Int {
    switch self {
    case .deliver(_, let chunk): chunk.data.count
    case .rendered(_, let block): 2 * block.samples.count
    default: 0
    }
  }

  package var title: String {
    switch self {
    case .genesis: "genesis"
    case .deadline: "deadline"
    case .call(_, let call): "\(call)".prefix { $0 != "(" }.description
    case .event(let event): "\(event)".prefix { $0 != "(" }.description
    case .answer(let operation, let answer): "answer to operation \(operation): \(answer)"
    case .deliver(let id, let chunk):
      "\(chunk.frameCount) frames of source \(id.number), \(chunk.format.text)"
    case .rendered(let track, let block): "\(block.frameCount) frames received of track \(track)"
    case .pull(let units): "a pull of \(units) units of 10 ms"
    }
  }

  package func write(to transcript: inout Transcript) {
    switch self {
    case .genesis(let policy):
      transcript.addActor(.audioSession, configuration: CanonicalJSON.text(policy), seed: [])
    case .deadline: break
    case .call(let id, let call):
      let parts = CallText(encoding: call)
      transcript.add(CallRequestRow(call: id, name: parts.name, arguments: parts.arguments))
    case .event(let event):
      let parts = CallText(encoding: event)
      transcript.add(CallRequestRow(call: 0, name: parts.name, arguments: parts.arguments))
    case .answer(let operation, let answer): transcript.add(answer.row(operation))
    case .deliver(let id, let chunk):
      let head = DeliveryHead(
        source: id, format: chunk.format, captureTime: chunk.captureTimeNanoseconds)
      var row = CaptureRow(track: id.number, kind: CanonicalJSON.text(head))
      (row.channels, row.samples) = (chunk.format.channels, chunk.frameCount)
      if !chunk.data.isEmpty { row.content = transcript.content(chunk.data) }
      transcript.add(row)
    case .rendered(let track, let block):
      // The samples are not stored, because a replay of the receiving peer decodes them again.
      var row = CaptureRow(track: track, kind: "rendered")
      (row.channels, row.samples) = (block.channels, block.frameCount)
      transcript.add(row)
    case .pull(let units):
      var row = CaptureRow(kind: "pull")
      row.samples = units
      transcript.add(row)
    }
  }
}

extension AudioDeviceAnswer {
  fileprivate func row(_ operation: UInt32) -> NetworkRow {
    switch self {
    case .ok: NetworkRow(kind: "device-ok", request: operation)
    case .failed(let code): NetworkRow(kind: "device-failed", request: operation, code: code)
    case .permission(let permission):
      NetworkRow(kind: "device-permission", request: operation, address: permission.rawValue)
    }
  }

  fileprivate init?(_ row: NetworkRow) {
    switch row.kind {
    case "device-ok": self = .ok
    case "device-failed":
      guard let code = row.code else { return nil }
      self = .failed(code: code)
    case "device-permission":
      guard let permission = row.address.flatMap({ AudioPermission(rawValue: $0) }) else {
        return nil
      }
      self = .permission(permission)
    default: return nil
    }
  }
}

/// Restores the inputs of audio sessions from their rows.
package struct AudioSessionDecoder: InputDecoder {
  private let source: ContentSource
  private var last: (number: Int64, bytes: [UInt8])?

  package init(_ source: ContentSource) { self.source = source }

  package mutating func input(of head: StepHead, _ rows: borrowing RowList, _ range: Range<Int>)
    -> (any RecordedInput)?
  {
    if head.kind == .deadline { return AudioSessionAction.deadline }
    for row in range {
      if let content = ContentRow(rows, row) { last = (content.number, content.bytes) }
    }
    guard let row = range.last else { return nil }
    switch head.kind {
    case .genesis:
      return ActorRow(rows, row)
        .flatMap { CanonicalJSON.value(AudioSessionPolicy.self, from: $0.configuration) }
        .map { AudioSessionAction.genesis($0) }
    case .call: return CallRequestRow(rows, row)?.sessionCall.map { $0 as any RecordedInput }
    case .event: return CallRequestRow(rows, row)?.sessionEvent.map { $0 as any RecordedInput }
    case .answer:
      guard let row = NetworkRow(rows, row), let operation = row.request,
        let answer = AudioDeviceAnswer(row)
      else { return nil }
      return AudioSessionAction.answer(operation: operation, answer)
    case .deliver: return CaptureRow(rows, row).flatMap { delivery($0) }
    case .rendered: return CaptureRow(rows, row)?.rendered.map { $0 as any RecordedInput }
    case .pull:
      guard let units = CaptureRow(rows, row)?.samples else { return nil }
      return AudioSessionAction.pull(units: units)
    default: return nil
    }
  }

  /// Returns the format of a delivery, which its row's kind contains as JSON; nil for other rows.
  package static func format(ofDelivery kind: String) -> AudioFormat? {
    CanonicalJSON.value(DeliveryHead.self, from: kind)?.format
  }

  private mutating func delivery(_ row: CaptureRow) -> AudioSessionAction? {
    guard let head = CanonicalJSON.value(DeliveryHead.self, from: row.kind) else { return nil }
    var data: [UInt8] = []
    if let content = row.content {
      guard let found = bytes(ofContent: content.number) else { return nil }
      data = found
    }
    let chunk = PCMChunk(
      format: head.format, captureTimeNanoseconds: head.captureTime, data: data)
    // The row's columns must agree with its JSON and with the samples that it refers to.
    guard row.track == head.source.number, row.channels == head.format.channels,
      row.samples == chunk.frameCount
    else { return nil }
    return .deliver(head.source, chunk)
  }

  private mutating func bytes(ofContent number: Int64) -> [UInt8]? {
    if let last, last.number == number { return last.bytes }
    guard let bytes = source.bytes(of: number) else { return nil }
    last = (number, bytes)
    return bytes
  }
}

extension CallRequestRow {
  fileprivate var sessionCall: AudioSessionAction? {
    CallText(name: name, arguments: arguments).value(AudioSessionCall.self)
      .map { .call(id: call, $0) }
  }

  fileprivate var sessionEvent: AudioSessionAction? {
    CallText(name: name, arguments: arguments).value(AudioDeviceEvent.self).map { .event($0) }
  }
}

extension CaptureRow {
  fileprivate var rendered: AudioSessionAction? {
    guard let channels, let samples, channels > 0, samples >= 0 else { return nil }
    return .rendered(track: track, AudioBlock(blank: samples, channels: channels))
  }
}

package import Room
import SDP
import Wire

extension MachineKind {
  /// The client of a room at a service.
  package static let room = MachineKind(rawValue: 3)
}

extension StepKind {
  /// A signaling message that a transport received.
  fileprivate static let frame = StepKind(1)
  /// Another event of a transport, such as that it was closed.
  fileprivate static let transport = StepKind(2)
  /// A response to an HTTP request.
  fileprivate static let response = StepKind(5)
  /// An event of one of the room's peer connections.
  fileprivate static let connection = StepKind(6)
  /// An event of the helper that shares a screen.
  fileprivate static let share = StepKind(7)
}

extension RoomInput: RecordedInput {
  package var stepKind: StepKind {
    switch self {
    case .genesis: .genesis
    case .deadline: .deadline
    case .call: .call
    case .transport(_, .frame): .frame
    case .transport: .transport
    case .response: .response
    case .connection: .connection
    case .share: .share
    }
  }

  package var byteCount: Int {
    switch self {
    case .transport(_, .frame(let frame)): frame.byteCount
    case .response(_, .answered(_, _, let body)): body.count
    case .connection(_, .report(.description(let description, _))): description.sdp.utf8.count
    case .connection(_, .report(.stats(_, let text))): text.utf8.count
    case .connection(_, .report(.channelMessage(_, let frame))): frame.byteCount
    default: 0
    }
  }

  package var title: String {
    switch self {
    case .genesis: "genesis"
    case .deadline: "deadline"
    case .call(_, let call): "\(call)".prefix { $0 != "(" }.description
    case .transport(let id, .frame(let frame)):
      "\(SignalingWords(frame).type) over transport \(id.number)"
    case .transport(let id, let event):
      "\("\(event)".prefix { $0 != "(" }) transport \(id.number)"
    case .response(let id, let result): "\(result.title) to request \(id.number)"
    case .connection(let id, let report): "\(report.title) of connection \(id.number)"
    case .share(let report): "helper \("\(report)".prefix { $0 != "(" })"
    }
  }

  package func write(to transcript: inout Transcript) {
    switch self {
    case .genesis(let configuration, let seed):
      transcript.addActor(.room, configuration: CanonicalJSON.text(configuration), seed: seed)
    case .deadline: break
    case .call(let id, let call):
      let parts = CallText(encoding: call)
      transcript.add(CallRequestRow(call: id, name: parts.name, arguments: parts.arguments))
    case .transport(let id, .frame(let frame)):
      transcript.add(SignalingRow(frame, over: "websocket \(id.number)", isInbound: true))
    case .transport(let id, let event):
      transcript.add(
        CallRequestRow(
          call: id.number, name: "transport \(CallText(encoding: event).name)",
          arguments: CanonicalJSON.text(event)))
    case .response(let id, let result):
      transcript.add(
        SignalingRow(
          direction: .inbound, transport: "http \(id.number)", type: result.title,
          message: CanonicalJSON.text(ResponseText(result))))
    case .connection(let id, .opened(let peer)):
      // The peer number is in the column for peers, so it changes when peers are renumbered.
      transcript.add(
        CallRequestRow(
          call: id.number, name: RoomConnectionReport.openedName, arguments: "{}"), of: peer)
    case .connection(let id, let report):
      transcript.add(
        CallRequestRow(
          call: id.number, name: "connection \(report.title)",
          arguments: CanonicalJSON.text(report)))
    case .share(let report):
      transcript.add(
        CallRequestRow(
          call: 0, name: "helper \(CallText(encoding: report).name)",
          arguments: CanonicalJSON.text(report)))
    }
  }
}

extension RoomConnectionReport {
  fileprivate static let openedName = "connection opened"

  /// One or two words that describe the event.
  var title: String {
    switch self {
    case .report(.state(let state)): "state \(state.rawValue)"
    case .report(let report): CallText(encoding: report).name
    default: CallText(encoding: self).name
    }
  }
}

extension HTTPResult {
  fileprivate var title: String {
    switch self {
    case .answered(let status, _, _): "\(status)"
    case .failed: "failure"
    }
  }
}

/// Restores the inputs of rooms from their rows.
package struct RoomDecoder: InputDecoder {
  package init() {}

  package func input(of head: StepHead, _ rows: borrowing RowList, _ range: Range<Int>)
    -> (any RecordedInput)?
  {
    if head.kind == .deadline { return RoomInput.deadline }
    guard let row = range.last else { return nil }
    switch head.kind {
    case .genesis:
      guard let row = ActorRow(rows, row) else { return nil }
      return CanonicalJSON.value(RoomConfiguration.self, from: row.configuration)
        .map { RoomInput.genesis($0, seed: row.seed) }
    case .frame: return SignalingRow(rows, row).flatMap { $0.transportFrame }
    case .response: return SignalingRow(rows, row).flatMap { $0.response }
    case .call, .transport, .connection, .share:
      return CallRequestRow(rows, row).flatMap { $0.roomInput(head.kind) }
    default: return nil
    }
  }
}

extension SignalingRow {
  fileprivate func number(after name: String) -> UInt32? {
    guard direction == .inbound, transport.hasPrefix(name + " ") else { return nil }
    return UInt32(transport.dropFirst(name.count + 1))
  }

  fileprivate var transportFrame: RoomInput? {
    guard let number = number(after: "websocket"), let frame = SignalingWords.frame(self) else {
      return nil
    }
    return .transport(TransportID(number), .frame(frame))
  }

  fileprivate var response: RoomInput? {
    guard let number = number(after: "http"),
      let text = CanonicalJSON.value(ResponseText.self, from: message), let result = text.result
    else { return nil }
    return .response(RequestID(number), result)
  }
}

extension CallRequestRow {
  fileprivate func roomInput(_ kind: StepKind) -> RoomInput? {
    switch kind {
    case .call:
      CallText(name: name, arguments: arguments).value(RoomCall.self).map {
        .call(id: call, $0)
      }
    case .transport:
      CanonicalJSON.value(TransportEvent.self, from: arguments).map {
        .transport(TransportID(call), $0)
      }
    case .connection where name == RoomConnectionReport.openedName:
      .connection(ConnectionID(call), .opened(peer: peer.number))
    case .connection:
      CanonicalJSON.value(RoomConnectionReport.self, from: arguments).map {
        .connection(ConnectionID(call), $0)
      }
    case .share: CanonicalJSON.value(ShareReport.self, from: arguments).map { .share($0) }
    default: nil
    }
  }
}

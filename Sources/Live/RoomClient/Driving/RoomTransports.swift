import Room
import Signaling
import Synchronization

/// The WebSockets and HTTP requests of a room's signaling.
final class RoomTransports: Sendable {
  private struct Entry {
    var socket: WebSocket?
    var task: Task<Void, Never>?
  }

  private let entries = Mutex<[TransportID: Entry]>([:])

  /// Opens, uses or closes a WebSocket; its events are reported in order.
  func carryOut(
    _ request: TransportRequest, _ id: TransportID,
    tell: @escaping @Sendable (TransportEvent) -> Void
  ) {
    switch request {
    case .open(let url, let subprotocols, let headers):
      let task = Task { [weak self] in
        await self?.run(url, subprotocols, headers, id, tell)
        self?.entries.withLock { $0[id] = nil }
      }
      entries.withLock { $0[id, default: Entry()].task = task }
    case .send(let frame): socket(id)?.post(frame)
    case .close(let code, let reason):
      guard let socket = socket(id) else {
        // Cancel what is still being opened.
        entries.withLock { $0[id]?.task?.cancel() }
        return
      }
      socket.post(close: WebSocketCloseCode(rawValue: code), reason: reason)
    }
  }

  private func socket(_ id: TransportID) -> WebSocket? { entries.withLock { $0[id]?.socket } }

  private func run(
    _ url: String, _ subprotocols: [String], _ headers: [HTTPField], _ id: TransportID,
    _ tell: @Sendable (TransportEvent) -> Void
  ) async {
    let socket: WebSocket
    do throws(WebSocketError) {
      socket = try await WebSocket.connect(
        to: url, subprotocols: subprotocols, headers: headers.map { ($0.name, $0.value) })
    } catch {
      tell(.failed(error.reason))
      return
    }
    entries.withLock { $0[id, default: Entry()].socket = socket }
    tell(.opened(subprotocol: socket.subprotocol))
    while let frame = await socket.receive() { tell(.frame(frame)) }
    let closure = await socket.closed()
    if closure.isClean {
      tell(.closed(code: closure.code.rawValue, reason: closure.reason))
    } else {
      tell(.failed(closure.reason.isEmpty ? "the connection was lost" : closure.reason))
    }
  }

  /// Sends an HTTP request and returns its result.
  func send(
    _ request: ServiceRequest, tell: @escaping @Sendable (HTTPResult) -> Void
  ) {
    Task {
      do throws(HTTPError) {
        let response = try await HTTPClient().send(
          request.method, request.url, headers: request.fields.map { ($0.name, $0.value) },
          body: request.body.isEmpty ? nil : request.body)
        tell(
          .answered(
            status: response.status,
            fields: response.headers.map { HTTPField($0.name, $0.value) }, body: response.body))
      } catch {
        tell(.failed(error.reason))
      }
    }
  }

  /// Closes everything that is open, after sending what is queued.
  func endAll() {
    let open = entries.withLock { entries in
      defer { entries = [:] }
      return Array(entries.values)
    }
    for entry in open {
      if let socket = entry.socket {
        socket.post(close: .normal)
      } else {
        entry.task?.cancel()
      }
    }
  }
}

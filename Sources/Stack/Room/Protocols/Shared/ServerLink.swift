import Wire

/// The transport to a server: a WebSocket that is replaced after a loss.
struct ServerLink: Sendable {
  enum State: Hashable, Sendable {
    case idle
    case opening(TransportID, until: Instant)
    case open(TransportID)
    /// Waiting for the next attempt.
    case waiting(until: Instant)
    case closing(TransportID, until: Instant)
    case over
  }

  /// The result of an input.
  enum News: Hashable, Sendable {
    case opened(subprotocol: String?)
    case frame(SignalingFrame)
    /// The transport could not be opened, failed, or was closed by the server.
    case lost(code: Int?, reason: String)
    /// The local close is complete.
    case closed
  }

  static let openSeconds: Int64 = 15
  static let closeSeconds: Int64 = 3
  /// The maximum number of attempts; the pauses between attempts double from half a second to eight
  /// seconds.
  static let attemptsMaximum = 12

  private var urls: [String]
  private let subprotocols: [String]
  private let headers: [HTTPField]
  private(set) var state = State.idle
  /// Attempts since the last success.
  private(set) var attempt = 0
  private var transportCount: UInt32 = 0

  init(urls: [String], subprotocols: [String] = [], headers: [HTTPField] = []) {
    self.urls = urls
    self.subprotocols = subprotocols
    self.headers = headers
  }

  var isOpen: Bool {
    if case .open = state { true } else { false }
  }

  /// The URL for the next attempt; nil if there are no URLs.
  var url: String? { urls.isEmpty ? nil : urls[attempt % urls.count] }
  /// Whether every URL was tried at least once.
  var isExhausted: Bool { attempt >= urls.count }
  /// Whether all attempts since the last success are used up.
  var isHopeless: Bool { attempt >= ServerLink.attemptsMaximum }

  var deadline: Instant? {
    switch state {
    case .opening(_, let until), .waiting(let until), .closing(_, let until): until
    case .idle, .open, .over: nil
    }
  }

  /// Uses other URLs from now on.
  mutating func redirect(to urls: [String]) {
    self.urls = urls
    attempt = 0
  }

  mutating func open(at now: Instant, into outputs: inout [SignalingOutput]) {
    guard let url else { return }
    transportCount += 1
    let id = TransportID(transportCount)
    state = .opening(id, until: now + .seconds(ServerLink.openSeconds))
    attempt += 1
    outputs.append(.transport(id, .open(url: url, subprotocols: subprotocols, headers: headers)))
  }

  /// Opens another transport after a pause.
  mutating func retry(at now: Instant) {
    let milliseconds = min(Int64(500) << min(max(attempt, 1) - 1, 6), 8_000)
    state = .waiting(until: now + .milliseconds(milliseconds))
  }

  /// Sends a message, or drops it if the transport is not open.
  func send(_ text: String, into outputs: inout [SignalingOutput]) {
    guard case .open(let id) = state else { return }
    outputs.append(.transport(id, .send(.text(text))))
  }

  /// Closes the transport; returns true if there is nothing to wait for.
  mutating func close(
    code: UInt16 = 1000, reason: String = "", at now: Instant,
    into outputs: inout [SignalingOutput]
  ) -> Bool {
    switch state {
    case .opening(let id, _), .open(let id):
      outputs.append(.transport(id, .close(code: code, reason: reason)))
      state = .closing(id, until: now + .seconds(ServerLink.closeSeconds))
      return false
    case .closing: return false
    case .idle, .waiting, .over:
      state = .over
      return true
    }
  }

  /// Abandons a dead transport immediately and ignores its last events.
  mutating func drop(into outputs: inout [SignalingOutput]) {
    switch state {
    case .opening(let id, _), .open(let id):
      outputs.append(.transport(id, .close(code: 1001, reason: "")))
      state = .idle
    default: break
    }
  }

  /// Handles a transport event; returns nil if the event is from an earlier transport or does not
  /// fit the state.
  mutating func handle(_ id: TransportID, _ event: TransportEvent) -> News? {
    switch (state, event) {
    case (.opening(id, _), .opened(let subprotocol)):
      state = .open(id)
      return .opened(subprotocol: subprotocol)
    case (.open(id), .frame(let frame)): return .frame(frame)
    case (.opening(id, _), .closed(let code, let reason)),
      (.open(id), .closed(let code, let reason)):
      state = .idle
      return .lost(code: Int(code), reason: reason)
    case (.opening(id, _), .failed(let reason)), (.open(id), .failed(let reason)):
      state = .idle
      return .lost(code: nil, reason: reason)
    case (.closing(id, _), .closed), (.closing(id, _), .failed):
      state = .over
      return .closed
    default: return nil
    }
  }

  /// Records success, so that attempts count from zero after the next loss.
  mutating func settle() { attempt = 0 }

  /// Handles an expired deadline; returns the news for the room, or nil if there is none.
  mutating func pass(at now: Instant, into outputs: inout [SignalingOutput]) -> News? {
    guard let deadline, deadline <= now else { return nil }
    switch state {
    case .opening(let id, _):
      outputs.append(.transport(id, .close(code: 1001, reason: "")))
      state = .idle
      return .lost(code: nil, reason: "no answer within \(ServerLink.openSeconds) s")
    case .waiting:
      open(at: now, into: &outputs)
      return nil
    case .closing:
      state = .over
      return .closed
    case .idle, .open, .over: return nil
    }
  }
}

// MARK: - RequestTable

/// Unanswered requests by transaction name.
struct RequestTable<Purpose: Sendable>: Sendable {
  private struct Request: Sendable {
    var number: UInt32
    var purpose: Purpose
    var due: Instant
  }

  private let prefix: String
  private var count: UInt32 = 0
  private var requests: [Request] = []

  /// Creates an empty table.
  ///
  /// - Parameter prefix: the start of the names, so that names in two sessions differ.
  init(prefix: String) { self.prefix = prefix + "-" }

  var deadline: Instant? { requests.map(\.due).min() }
  var waitingCount: Int { requests.count }

  /// Records a request and returns its transaction name.
  mutating func add(_ purpose: Purpose, due: Instant) -> String {
    prefix + String(addNumber(purpose, due: due))
  }

  /// Records a request and returns its number, for protocols that use numbers.
  mutating func addNumber(_ purpose: Purpose, due: Instant) -> UInt32 {
    count &+= 1
    requests.append(Request(number: count, purpose: purpose, due: due))
    return count
  }

  private func number(_ transaction: String) -> UInt32? {
    transaction.hasPrefix(prefix) ? UInt32(transaction.dropFirst(prefix.count)) : nil
  }

  /// Returns the purpose of a transaction; nil if the transaction is unknown.
  func purpose(of transaction: String) -> Purpose? {
    number(transaction).flatMap { number in requests.first { $0.number == number }?.purpose }
  }

  /// Removes a transaction and returns its purpose; nil if the transaction is unknown.
  mutating func settle(_ transaction: String) -> Purpose? {
    number(transaction).flatMap { settle(number: $0) }
  }

  mutating func settle(number: UInt32) -> Purpose? {
    guard let index = requests.firstIndex(where: { $0.number == number }) else { return nil }
    return requests.remove(at: index).purpose
  }

  /// Removes and returns requests that timed out.
  mutating func expire(at now: Instant) -> [Purpose] {
    let late = requests.filter { $0.due <= now }
    requests.removeAll { $0.due <= now }
    return late.map(\.purpose)
  }

  /// Removes and returns all requests, oldest first.
  mutating func removeAll() -> [Purpose] {
    defer { requests = [] }
    return requests.map(\.purpose)
  }
}

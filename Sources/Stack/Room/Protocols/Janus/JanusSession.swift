import SDP
import Wire

/// A session with a Janus server: transport, handles and unanswered requests.
struct JanusSession: Sendable {
  enum News: Hashable, Sendable {
    case opened
    /// The session exists, either as a new one or as the one from before the transport was lost.
    case ready(isNew: Bool)
    case attached(JanusRole)
    case reply(JanusRole, JanusAsk, JanusReply)
    case event(JanusRole, JanusEvent)
    /// The transport was lost, or the server is unavailable.
    case lost(String)
    /// The server no longer knows the session or a handle, or refuses to create a session.
    case refused(code: Int?, reason: String)
    /// The session has ended and the transport is closed.
    case closed
  }

  static let subprotocol = "janus-protocol"
  static let answerSeconds: Int64 = 10
  static let leaveSeconds: Int64 = 2
  /// The number of seconds between keepalives; by default, Janus ends a session after 60 seconds of
  /// silence.
  static let keepaliveSeconds: Int64 = 25

  var link: ServerLink
  private var requests: RequestTable<JanusPurpose>
  private let secret: String?
  private let token: String?
  private var id: Int64?
  private var handles: [(role: JanusRole, id: Int64)] = []
  private var isReady = false
  private var keepaliveDue: Instant?
  /// Actions that will no longer be answered.
  private var abandoned: [(action: ActionID, setting: JanusSetting)] = []

  init(_ configuration: SignalingConfiguration, prefix: String) {
    link = ServerLink(urls: configuration.urls, subprotocols: [JanusSession.subprotocol])
    requests = RequestTable(prefix: prefix)
    secret = configuration.options["apisecret"]
    token = configuration.options["token"]
  }

  var deadline: Instant? {
    earliest(earliest(link.deadline, requests.deadline), keepaliveDue)
  }

  /// Whether there is a session that another transport can claim.
  var hasSession: Bool { id != nil }
  var waitingCount: Int { requests.waitingCount }

  var status: [(name: String, value: String)] {
    [
      ("session", id.map { String($0) } ?? "none"),
      ("handles", handles.map { "\($0.role.rawValue) \($0.id)" }.joined(separator: ", ")),
      ("waiting", String(requests.waitingCount)),
    ]
  }

  func has(_ role: JanusRole) -> Bool { handles.contains { $0.role == role } }

  private mutating func abandon() {
    for purpose in requests.removeAll() { abandon(purpose) }
  }

  private mutating func abandon(_ purpose: JanusPurpose) {
    guard case .message(_, .configure(let action?, let setting)) = purpose else { return }
    abandoned.append((action, setting))
  }

  /// Removes and returns the actions of a lost transport or session.
  mutating func removeAbandoned() -> [(action: ActionID, setting: JanusSetting)] {
    defer { abandoned = [] }
    return abandoned
  }

  // MARK: Sending

  mutating func open(at now: Instant, into outputs: inout [SignalingOutput]) {
    link.open(at: now, into: &outputs)
  }

  mutating func dropLink(into outputs: inout [SignalingOutput]) {
    link.drop(into: &outputs)
    isReady = false
    keepaliveDue = nil
    abandon()
  }

  /// Drops the session, which the server no longer has.
  mutating func forget() {
    id = nil
    handles = []
    isReady = false
    keepaliveDue = nil
    abandon()
  }

  mutating func create(at now: Instant, into outputs: inout [SignalingOutput]) {
    forget()
    request("create", .create, at: now, into: &outputs)
  }

  mutating func attach(
    _ plugin: String, as role: JanusRole, at now: Instant, into outputs: inout [SignalingOutput]
  ) {
    let members = [JSONValue.Member("plugin", .text("janus.plugin." + plugin))]
    request("attach", .attach(role), members, at: now, into: &outputs)
  }

  /// Detaches a handle without waiting for the answer.
  mutating func detach(
    _ role: JanusRole, at now: Instant, into outputs: inout [SignalingOutput]
  ) {
    guard let handle = handles.first(where: { $0.role == role }) else { return }
    handles.removeAll { $0.role == role }
    let members = [JSONValue.Member("handle_id", .integer(handle.id))]
    request("detach", .detach, members, at: now, into: &outputs)
  }

  mutating func message(
    _ body: JSONValue, _ description: SessionDescription?, _ ask: JanusAsk, to role: JanusRole,
    at now: Instant, into outputs: inout [SignalingOutput]
  ) {
    guard link.isOpen, let handle = handles.first(where: { $0.role == role }) else {
      return abandon(.message(role, ask))
    }
    var members = [JSONValue.Member("handle_id", .integer(handle.id)), .init("body", body)]
    if let description { members.append(.init("jsep", .jsep(description))) }
    request("message", .message(role, ask), members, at: now, into: &outputs)
  }

  mutating func trickle(
    _ candidate: CandidateInit?, to role: JanusRole, at now: Instant,
    into outputs: inout [SignalingOutput]
  ) {
    guard let handle = handles.first(where: { $0.role == role }) else { return }
    let value: JSONValue =
      candidate.map {
        .members(
          ("candidate", .text($0.candidate)), ("sdpMid", $0.sdpMid.map { .text($0) }),
          ("sdpMLineIndex", $0.sdpMLineIndex.map { .integer(Int64($0)) }))
      } ?? .members(("completed", true))
    let members = [JSONValue.Member("handle_id", .integer(handle.id)), .init("candidate", value)]
    request("trickle", .trickle, members, at: now, into: &outputs)
  }

  /// Ends the session, then the transport; returns true if there is nothing to wait for.
  mutating func leave(at now: Instant, into outputs: inout [SignalingOutput]) -> Bool {
    abandon()
    keepaliveDue = nil
    guard link.isOpen, isReady else { return link.close(at: now, into: &outputs) }
    isReady = false
    request(
      "destroy", .destroy, within: JanusSession.leaveSeconds, at: now, into: &outputs)
    return false
  }

  private mutating func request(
    _ type: String, _ purpose: JanusPurpose, _ members: [JSONValue.Member] = [],
    within seconds: Int64 = answerSeconds, at now: Instant, into outputs: inout [SignalingOutput]
  ) {
    guard link.isOpen else { return }
    let transaction = requests.add(purpose, due: now + .seconds(seconds))
    var all = [JSONValue.Member("janus", .text(type)), .init("transaction", .text(transaction))]
    if let id { all.append(.init("session_id", .integer(id))) }
    if let token { all.append(.init("token", .text(token))) }
    if let secret { all.append(.init("apisecret", .text(secret))) }
    link.send(JSONValue.object(all + members).json, into: &outputs)
    if id != nil, keepaliveDue != nil {
      keepaliveDue = now + .seconds(JanusSession.keepaliveSeconds)
    }
  }

  // MARK: Receiving

  mutating func handle(
    _ transport: TransportID, _ event: TransportEvent, at now: Instant,
    into outputs: inout [SignalingOutput]
  ) -> [News] {
    switch link.handle(transport, event) {
    case .opened?:
      if id == nil {
        create(at: now, into: &outputs)
      } else {
        request("claim", .claim, at: now, into: &outputs)
      }
      return [.opened]
    case .lost(let code, let reason)?: return [lose(code.map { "\($0) \(reason)" } ?? reason)]
    case .closed?: return [.closed]
    case .frame(.text(let text))?:
      guard let value = try? JSONValue(parsing: text), let message = JanusMessage(value) else {
        return []
      }
      return handle(message, at: now, into: &outputs)
    case .frame(.binary)?, nil: return []
    }
  }

  private mutating func lose(_ reason: String) -> News {
    isReady = false
    keepaliveDue = nil
    // Abandon all requests, because the server will not answer them. If another transport claims
    // the session, the plugins repeat them.
    abandon()
    return .lost(reason)
  }

  private mutating func handle(
    _ message: JanusMessage, at now: Instant, into outputs: inout [SignalingOutput]
  ) -> [News] {
    // Ignore messages about an earlier session.
    if let session = message.session, let id, session != id { return [] }
    switch message.type {
    case "ack":
      // For keepalives and candidates, this message is the only answer.
      guard let transaction = message.transaction, let purpose = requests.purpose(of: transaction),
        purpose == .keepalive || purpose == .trickle
      else { return [] }
      _ = requests.settle(transaction)
      return []
    case "success", "error", "event":
      if let purpose = message.transaction.flatMap({ requests.settle($0) }) {
        return settle(purpose, message, at: now, into: &outputs)
      }
      guard message.type == "event", let role = role(of: message), let data = message.data else {
        return []
      }
      return [.event(role, .data(data, message.description))]
    case "timeout":
      forget()
      return [.refused(code: nil, reason: "the server ended the session for its silence")]
    default: return record(message)
    }
  }

  private func role(of message: JanusMessage) -> JanusRole? {
    handles.first { $0.id == message.sender }?.role
  }

  private mutating func record(_ message: JanusMessage) -> [News] {
    guard let role = role(of: message) else { return [] }
    switch message.type {
    case "trickle":
      let several = message.whole["candidates"]?.elements ?? []
      let all = several.isEmpty ? message.whole["candidate"].map { [$0] } ?? [] : several
      return all.compactMap(JanusMessage.candidate).map { .event(role, .candidate($0)) }
    case "hangup":
      return [.event(role, .hangup(message.whole["reason"]?.text ?? "no reason"))]
    case "detached":
      handles.removeAll { $0.role == role }
      return [.event(role, .detached)]
    default: return [.event(role, .note(message.type, message.whole))]
    }
  }

  private mutating func settle(
    _ purpose: JanusPurpose, _ message: JanusMessage, at now: Instant,
    into outputs: inout [SignalingOutput]
  ) -> [News] {
    if let error = message.error {
      return fail(purpose, error.code, error.reason, at: now, into: &outputs)
    }
    switch purpose {
    case .create, .claim:
      if purpose == .create {
        guard let new = message.id else { return [.refused(code: nil, reason: "no session")] }
        id = new
      }
      isReady = true
      keepaliveDue = now + .seconds(JanusSession.keepaliveSeconds)
      return [.ready(isNew: purpose == .create)]
    case .attach(let role):
      guard let handle = message.id else { return [] }
      handles.removeAll { $0.role == role }
      handles.append((role, handle))
      return [.attached(role)]
    case .message(let role, let ask):
      return [.reply(role, ask, .data(message.data ?? .null, message.description))]
    case .destroy: return link.close(at: now, into: &outputs) ? [.closed] : []
    case .keepalive, .trickle, .detach: return []
    }
  }

  private mutating func fail(
    _ purpose: JanusPurpose, _ code: Int?, _ reason: String, at now: Instant,
    into outputs: inout [SignalingOutput]
  ) -> [News] {
    // 458 and 459: the server no longer knows the session or the handle.
    let isGone = code == 458 || code == 459
    switch purpose {
    case .create: return [.refused(code: code, reason: reason)]
    case .claim:
      create(at: now, into: &outputs)
      return []
    case .destroy: return link.close(at: now, into: &outputs) ? [.closed] : []
    case .attach(let role):
      if isGone { return [gone(code, reason)] }
      return [.reply(role, .join, .failed(code: code, reason: reason))]
    case .message(let role, let ask):
      if isGone {
        abandon(purpose)
        return [gone(code, reason)]
      }
      return [.reply(role, ask, .failed(code: code, reason: reason))]
    case .keepalive: return isGone ? [gone(code, reason)] : []
    case .trickle, .detach: return []
    }
  }

  private mutating func gone(_ code: Int?, _ reason: String) -> News {
    forget()
    return .refused(code: code, reason: reason)
  }

  // MARK: Timers

  mutating func pass(at now: Instant, into outputs: inout [SignalingOutput]) -> [News] {
    var news: [News] = []
    switch link.pass(at: now, into: &outputs) {
    case .lost(_, let reason)?: news.append(lose(reason))
    case .closed?: news.append(.closed)
    default: break
    }
    for purpose in requests.expire(at: now) {
      switch purpose {
      case .create, .claim, .keepalive:
        dropLink(into: &outputs)
        news.append(
          .lost("the server gave no answer within \(JanusSession.answerSeconds) s"))
      default:
        news += fail(
          purpose, nil, "the server gave no answer within \(JanusSession.answerSeconds) s",
          at: now, into: &outputs)
      }
    }
    if let due = keepaliveDue, due <= now {
      keepaliveDue = now + .seconds(JanusSession.keepaliveSeconds)
      request("keepalive", .keepalive, at: now, into: &outputs)
    }
    return news
  }
}

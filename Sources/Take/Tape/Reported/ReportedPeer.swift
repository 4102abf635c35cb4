import Observer
import Wire

/// The state of a connection as reports describe it.
struct ReportedPeer {
  typealias Emit = (ReportedOutput.Row) -> Void

  private var states = [
    "signaling": "stable", "ice-connection": "new", "connection": "new", "ice-gathering": "new",
    "dtls": "new",
  ]
  /// The candidates that already have a row.
  private var candidates: Set<String> = []
  /// The labels of data channels that the remote peer opened.
  private var remoteChannels: Set<String> = []
  private var objects = ReportedObjects()
  private var media = ReportedMedia()
  private var pairs = ReportedPairs()
  private var channels: [String: (number: UInt32, state: String)] = [:]
  /// The ids of setLocalDescription calls that let the browser generate the description.
  private var implicit: Set<UInt32> = []

  /// The maximum number of entries in each collection, since a file may contain any number.
  static let most = 20_000

  // MARK: Calls and events

  /// - Parameter id: the number of the call; nil if results of calls are not read.
  mutating func call(_ id: UInt32?, _ name: String, _ arguments: String, _ emit: Emit) {
    switch name {
    case "setLocalDescription", "setRemoteDescription":
      let isInbound = name == "setRemoteDescription"
      guard let id, !isInbound else {
        describe(arguments, isInbound: isInbound, emit)
        return
      }
      let isStated = value(arguments).map { $0["sdp"]?.text?.isEmpty == false } ?? false
      let isRollback = value(arguments)?["type"]?.text == "rollback"
      if isStated || isRollback {
        describe(arguments, isInbound: false, emit)
      } else if implicit.count < Self.most {
        implicit.insert(id)
      }
    case "addIceCandidate": add(candidate: arguments, isLocal: false, emit)
    case "close":
      move("signaling", "closed", emit)
      move("connection", "closed", emit)
    default: break
    }
  }

  /// Reads the result of a call, the only place where a description that the browser generated
  /// itself appears.
  mutating func result(of id: UInt32, _ reply: String?, _ emit: Emit) {
    guard implicit.remove(id) != nil, let reply else { return }
    describe(reply, isInbound: false, emit)
  }

  /// Emits a row for a description in a JSON value, if there is one.
  private func describe(_ text: String, isInbound: Bool, _ emit: Emit) {
    guard let value = value(text), let type = value["type"]?.text, let sdp = value["sdp"]?.text
    else { return }
    emit(
      .signaling(
        SignalingRow(
          direction: Direction(isInbound: isInbound), transport: "reported", type: type,
          message: sdp)))
  }

  /// Returns the number of an m-section's track; nil if it is unknown.
  func track(mid: String) -> UInt32? { media.track(mid: mid) }

  private static let machines = [
    "signalingstatechange": "signaling", "iceconnectionstatechange": "ice-connection",
    "connectionstatechange": "connection", "icegatheringstatechange": "ice-gathering",
    "dtlsstatechange": "dtls",
  ]

  mutating func event(_ name: String, _ detail: String, _ emit: Emit) {
    if let machine = Self.machines[name] {
      guard let value = value(detail) else { return }
      if let state = value.text ?? value["state"]?.text { move(machine, state, emit) }
    } else if name == "icecandidate" {
      add(candidate: detail, isLocal: true, emit)
    } else if name == ReportedMachine.framesEvent {
      if let mid = value(detail)?["mid"]?.text { media.add(mid: mid) }
    } else if name == "datachannel", remoteChannels.count < Self.most,
      let value = value(detail)
    {
      let label = value["label"]?.text ?? value.elements.last?.text
      if let label { remoteChannels.insert(label) }
    }
  }

  private func value(_ text: String) -> JSONValue? {
    try? JSONValue(parsing: text, limits: ReportedLines.limits)
  }

  /// Records a state; Chromium's older logs prefix it, as in `ICEConnectionStateChecking`.
  private mutating func move(_ machine: String, _ name: String, _ emit: Emit) {
    var state = name
    for prefix in ReportedNames.statePrefixes where state.hasPrefix(prefix) {
      state = String(state.dropFirst(prefix.count))
    }
    state = state.first.map { $0.lowercased() + state.dropFirst() } ?? state
    let before = states[machine] ?? "new"
    guard state != before, state.utf8.count < 100 else { return }
    states[machine] = state
    emit(.state(StateRow(machine: machine, from: before, to: state)))
  }

  private mutating func add(candidate text: String, isLocal: Bool, _ emit: Emit) {
    guard let value = value(text), let line = value["candidate"]?.text ?? value.text,
      !line.isEmpty
    else { return }
    emit(
      .signaling(
        SignalingRow(
          direction: Direction(isInbound: !isLocal), transport: "reported", type: "candidate",
          message: text)))
    guard var row = CandidateRow(line) else { return }
    row.type = isLocal ? "local-candidate" : "remote-candidate"
    row.usernameFragment = row.usernameFragment ?? value["usernameFragment"]?.text
    add(row, emit)
  }

  private mutating func add(_ row: CandidateRow, _ emit: Emit) {
    let name = "\(row.type) \(row.candidateType) \(row.protocol) \(row.address) \(row.port)"
    guard candidates.count < Self.most, candidates.insert(name).inserted else { return }
    emit(.candidate(row))
  }

  // MARK: Statistics

  /// Merges a stats report and emits rows for what changed.
  mutating func sample(_ report: ReportedStats, _ at: Instant, _ id: UInt32, _ emit: Emit) {
    let (changed, gone) = objects.fold(report)
    for object in changed {
      emit(
        .stat(
          StatRow(
            call: id, id: object.id, type: object.type, timestamp: object.timestamp,
            members: object.json)))
    }
    var reply = String(objects.count)
    if !gone.isEmpty {
      reply =
        JSONText.object([
          ("objects", .integer(objects.count)), ("gone", .list(gone.map { .text($0) })),
        ]).text
    }
    emit(.reply(CallReplyRow(call: id, reply: reply)))
    for object in changed { read(object, emit) }
    pairs.sample(objects, emit)
    media.sample(objects, at, emit)
  }

  private mutating func read(_ object: ReportedObject, _ emit: Emit) {
    switch object.type {
    case "transport":
      if let state = object["dtlsState"]?.text { move("dtls", state, emit) }
    case "local-candidate", "remote-candidate":
      if let row = CandidateRow(object) { add(row, emit) }
    case "data-channel": read(channel: object, emit)
    default: break
    }
  }

  private mutating func read(channel object: ReportedObject, _ emit: Emit) {
    let state = object["state"]?.text ?? ""
    let known = channels[object.id]
    guard known?.state != state, known != nil || channels.count < Self.most else { return }
    let number = known?.number ?? UInt32(channels.count)
    channels[object.id] = (number, state)
    var row = ChannelRow(channel: number, state: state)
    row.label = object["label"]?.text ?? ""
    row.isRemote = remoteChannels.contains(row.label)
    row.protocol = object["protocol"]?.text ?? ""
    row.id = object["dataChannelIdentifier"]?.integer.flatMap { UInt16(exactly: $0) }
    row.messagesSent = object.count("messagesSent")
    row.bytesSent = object.count("bytesSent")
    row.messagesReceived = object.count("messagesReceived")
    row.bytesReceived = object.count("bytesReceived")
    emit(.channel(row))
  }
}

extension CandidateRow {
  /// Parses a candidate line (RFC 8839 section 5.1), including one with redacted addresses.
  fileprivate init?(_ line: String) {
    var words = line.split(separator: " ")[...]
    guard words.count >= 8, words[6] == "typ" else { return nil }
    self.init()
    let start = words[0]
    foundation = String(start.hasPrefix("candidate:") ? start.dropFirst(10) : start)
    component = UInt16(words[1]) ?? 1
    `protocol` = words[2].lowercased()
    priority = UInt32(words[3]) ?? 0
    (address, port) = (String(words[4]), UInt16(words[5]) ?? 0)
    candidateType = String(words[7])
    words = words.dropFirst(8)
    while let name = words.popFirst(), let value = words.popFirst() {
      switch name {
      case "raddr": relatedAddress = String(value)
      case "rport": relatedPort = UInt16(value)
      case "ufrag": usernameFragment = String(value)
      default: extensions += (extensions.isEmpty ? "" : " ") + "\(name) \(value)"
      }
    }
  }

  /// Reads a candidate from its stats object; fails if the browser hides the address.
  init?(_ object: ReportedObject) {
    guard let address = object["address"]?.text ?? object["ip"]?.text, !address.isEmpty else {
      return nil
    }
    self.init()
    type = object.type
    self.address = address
    port = object["port"]?.integer.flatMap { UInt16(exactly: $0) } ?? 0
    `protocol` = object["protocol"]?.text ?? ""
    candidateType = Self.types[object["candidateType"]?.text ?? ""] ?? ""
    priority = object["priority"]?.integer.flatMap { UInt32(exactly: $0) } ?? 0
    foundation = object["foundation"]?.text ?? ""
    component = 1
    relatedAddress = object["relatedAddress"]?.text
    relatedPort = object["relatedPort"]?.integer.flatMap { UInt16(exactly: $0) }
    usernameFragment = object["usernameFragment"]?.text
  }

  /// The take's types of candidates, by the current and older names that browsers report.
  static let types = [
    "host": "host", "srflx": "srflx", "prflx": "prflx", "relay": "relay",
    "serverreflexive": "srflx", "peerreflexive": "prflx", "relayed": "relay", "local": "host",
    "stun": "srflx",
  ]
}

import DequeModule
import Secure
import Wire

/// The state of one transport of a call.
struct TransportFollower {
  private(set) var facts: ObservedTransport
  var checks = CheckFollower()
  var dtls = DTLSFollower()
  var dtlsStates = DTLSStates()
  var media = MediaOpener()
  var extensions = ExtensionDeduction()
  /// The descriptions of both ends, by number.
  private(set) var descriptions: [Int?] = [nil, nil]
  /// The reported addresses of both ends, with their candidates' priorities.
  private var addresses: [EndAddress: UInt32] = [:]
  /// The hosts of both ends.
  private(set) var hosts: Set<IPAddress> = []
  /// The paths in use by component: RTP, and separate RTCP.
  private var choices = [PairChoice(), PairChoice()]
  /// The path that it began with.
  private(set) var firstPath: Int?
  /// The streams of both ends, by index.
  private(set) var streams: [Int] = []
  /// Whether each end sent anything.
  private(set) var hasSent = [false, false]
  /// Whether each end sent RTP or RTCP.
  var hasSentMedia = [false, false]
  /// Whether the beginning was seen: a check or a ClientHello before media.
  private(set) var hasBeginning = false

  /// Whether a description states that media is encrypted.
  var hasProtectedDescription = false

  private struct EndAddress: Hashable {
    var end: Int
    var address: SocketAddress
  }

  private static let addressesMaximum = 1024

  init(_ facts: ObservedTransport) { self.facts = facts }

  /// Records that an end sent something.
  mutating func recordTraffic(from end: Int, at now: Instant) {
    hasSent[end] = true
    checks.recordTraffic(from: end, at: now)
  }

  mutating func recordBeginning() { hasBeginning = true }

  mutating func recordPath(_ path: Int) { firstPath = firstPath ?? path }

  /// Sets the username fragments of both ends.
  mutating func name(_ fragments: [String]) { facts.usernameFragments = fragments }

  mutating func describe(_ end: Int, _ description: Int) { descriptions[end] = description }

  /// Whether an address of an end has to be reported.
  mutating func isNews(_ address: SocketAddress, of end: Int) -> Bool {
    guard addresses.count < TransportFollower.addressesMaximum else { return false }
    hosts.insert(address.ip)
    return addresses.updateValue(
      addresses[EndAddress(end: end, address: address)] ?? 0,
      forKey: EndAddress(end: end, address: address)) == nil
  }

  // MARK: Pairs

  /// The path in use.
  var selectedPath: Int? { choices[0].selected ?? choices[1].selected }

  /// The path in use of a component.
  func selectedPath(_ component: UInt8) -> Int? { choices[component == 2 ? 1 : 0].selected }

  /// The priority of an end's candidate; 0 if unknown.
  func priority(of address: SocketAddress, _ end: Int) -> UInt32 {
    addresses[EndAddress(end: end, address: address)] ?? 0
  }

  mutating func setPriority(_ priority: UInt32, of address: SocketAddress, _ end: Int) {
    let key = EndAddress(end: end, address: address)
    if addresses[key] != nil { addresses[key] = priority }
  }

  /// Updates the choice of a component's pair; returns the previous path if it changed.
  mutating func choose(
    _ component: UInt8, _ change: (inout PairChoice) -> Bool
  ) -> (isChanged: Bool, before: Int?) {
    let index = component == 2 ? 1 : 0
    let before = choices[index].selected
    let isChanged = change(&choices[index])
    return (isChanged, isChanged ? before : nil)
  }

  /// Deselects the pairs in use, because the call continues on another transport.
  mutating func clearSelection() -> [Int] {
    choices.indices.compactMap { choices[$0].clear() }
  }

  // MARK: Streams

  mutating func add(stream: Int) { streams.append(stream) }

  mutating func setStreams(_ streams: [Int]) { self.streams = streams }

  mutating func removeStreams() -> [Int] {
    defer { streams = [] }
    return streams
  }

  /// Copies the state of an older transport except its streams: keys and association.
  ///
  /// - Parameter isFlipped: whether the ends of the other one are numbered the other way round.
  mutating func join(_ other: TransportFollower, isFlipped: Bool) {
    facts.call = other.facts.call
    facts.isMoved = true
    dtls = other.dtls
    dtlsStates = other.dtlsStates
    media.inherit(other.media, isFlipped: isFlipped)
    descriptions = isFlipped ? other.descriptions.reversed() : other.descriptions
  }
}

// MARK: - CallTable

/// The calls, and the transports by username fragments.
struct CallTable {
  private(set) var calls: [ObservedCall] = []
  /// Whether each call is named by addresses that responded or sent media.
  private var isNamed: [Bool] = []
  /// Unnamed calls in order; the first ones may have been named since.
  private var unnamed = Deque<Int>()
  /// The transports by the username fragments of both ends.
  private var byFragments: [String: Int] = [:]
  /// The transports that ever had a username fragment at one of their ends, in order.
  private var byFragment: [String: [Int]] = [:]
  /// The transports of a call, and those that ever had a description, in order.
  private var byCall: [Int: [Int]] = [:]
  private var byDescription: [Int: [Int]] = [:]

  /// Adds a call that was discovered between two addresses; returns its number.
  mutating func add(_ how: Knowledge, _ tuple: FiveTuple, at now: Instant) -> Int {
    calls.append(
      ObservedCall(
        number: calls.count + 1, how: how, addresses: [tuple.source, tuple.destination],
        began: now))
    isNamed.append(false)
    unnamed.append(calls.count)
    return calls.count
  }

  // MARK: Names

  /// How long a call waits for a response before it is named by its first check.
  private static let patience = Interval.seconds(6)

  /// The time at which the next call is named without a response.
  var namingDeadline: Instant? { unnamed.first.map { calls[$0 - 1].began + Self.patience } }

  /// Whether a call is named by its final addresses.
  func isNamed(_ call: Int) -> Bool { isNamed[call - 1] }

  /// Names the ends of a call by their addresses.
  mutating func name(call: Int, after addresses: [SocketAddress]) -> ObservedCall {
    calls[call - 1].addresses = addresses
    isNamed[call - 1] = true
    while let first = unnamed.first, isNamed[first - 1] { unnamed.removeFirst() }
    return calls[call - 1]
  }

  /// The next call that has waited long enough, or any waiting call at the end; it keeps its first
  /// addresses.
  mutating func nameNext(at now: Instant?) -> ObservedCall? {
    guard let first = unnamed.first else { return nil }
    if let now, calls[first - 1].began + Self.patience > now { return nil }
    return name(call: first, after: calls[first - 1].addresses)
  }

  // MARK: Names of transports

  /// The transport with these fragments.
  subscript(names: CheckNames) -> Int? { byFragments[names.key] }

  mutating func name(_ transport: Int, _ names: CheckNames) {
    byFragments[names.key] = transport
    for fragment in Set([names.sender, names.receiver]) {
      Self.insert(transport, into: &byFragment[fragment, default: []])
    }
  }

  /// The transports that ever had a username fragment.
  func transports(named fragment: String) -> [Int] { byFragment[fragment] ?? [] }

  /// The transports that ever had a description.
  func transports(described number: Int) -> [Int] { byDescription[number] ?? [] }

  mutating func describe(_ transport: Int, _ number: Int) {
    Self.insert(transport, into: &byDescription[number, default: []])
  }

  // MARK: Transports of a call

  func transports(of call: Int) -> [Int] { byCall[call] ?? [] }

  mutating func add(transport: Int, to call: Int) {
    Self.insert(transport, into: &byCall[call, default: []])
  }

  mutating func move(transport: Int, from old: Int, to call: Int) {
    byCall[old]?.removeAll { $0 == transport }
    add(transport: transport, to: call)
  }

  /// Static, because mutating through `self` would copy the tables for each call.
  private static func insert(_ transport: Int, into list: inout [Int]) {
    if let last = list.last, last < transport { return list.append(transport) }
    guard !list.contains(transport) else { return }
    list.insert(transport, at: list.firstIndex { $0 > transport } ?? list.count)
  }
}

/// The state of a DTLS association at each end, according to its packets.
struct DTLSStates {
  private var states: [DTLSTransportState] = [.new, .new]

  /// Changes the state of an end; returns the previous one, or nil if nothing changes: a closed
  /// association stays closed, and a repeated handshake does not undo a finished one.
  mutating func move(_ end: Int, to state: DTLSTransportState) -> DTLSTransportState? {
    let old = states[end]
    guard old != state, old != .closed, !(old == .connected && state == .connecting) else {
      return nil
    }
    states[end] = state
    return old
  }

  /// The state of an end after its alert.
  ///
  /// - Parameter description: nil if it is encrypted: after the handshake it is almost certainly a
  ///   close_notify.
  func state(after description: UInt8?, of end: Int) -> DTLSTransportState {
    description == 0 || description == nil && states[end] == .connected ? .closed : .failed
  }
}

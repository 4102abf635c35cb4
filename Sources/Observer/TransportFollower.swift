import DequeModule
import Secure
import Wire

/// The known facts about a transport of a call.
struct TransportFollower {
  private(set) var facts: ObservedTransport
  var checks = CheckFollower()
  var dtls = DTLSFollower()
  var dtlsStates = DTLSStates()
  var media = MediaOpener()
  var extensions = ExtensionDeduction()
  /// The indexes of both ends' descriptions.
  private(set) var descriptions: [Int?] = [nil, nil]
  /// The reported addresses of both ends, with the priorities of their candidates.
  private var addresses: [EndAddress: UInt32] = [:]
  private(set) var hosts: Set<IPAddress> = []
  /// The selected paths by component: RTP, and separate RTCP.
  private var choices = [PairChoice(), PairChoice()]
  /// The path on which the transport was discovered; nil if it has no path yet.
  private(set) var firstPath: Int?
  /// The indices of both ends' streams.
  private(set) var streams: [Int] = []
  private(set) var hasSent = [false, false]
  var hasSentMedia = [false, false]
  /// Whether the start was seen, that is, a check or a ClientHello before media.
  private(set) var hasBeginning = false

  /// Whether a description states that media is encrypted.
  var hasProtectedDescription = false

  private struct EndAddress: Hashable {
    var end: Int
    var address: SocketAddress
  }

  private static let addressesMaximum = 1024

  init(_ facts: ObservedTransport) { self.facts = facts }

  /// Records that an end sent a packet of any kind.
  mutating func recordTraffic(from end: Int, at now: Instant) {
    hasSent[end] = true
    checks.recordTraffic(from: end, at: now)
  }

  mutating func recordBeginning() { hasBeginning = true }

  mutating func recordPath(_ path: Int) { firstPath = firstPath ?? path }

  mutating func name(_ fragments: [String]) { facts.usernameFragments = fragments }

  mutating func describe(_ end: Int, _ description: Int) { descriptions[end] = description }

  /// Records an end's address; returns whether it is new and has to be reported.
  mutating func isNews(_ address: SocketAddress, of end: Int) -> Bool {
    guard addresses.count < TransportFollower.addressesMaximum else { return false }
    hosts.insert(address.ip)
    return addresses.updateValue(
      addresses[EndAddress(end: end, address: address)] ?? 0,
      forKey: EndAddress(end: end, address: address)) == nil
  }

  // MARK: Pairs

  /// The path selected for RTP, or the path selected for separate RTCP if RTP has none.
  var selectedPath: Int? { choices[0].selected ?? choices[1].selected }

  func selectedPath(_ component: UInt8) -> Int? { choices[component == 2 ? 1 : 0].selected }

  /// Returns the priority of an end's candidate; 0 if unknown.
  func priority(of address: SocketAddress, _ end: Int) -> UInt32 {
    addresses[EndAddress(end: end, address: address)] ?? 0
  }

  mutating func setPriority(_ priority: UInt32, of address: SocketAddress, _ end: Int) {
    let key = EndAddress(end: end, address: address)
    if addresses[key] != nil { addresses[key] = priority }
  }

  /// Updates the selection of a component's pair; returns whether it changed, and if so, the
  /// previously selected path.
  mutating func choose(
    _ component: UInt8, _ change: (inout PairChoice) -> Bool
  ) -> (isChanged: Bool, before: Int?) {
    let index = component == 2 ? 1 : 0
    let before = choices[index].selected
    let isChanged = change(&choices[index])
    return (isChanged, isChanged ? before : nil)
  }

  /// Deselects the selected pairs, because the call continues on another transport; returns their
  /// paths.
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

  /// Copies an older transport's keys and association, but not its streams.
  ///
  /// - Parameter isFlipped: whether the older transport numbers the ends the other way round.
  mutating func join(_ other: TransportFollower, isFlipped: Bool) {
    facts.call = other.facts.call
    facts.isMoved = true
    dtls = other.dtls
    dtlsStates = other.dtlsStates
    if isFlipped {
      dtls.swapEnds()
      dtlsStates.swapEnds()
    }
    media.inherit(other.media, isFlipped: isFlipped)
    descriptions = isFlipped ? other.descriptions.reversed() : other.descriptions
  }
}

// MARK: - CallTable

/// The calls, and the transports by call, by username fragment and by description.
struct CallTable {
  private(set) var calls: [ObservedCall] = []
  /// Whether each call's ends have their final names.
  private var isNamed: [Bool] = []
  /// Calls without names, in order of discovery; all but the first may have been named in the
  /// meantime.
  private var unnamed = Deque<Int>()
  /// Transports by both ends' username fragments.
  private var byFragments: [String: Int] = [:]
  /// Transports that ever had a username fragment at either end, in order.
  private var byFragment: [String: [Int]] = [:]
  /// Each call's transports, and the transports that ever had a given description, in order.
  private var byCall: [Int: [Int]] = [:]
  private var byDescription: [Int: [Int]] = [:]

  /// Adds a call discovered between two addresses; returns its number.
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

  /// How long a call waits for a successful check or media before its first addresses become its
  /// ends' names.
  private static let patience = Interval.seconds(6)

  /// The time at which the next call is named even without a response.
  var namingDeadline: Instant? { unnamed.first.map { calls[$0 - 1].began + Self.patience } }

  func isNamed(_ call: Int) -> Bool { isNamed[call - 1] }

  /// Names a call's ends by these addresses; returns the call.
  mutating func name(call: Int, after addresses: [SocketAddress]) -> ObservedCall {
    calls[call - 1].addresses = addresses
    isNamed[call - 1] = true
    while let first = unnamed.first, isNamed[first - 1] { unnamed.removeFirst() }
    return calls[call - 1]
  }

  /// Names the ends of the next call after its first addresses if it has waited long enough, or in
  /// any case if `now` is nil; returns the call, or nil if there is none.
  mutating func nameNext(at now: Instant?) -> ObservedCall? {
    guard let first = unnamed.first else { return nil }
    if let now, calls[first - 1].began + Self.patience > now { return nil }
    return name(call: first, after: calls[first - 1].addresses)
  }

  // MARK: Transports by name

  subscript(names: CheckNames) -> Int? { byFragments[names.key] }

  mutating func name(_ transport: Int, _ names: CheckNames) {
    byFragments[names.key] = transport
    for fragment in Set([names.sender, names.receiver]) {
      Self.insert(transport, into: &byFragment[fragment, default: []])
    }
  }

  /// Returns the transports that ever had this username fragment at either end.
  func transports(named fragment: String) -> [Int] { byFragment[fragment] ?? [] }

  /// Returns the transports that ever had this description.
  func transports(described number: Int) -> [Int] { byDescription[number] ?? [] }

  mutating func describe(_ transport: Int, _ number: Int) {
    Self.insert(transport, into: &byDescription[number, default: []])
  }

  // MARK: Transports by call

  func transports(of call: Int) -> [Int] { byCall[call] ?? [] }

  mutating func add(transport: Int, to call: Int) {
    Self.insert(transport, into: &byCall[call, default: []])
  }

  mutating func move(transport: Int, from old: Int, to call: Int) {
    byCall[old]?.removeAll { $0 == transport }
    add(transport: transport, to: call)
  }

  /// Inserts a transport; static, because mutating through `self` would copy the tables on each
  /// call.
  private static func insert(_ transport: Int, into list: inout [Int]) {
    if let last = list.last, last < transport { return list.append(transport) }
    guard !list.contains(transport) else { return }
    list.insert(transport, at: list.firstIndex { $0 > transport } ?? list.count)
  }
}

/// A DTLS association's state at each end, according to its packets.
struct DTLSStates {
  private var states: [DTLSTransportState] = [.new, .new]

  /// Exchanges the states of the ends.
  mutating func swapEnds() { states.reverse() }

  /// Changes an end's state; returns the previous state, or nil if nothing changes: a closed
  /// association stays closed, and a repeated handshake does not undo a finished one.
  mutating func move(_ end: Int, to state: DTLSTransportState) -> DTLSTransportState? {
    let old = states[end]
    guard old != state, old != .closed, !(old == .connected && state == .connecting) else {
      return nil
    }
    states[end] = state
    return old
  }

  /// Returns an end's state after its alert.
  ///
  /// - Parameter description: nil for an encrypted alert, which is almost certainly a close_notify
  ///   after the handshake.
  func state(after description: UInt8?, of end: Int) -> DTLSTransportState {
    description == 0 || description == nil && states[end] == .connected ? .closed : .failed
  }
}

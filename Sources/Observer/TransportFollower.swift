import DequeModule
import Secure
import Wire

/// What is known of one transport of a call.
struct TransportFollower {
  private(set) var facts: ObservedTransport
  var checks = CheckFollower()
  var dtls = DTLSFollower()
  var dtlsStates = DTLSStates()
  var media = MediaOpener()
  var extensions = ExtensionDeduction()
  /// The numbers of the descriptions of both ends.
  private(set) var descriptions: [Int?] = [nil, nil]
  /// The addresses of both ends that were told already, with the priorities of their candidates.
  private var addresses: [EndAddress: UInt32] = [:]
  /// The hosts of both ends.
  private(set) var hosts: Set<IPAddress> = []
  /// The paths in use, by component: RTP, and RTCP by itself.
  private var choices = [PairChoice(), PairChoice()]
  /// The path that it began with.
  private(set) var firstPath: Int?
  /// The streams that each end sends, by their indices.
  private(set) var streams: [Int] = []
  /// Whether an end sent anything.
  private(set) var hasSent = [false, false]
  /// Whether an end sent RTP or RTCP.
  var hasSentMedia = [false, false]
  /// Whether the beginning was seen: a check or a ClientHello before media.
  private(set) var hasBeginning = false

  /// Whether a description says that media is protected.
  var hasProtectedDescription = false

  private struct EndAddress: Hashable {
    var end: Int
    var address: SocketAddress
  }

  private static let addressesMaximum = 1024

  init(_ facts: ObservedTransport) { self.facts = facts }

  /// An end sent something.
  mutating func hear(from end: Int, at now: Instant) {
    hasSent[end] = true
    checks.hear(from: end, at: now)
  }

  mutating func noteBeginning() { hasBeginning = true }

  mutating func recordPath(_ path: Int) { firstPath = firstPath ?? path }

  /// Takes the names of both ends.
  mutating func name(_ fragments: [String]) { facts.usernameFragments = fragments }

  mutating func describe(_ end: Int, _ description: Int) { descriptions[end] = description }

  /// Whether an address of an end is to be told.
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

  /// The priority of an end's candidate; 0 where nothing told it.
  func priority(of address: SocketAddress, _ end: Int) -> UInt32 {
    addresses[EndAddress(end: end, address: address)] ?? 0
  }

  mutating func setPriority(_ priority: UInt32, of address: SocketAddress, _ end: Int) {
    let key = EndAddress(end: end, address: address)
    if addresses[key] != nil { addresses[key] = priority }
  }

  /// Lets the choice of a component's pair change; gives the path that is not selected any more
  /// when it did.
  mutating func choose(
    _ component: UInt8, _ change: (inout PairChoice) -> Bool
  ) -> (isChanged: Bool, before: Int?) {
    let index = component == 2 ? 1 : 0
    let before = choices[index].selected
    let isChanged = change(&choices[index])
    return (isChanged, isChanged ? before : nil)
  }

  /// Gives up the pairs in use: the call goes on over another transport.
  mutating func clearSelection() -> [Int] {
    choices.indices.compactMap { choices[$0].clear() }
  }

  // MARK: Streams

  mutating func add(stream: Int) { streams.append(stream) }

  mutating func take(streams: [Int]) { self.streams = streams }

  mutating func giveStreams() -> [Int] {
    defer { streams = [] }
    return streams
  }

  /// Takes what an older transport knows, but for its streams: its keys and its association.
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

/// The calls that were found, and which transport goes by which names.
struct CallTable {
  private(set) var calls: [ObservedCall] = []
  /// Which calls are named after addresses that answered or sent media.
  private var isNamed: [Bool] = []
  /// Calls in their order, of which those in front may be named already.
  private var unnamed = Deque<Int>()
  /// The transports by the user name fragments of both ends.
  private var byFragments: [String: Int] = [:]
  /// The transports that had a user name fragment at one of their ends, in their order.
  private var byFragment: [String: [Int]] = [:]
  /// The transports of a call, and those that have or had a description, in their order.
  private var byCall: [Int: [Int]] = [:]
  private var byDescription: [Int: [Int]] = [:]

  /// Adds a call that was found between two addresses; gives its number.
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

  /// How long a call waits for an answer before it is named after where its first check went.
  private static let patience = Interval.seconds(6)

  /// When the next call is named although nobody answered.
  var namingDeadline: Instant? { unnamed.first.map { calls[$0 - 1].began + Self.patience } }

  /// Whether a call has the addresses that its ends are named after.
  func isNamed(_ call: Int) -> Bool { isNamed[call - 1] }

  /// Names the ends of a call after addresses of theirs.
  mutating func name(call: Int, after addresses: [SocketAddress]) -> ObservedCall {
    calls[call - 1].addresses = addresses
    isNamed[call - 1] = true
    while let first = unnamed.first, isNamed[first - 1] { unnamed.removeFirst() }
    return calls[call - 1]
  }

  /// The next call that waited long enough, or waits at all at the end; its first addresses stay.
  mutating func nameNext(at now: Instant?) -> ObservedCall? {
    guard let first = unnamed.first else { return nil }
    if let now, calls[first - 1].began + Self.patience > now { return nil }
    return name(call: first, after: calls[first - 1].addresses)
  }

  // MARK: Names of transports

  /// The transport whose ends have these names.
  subscript(names: CheckNames) -> Int? { byFragments[names.key] }

  mutating func name(_ transport: Int, _ names: CheckNames) {
    byFragments[names.key] = transport
    for fragment in Set([names.sender, names.receiver]) {
      Self.insert(transport, into: &byFragment[fragment, default: []])
    }
  }

  /// The transports that have or had a user name fragment.
  func transports(named fragment: String) -> [Int] { byFragment[fragment] ?? [] }

  /// The transports that have or had the description with a number.
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

  /// Not of an instance, whose tables would be copied for each call.
  private static func insert(_ transport: Int, into list: inout [Int]) {
    if let last = list.last, last < transport { return list.append(transport) }
    guard !list.contains(transport) else { return }
    list.insert(transport, at: list.firstIndex { $0 > transport } ?? list.count)
  }
}

/// The state of a DTLS association at each of its ends, as its packets tell.
struct DTLSStates {
  private var states: [DTLSTransportState] = [.new, .new]

  /// Moves an end; gives the state before, or nil when that is no move: an association that was
  /// closed stays so, and what repeats a handshake does not undo one that is over.
  mutating func move(_ end: Int, to state: DTLSTransportState) -> DTLSTransportState? {
    let old = states[end]
    guard old != state, old != .closed, !(old == .connected && state == .connecting) else {
      return nil
    }
    states[end] = state
    return old
  }

  /// What an alert of an end makes of it.
  ///
  /// - Parameter description: nil while it is encrypted: after the handshake that can hardly be
  ///   anything but a goodbye.
  func state(after description: UInt8?, of end: Int) -> DTLSTransportState {
    description == 0 || description == nil && states[end] == .connected ? .closed : .failed
  }
}

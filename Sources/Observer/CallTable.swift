import DequeModule
import Wire

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

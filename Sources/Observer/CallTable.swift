import Wire

/// The calls that were found, and which transport goes by which names.
struct CallTable {
  private(set) var calls: [ObservedCall] = []
  /// The transports by the user name fragments of both ends.
  private var byFragments: [String: Int] = [:]
  /// The transports that had a user name fragment at one of their ends, in their order.
  private var byFragment: [String: [Int]] = [:]
  /// The transports of a call, and those that have or had a description, in their order.
  private var byCall: [Int: [Int]] = [:]
  private var byDescription: [Int: [Int]] = [:]

  /// Takes note of a call that was found between two addresses.
  mutating func add(_ how: Knowledge, _ tuple: FiveTuple) -> ObservedCall {
    let call = ObservedCall(
      number: calls.count + 1, how: how, addresses: [tuple.source, tuple.destination])
    calls.append(call)
    return call
  }

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

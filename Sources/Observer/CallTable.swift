import Wire

/// The calls that were found, and which transport goes by which names.
struct CallTable {
  private(set) var calls: [ObservedCall] = []
  /// The transports by the user name fragments of both ends.
  private var byFragments: [String: Int] = [:]

  /// Takes note of a call that was found between two addresses.
  mutating func add(_ how: Knowledge, _ tuple: FiveTuple) -> ObservedCall {
    let call = ObservedCall(
      number: calls.count + 1, how: how, addresses: [tuple.source, tuple.destination])
    calls.append(call)
    return call
  }

  /// The transport whose ends have these names.
  subscript(names: CheckNames) -> Int? { byFragments[names.key] }

  mutating func name(_ transport: Int, _ names: CheckNames) { byFragments[names.key] = transport }
}

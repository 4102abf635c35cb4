import Wire

/// Unanswered requests by their transaction names.
struct RequestTable<Purpose: Sendable>: Sendable {
  private struct Request: Sendable {
    var number: UInt32
    var purpose: Purpose
    var due: Instant
  }

  private let prefix: String
  private var count: UInt32 = 0
  private var requests: [Request] = []

  /// - Parameter prefix: the beginning of the names, so that those of two sessions differ.
  init(prefix: String) { self.prefix = prefix + "-" }

  var deadline: Instant? { requests.map(\.due).min() }
  var waitingCount: Int { requests.count }

  /// Records a request and returns its name.
  mutating func add(_ purpose: Purpose, due: Instant) -> String {
    prefix + String(addNumber(purpose, due: due))
  }

  /// Records a request for a protocol with numbers.
  mutating func addNumber(_ purpose: Purpose, due: Instant) -> UInt32 {
    count &+= 1
    requests.append(Request(number: count, purpose: purpose, due: due))
    return count
  }

  private func number(_ transaction: String) -> UInt32? {
    transaction.hasPrefix(prefix) ? UInt32(transaction.dropFirst(prefix.count)) : nil
  }

  /// The purpose of a transaction, if it is known.
  func purpose(of transaction: String) -> Purpose? {
    number(transaction).flatMap { number in requests.first { $0.number == number }?.purpose }
  }

  /// Removes and returns the purpose of a transaction, if it is known.
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

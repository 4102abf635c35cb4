/// The keys that were given, and what waits for further ones.
struct KeyRing {
  private static let givenMaximum = 4096

  private(set) var log = NSSKeyLog()
  /// SRTP keys that were given.
  private(set) var given: [SRTPKey] = []
  /// Those that opened nothing so far, by their places.
  private var unused: Set<Int> = []
  /// Whether anything else brought keys.
  private(set) var hasOthers = false
  /// Whether further ones may come.
  private(set) var areAwaited: Bool
  /// How many bytes of packets wait for them in all transports, and how many may.
  private var waitingBytes = 0
  private let waitingBytesMaximum: Int

  init(awaitsKeys: Bool, waitingBytesMaximum: Int) {
    areAwaited = awaitsKeys
    self.waitingBytesMaximum = waitingBytesMaximum
  }

  /// Takes further bytes of a key log: the client randoms for which it has news.
  mutating func append(_ bytes: [UInt8]) -> [[UInt8]] { log.append(bytes) }

  /// Takes a key; false where there are too many.
  mutating func add(_ key: SRTPKey) -> Bool {
    guard given.count < KeyRing.givenMaximum else { return false }
    unused.insert(given.count)
    given.append(key)
    return true
  }

  /// How many keys that were given fit nothing.
  var unusedCount: Int { unused.count }

  /// A key opened packets.
  mutating func use(_ key: SRTPKey, isGiven: Bool) {
    if isGiven {
      for index in given.indices where given[index] == key { unused.remove(index) }
    }
    hasOthers = hasOthers || !isGiven
  }

  /// DTLS agreed on keys that open packets.
  mutating func useThoseOfDTLS() { hasOthers = true }

  /// No more will come.
  mutating func stopWaiting() { areAwaited = false }

  // MARK: What waits

  var holdsTooMuch: Bool { waitingBytes > waitingBytesMaximum }

  mutating func hold(bytes: Int) { waitingBytes += bytes }

  mutating func release(bytes: Int) { waitingBytes -= bytes }
}

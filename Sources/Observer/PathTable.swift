import Wire

/// Two addresses without a direction.
struct PathKey: Hashable {
  var transport: TransportProtocol
  var low: SocketAddress
  var high: SocketAddress

  /// The path of a packet, and whether the lower address sent it.
  static func of(_ tuple: FiveTuple) -> (key: PathKey, isFromLow: Bool) {
    let isFromLow = tuple.source.isLower(than: tuple.destination)
    return isFromLow
      ? (PathKey(transport: tuple.transport, low: tuple.source, high: tuple.destination), true)
      : (PathKey(transport: tuple.transport, low: tuple.destination, high: tuple.source), false)
  }
}

extension SocketAddress {
  /// An order of addresses without a meaning, for equal keys.
  fileprivate func isLower(than other: SocketAddress) -> Bool {
    let (left, right) = (ip.words, other.ip.words)
    if left.high != right.high { return left.high < right.high }
    if left.low != right.low { return left.low < right.low }
    return port < other.port
  }
}

/// A path between the ends of a call.
struct ObservedPath {
  var pair: ObservedPair
  /// The first way by which a relay carries it.
  private var carrier: PathKey?
  private var isSeenRelayed = false
  /// The ends whose packets are seen without the relay.
  private(set) var isSeenDirectly = [false, false]
  /// Whether packets are seen on both sides of a relay: they would count twice.
  private(set) var hasSeveralWays = false
  /// The end behind a relay, whose address stands for the relayed one as long as that is unknown.
  var relayedEnd: Int?
  /// The ends whose candidate's address was not seen.
  var isUnknown = [false, false]
  /// RTP with RTCP is 1, RTCP by itself 2; as checks announce it.
  var component: UInt8 = 1
  var recent = RecentContents()

  init(_ pair: ObservedPair) { self.pair = pair }

  var transportIndex: Int { pair.transport - 1 }

  /// Records by which way a packet of an end came.
  mutating func see(_ way: PathKey?, isRelayed: Bool, from end: Int) {
    if isRelayed { isSeenRelayed = true } else { isSeenDirectly[end] = true }
    carrier = carrier ?? way
    hasSeveralWays =
      hasSeveralWays || isSeenRelayed && isSeenDirectly.contains(true)
      || way != nil && way != carrier
  }

  /// Its addresses, with an end as the source.
  func tuple(from end: Int) -> FiveTuple {
    FiveTuple(pair.transportProtocol, from: pair.addresses[end], to: pair.addresses[1 - end])
  }
}

/// The last contents of a path, to recognise those that come once more.
struct RecentContents {
  private static let countMaximum = 512
  private var digests: [UInt64] = []
  private var next = 0

  /// Whether contents were there lately; takes note of them.
  mutating func isRepeated(_ bytes: RawSpan, from end: Int) -> Bool {
    var digest = ContentDigest(seed: UInt64(end))
    digest.mix(bytes)
    if digests.contains(digest.value) { return true }
    if digests.count < Self.countMaximum {
      digests.append(digest.value)
    } else {
      digests[next] = digest.value
      next = (next + 1) % Self.countMaximum
    }
    return false
  }
}

/// What is known of the paths on the wire.
struct PathTable {
  enum Place: Equatable {
    /// With the end that has the lower address.
    case path(Int, endOfLow: Int)
    /// No call, as far as could be told.
    case ignored
  }

  private static let ignoredMaximum = 1 << 16

  private(set) var paths: [ObservedPath] = []
  private var places: [PathKey: Place] = [:]
  private var ignored: [PathKey] = []
  /// Where the last packet went: the next one is most likely there too.
  private var lastTuple: FiveTuple?
  private var lastFound: (path: Int, from: Int) = (0, 0)

  /// The path of a packet and the end that sent it; nil for a path of no call.
  mutating func find(_ tuple: FiveTuple) -> (path: Int, from: Int)? {
    if tuple == lastTuple { return lastFound }
    let (key, isFromLow) = PathKey.of(tuple)
    guard case .path(let index, let endOfLow)? = places[key] else { return nil }
    lastTuple = tuple
    lastFound = (index, isFromLow ? endOfLow : 1 - endOfLow)
    return lastFound
  }

  /// Whether a path was found to be of no call.
  func isIgnored(_ tuple: FiveTuple) -> Bool { places[PathKey.of(tuple).key] == .ignored }

  /// Adds a path of a transport whose end `from` is the source of the tuple; gives its index.
  mutating func add(_ tuple: FiveTuple, transport: Int, from: Int, isRelayed: Bool) -> Int {
    let (key, isFromLow) = PathKey.of(tuple)
    let addresses =
      from == 0 ? [tuple.source, tuple.destination] : [tuple.destination, tuple.source]
    paths.append(
      ObservedPath(
        ObservedPair(
          number: paths.count + 1, transport: transport, transportProtocol: tuple.transport,
          addresses: addresses, bases: addresses, isRelayed: isRelayed)))
    places[key] = .path(paths.count - 1, endOfLow: isFromLow ? from : 1 - from)
    lastTuple = nil
    return paths.count - 1
  }

  /// Gives an end of a path another address, by which it is found as well from now on.
  ///
  /// - Returns: false where another path has these addresses: what comes by the old ones belongs to
  ///   that one from now on.
  mutating func rename(_ index: Int, _ end: Int, to address: SocketAddress) -> Bool {
    let pair = paths[index].pair
    let old = FiveTuple(pair.transportProtocol, from: pair.addresses[0], to: pair.addresses[1])
    var new = old
    if end == 0 { new.source = address } else { new.destination = address }
    let ((oldKey, oldIsFromLow), (key, isFromLow)) = (PathKey.of(old), PathKey.of(new))
    lastTuple = nil
    guard case .path(let other, let endOfLow)? = places[key], other != index else {
      paths[index].pair.addresses[end] = address
      paths[index].isUnknown[end] = false
      places[key] = .path(index, endOfLow: isFromLow ? 0 : 1)
      return true
    }
    // Its end 0 may be this one's end 1.
    let isFlipped = endOfLow != (isFromLow ? 0 : 1)
    places[oldKey] = .path(other, endOfLow: (oldIsFromLow ? 0 : 1) ^ (isFlipped ? 1 : 0))
    return false
  }

  /// Remembers that a path is of no call; it may still become one.
  mutating func ignore(_ tuple: FiveTuple) {
    let key = PathKey.of(tuple).key
    guard places[key] == nil else { return }
    if ignored.count >= Self.ignoredMaximum {
      for old in ignored where places[old] == .ignored { places[old] = nil }
      ignored = []
    }
    places[key] = .ignored
    ignored.append(key)
  }

  /// Changes what is known of a path.
  mutating func update<Result>(_ index: Int, _ change: (inout ObservedPath) -> Result) -> Result {
    change(&paths[index])
  }
}

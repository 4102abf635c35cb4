import Wire

/// Two addresses, regardless of direction.
struct PathKey: Hashable {
  var transport: TransportProtocol
  var low: SocketAddress
  var high: SocketAddress

  /// Returns the key of a packet's path, and whether the lower address sent it.
  static func of(_ tuple: FiveTuple) -> (key: PathKey, isFromLow: Bool) {
    let isFromLow = tuple.source.isLower(than: tuple.destination)
    return isFromLow
      ? (PathKey(transport: tuple.transport, low: tuple.source, high: tuple.destination), true)
      : (PathKey(transport: tuple.transport, low: tuple.destination, high: tuple.source), false)
  }
}

extension SocketAddress {
  /// Returns whether an address precedes another in an arbitrary total order, which makes keys
  /// unique.
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
  /// The first relay path on which packets of this path were seen; nil if there is none.
  private var carrier: PathKey?
  private var isSeenRelayed = false
  /// For each end, whether its packets are seen outside of a relay.
  private(set) var isSeenDirectly = [false, false]
  /// Whether packets are seen at several points, such as on both sides of a relay, and would count
  /// twice.
  private(set) var hasSeveralWays = false
  /// The end behind a relay, whose local address is used until its relayed address is known; nil if
  /// there is none.
  var relayedEnd: Int?
  /// For each end, whether its candidate address is unknown.
  var isUnknown = [false, false]
  /// The component, from checks or ports: 1 for RTP, possibly with RTCP; 2 for separate RTCP.
  var component: UInt8 = 1
  var recent = RecentContents()

  init(_ pair: ObservedPair) { self.pair = pair }

  var transportIndex: Int { pair.transport - 1 }

  /// Records where an end's packet was seen; `way` is the relay path that carried it, nil if none
  /// did.
  mutating func see(_ way: PathKey?, isRelayed: Bool, from end: Int) {
    if isRelayed { isSeenRelayed = true } else { isSeenDirectly[end] = true }
    carrier = carrier ?? way
    hasSeveralWays =
      hasSeveralWays || isSeenRelayed && isSeenDirectly.contains(true)
      || way != nil && way != carrier
  }

  /// Returns the addresses, with the address of `end` as the source.
  func tuple(from end: Int) -> FiveTuple {
    FiveTuple(pair.transportProtocol, from: pair.addresses[end], to: pair.addresses[1 - end])
  }
}

/// A path's recent contents, for detecting duplicates.
struct RecentContents {
  private static let countMaximum = 512
  private var digests: [UInt64] = []
  private var next = 0

  /// Records contents; returns whether they occurred recently.
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

/// The known paths of calls, and the paths that belong to no call.
struct PathTable {
  enum Place: Equatable {
    /// A path, with the end that has the lower address.
    case path(Int, endOfLow: Int)
    case ignored
  }

  private static let ignoredMaximum = 1 << 16

  private(set) var paths: [ObservedPath] = []
  private var places: [PathKey: Place] = [:]
  private var ignored: [PathKey] = []
  /// The addresses of the last packet, which the next packet most likely has too.
  private var lastTuple: FiveTuple?
  private var lastFound: (path: Int, from: Int) = (0, 0)

  /// Returns a packet's path and the end that sent it; nil if the path belongs to no call.
  mutating func find(_ tuple: FiveTuple) -> (path: Int, from: Int)? {
    if tuple == lastTuple { return lastFound }
    let (key, isFromLow) = PathKey.of(tuple)
    guard case .path(let index, let endOfLow)? = places[key] else { return nil }
    lastTuple = tuple
    lastFound = (index, isFromLow ? endOfLow : 1 - endOfLow)
    return lastFound
  }

  /// Returns whether a path was judged to belong to no call.
  func isIgnored(_ tuple: FiveTuple) -> Bool { places[PathKey.of(tuple).key] == .ignored }

  /// Adds a path whose end `from` is the tuple's source; returns its index.
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

  /// Changes one end's address on a path, which is then found by the old and the new address.
  ///
  /// - Returns: false if another path has the new addresses; packets with the old addresses then
  ///   belong to that path.
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
    // The two paths may number their ends in opposite order.
    let isFlipped = endOfLow != (isFromLow ? 0 : 1)
    places[oldKey] = .path(other, endOfLow: (oldIsFromLow ? 0 : 1) ^ (isFlipped ? 1 : 0))
    return false
  }

  /// Marks a path as belonging to no call, until a later packet proves otherwise.
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

  mutating func update<Result>(_ index: Int, _ change: (inout ObservedPath) -> Result) -> Result {
    change(&paths[index])
  }
}

/// The streams from the peer, made when they are first used, which put messages together from their
/// fragments (RFC 9260 section 6.9; RFC 8260 for fragments that interleave).
struct IncomingStreams {
  private(set) var streams: [IncomingStream] = []
  /// The place in `streams` by stream number; -1 for streams that were not used.
  private var places: [Int32] = []
  /// How many bytes wait in all streams.
  private(set) var heldBytes = 0
  /// How many fragments wait in all streams.
  private(set) var heldFragments = 0
  /// The places of streams in which fragments of unordered messages wait.
  private(set) var unorderedPlaces: Set<Int> = []

  /// The place of a stream.
  mutating func place(of stream: UInt16) -> Int {
    let number = Int(stream)
    if number >= places.count {
      places.append(contentsOf: repeatElement(-1, count: number + 1 - places.count))
    }
    if places[number] < 0 {
      places[number] = Int32(streams.count)
      streams.append(IncomingStream(identifier: stream))
    }
    return Int(places[number])
  }

  /// The place of a stream that was used before.
  func knownPlace(of stream: UInt16) -> Int? {
    guard Int(stream) < places.count, places[Int(stream)] >= 0 else { return nil }
    return Int(places[Int(stream)])
  }

  /// Changes a stream and keeps the sums.
  mutating func change<Result>(
    _ place: Int, _ body: (inout IncomingStream) -> Result
  ) -> Result {
    let bytes = streams[place].heldBytes
    let fragments = streams[place].heldFragments
    let hadUnordered = streams[place].heldUnordered > 0
    let result = body(&streams[place])
    heldBytes += streams[place].heldBytes - bytes
    heldFragments += streams[place].heldFragments - fragments
    let hasUnordered = streams[place].heldUnordered > 0
    if hasUnordered != hadUnordered {
      if hasUnordered { unorderedPlaces.insert(place) } else { unorderedPlaces.remove(place) }
    }
    return result
  }

  /// Forgets everything.
  mutating func removeAll() { self = IncomingStreams() }
}

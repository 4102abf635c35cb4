import Wire

/// Puts datagrams together of their fragments (RFC 791 section 3.2, RFC 8200 section 4.5).
///
/// It holds little, and not for long: whoever loses fragments loses the datagram.
struct FragmentStore: Sendable {
  /// How many datagrams wait at most, and how many bytes of all of them.
  static let datagramsMaximum = 64
  static let bytesMaximum = 1 << 20
  /// After how many nanoseconds a datagram is given up (RFC 8200 section 4.5: 60 s).
  private static let patience: Int64 = 60_000_000_000
  private static let lengthMaximum = 65_535

  private struct Key: Equatable, Sendable {
    var source: IPAddress
    var destination: IPAddress
    var identification: UInt32
    var transport: UInt8
  }

  private struct Datagram: Sendable {
    var key: Key
    var began: Int64
    var pieces: [(offset: Int, bytes: [UInt8])] = []
    var received = 0
    var total: Int?

    enum Outcome {
      case added
      /// The same fragment was there before.
      case again
      /// It overlaps another one, or they disagree about the end.
      case contradiction
    }

    /// Adds a fragment in place: one datagram may have eight thousand of them.
    mutating func add(_ header: InternetHeader, _ payload: RawSpan) -> Outcome {
      let begin = header.fragmentOffset
      let end = begin + payload.byteCount
      let after = place(of: begin)
      if after < pieces.count, pieces[after].offset == begin,
        pieces[after].bytes.count == payload.byteCount
      {
        return .again
      }
      let reachesBack =
        after > 0 && pieces[after - 1].offset + pieces[after - 1].bytes.count > begin
      let reachesOn = after < pieces.count && pieces[after].offset < end
      let newTotal = header.hasMoreFragments ? total : end
      let reach = pieces.last.map { $0.offset + $0.bytes.count } ?? 0
      let contradicts = newTotal.map { max(end, reach) > $0 || total ?? $0 != $0 } ?? false
      guard !reachesBack, !reachesOn, !contradicts else { return .contradiction }
      pieces.insert((begin, [UInt8](payload)), at: after)
      received += payload.byteCount
      total = newTotal
      return .added
    }

    /// The place of the first piece that begins at an offset or behind it.
    private func place(of offset: Int) -> Int {
      if let last = pieces.last, last.offset < offset { return pieces.count }
      var low = 0
      var high = pieces.count
      while low < high {
        let middle = (low + high) / 2
        if pieces[middle].offset < offset { low = middle + 1 } else { high = middle }
      }
      return low
    }
  }

  /// The oldest first.
  private var waiting: [Datagram] = []
  private var held = 0

  /// How many bytes wait.
  var heldBytes: Int { held }

  init() {}

  /// Takes a fragment and gives the whole payload when it was the last one that was missing.
  mutating func add(
    _ header: InternetHeader, _ payload: RawSpan, at now: Int64, _ counters: inout CaptureCounters
  ) -> [UInt8]? {
    counters.fragments += 1
    while let first = waiting.first, now - first.began > Self.patience {
      giveUp(0, &counters)
    }
    let end = header.fragmentOffset + payload.byteCount
    guard !header.isTruncated, payload.byteCount > 0, end <= Self.lengthMaximum,
      !header.hasMoreFragments || payload.byteCount % 8 == 0
    else {
      counters.fragmentsDropped += 1
      return nil
    }
    let key = Key(
      source: header.source, destination: header.destination,
      identification: header.identification, transport: header.transport)
    var index = waiting.firstIndex { $0.key == key } ?? waiting.count
    if index == waiting.count { waiting.append(Datagram(key: key, began: now)) }
    switch waiting[index].add(header, payload) {
    case .again:
      counters.fragmentsDropped += 1
      return nil
    case .contradiction:
      // Fragments that overlap make the datagram void (RFC 5722 section 4).
      counters.fragmentsDropped += 1
      giveUp(index, &counters)
      return nil
    case .added: break
    }
    held += payload.byteCount
    if waiting[index].received == waiting[index].total {
      counters.reassembled += 1
      held -= waiting[index].received
      return waiting.remove(at: index).pieces.flatMap(\.bytes)
    }
    while waiting.count > Self.datagramsMaximum || held > Self.bytesMaximum {
      giveUp(0, &counters)
      index -= 1
    }
    return nil
  }

  private mutating func giveUp(_ index: Int, _ counters: inout CaptureCounters) {
    let lost = waiting.remove(at: index)
    held -= lost.received
    counters.fragmentsDropped += UInt64(lost.pieces.count)
  }
}

import Wire

/// Reassembles TCP segments (RFC 9293) into one stream of bytes per direction.
///
/// A limited number of early segments waits a short time for missing segments; then the stream
/// continues after a gap of known length.
struct TCPStreams: Sendable {
  static let streamsMaximum = 4096
  /// Limits on waiting bytes, per stream and in total.
  static let waitingMaximum = 256 << 10
  static let heldMaximum = 16 << 20
  private static let patience: Int64 = 3_000_000_000

  struct Segment {
    var tuple: FiveTuple
    var sequence: UInt32
    var isStart: Bool
    var isEnd: Bool
    var isReset: Bool
    /// The number of bytes that the capture cut off.
    var missing: Int
  }

  /// A part of a stream, following the previous one.
  struct Piece {
    enum Place {
      /// A range of the segment itself.
      case segment(Range<Int>)
      case held([UInt8])
    }

    var place: Place
    /// The number of bytes missing before the piece.
    var lost: Int
    var isEnd: Bool
  }

  private struct Early: Sendable {
    var sequence: UInt32
    var bytes: [UInt8]
    var missing: Int
    var isEnd: Bool
  }

  private struct Stream: Sendable {
    /// Identifies the stream, since a pair of addresses may have several in succession.
    var number: UInt64
    /// The sequence number of the next byte; nil before the first segment.
    var next: UInt32?
    /// Segments that arrived early, in stream order.
    var early: [Early] = []
    var held = 0
    var waitsSince: Int64 = 0
    /// Missing bytes not yet reported with a piece.
    var lost = 0
  }

  private var streams: [FiveTuple: Stream] = [:]
  /// Streams in order of their first segments; may include streams that have ended.
  private var order: [(tuple: FiveTuple, number: UInt64)] = []
  private var held = 0
  private var begun: UInt64 = 0

  var heldBytes: Int { held }
  var streamCount: Int { streams.count }

  func contains(_ tuple: FiveTuple) -> Bool { streams[tuple] != nil }

  init() {}

  /// Adds a segment; returns the data that is now in order.
  mutating func add(
    _ segment: Segment, _ data: RawSpan, at now: Int64, _ counters: inout CaptureCounters
  ) -> [Piece] {
    if segment.isStart || streams[segment.tuple] == nil {
      if segment.isReset { return [] }
      begin(segment.tuple, &counters)
    }
    guard var stream = streams.removeValue(forKey: segment.tuple) else { return [] }
    held -= stream.held
    var pieces: [Piece] = []
    if segment.isReset {
      pieces.append(Piece(place: .held([]), lost: 0, isEnd: true))
      return pieces
    }
    let sequence = segment.isStart ? segment.sequence &+ 1 : segment.sequence
    if stream.next == nil { stream.next = sequence }
    place(segment, sequence, data, &stream, &pieces, now)
    let isOver = pieces.last?.isEnd ?? false
    counters.streamBytesLost += UInt64(pieces.reduce(0) { $0 + $1.lost })
    if !isOver {
      held += stream.held
      streams[segment.tuple] = stream
    }
    return pieces
  }

  private func place(
    _ segment: Segment, _ sequence: UInt32, _ data: RawSpan, _ stream: inout Stream,
    _ pieces: inout [Piece], _ now: Int64
  ) {
    let next = stream.next ?? sequence
    let ahead = Int(Int32(bitPattern: sequence &- next))
    if ahead <= 0 {
      // Bytes that were already received are skipped.
      let known = min(-ahead, data.byteCount)
      let isNews = known < data.byteCount || data.byteCount == 0
      guard isNews || segment.isEnd || segment.missing > 0 else { return }
      if known == -ahead {
        append(.segment(known..<data.byteCount), segment.missing, segment.isEnd, &stream, &pieces)
        stream.next = sequence &+ UInt32(truncatingIfNeeded: data.byteCount + segment.missing)
      }
    } else {
      hold(segment, sequence, data, &stream, now)
    }
    release(&stream, &pieces, now)
  }

  private func hold(
    _ segment: Segment, _ sequence: UInt32, _ data: RawSpan, _ stream: inout Stream, _ now: Int64
  ) {
    guard data.byteCount > 0 || segment.isEnd else { return }
    if stream.early.isEmpty { stream.waitsSince = now }
    let place = stream.early.firstIndex {
      Int32(bitPattern: $0.sequence &- sequence) >= 0
    }
    if let place, stream.early[place].sequence == sequence,
      stream.early[place].bytes.count >= data.byteCount
    {
      return
    }
    stream.early.insert(
      Early(
        sequence: sequence, bytes: [UInt8](data), missing: segment.missing, isEnd: segment.isEnd),
      at: place ?? stream.early.count)
    stream.held += data.byteCount
  }

  /// Releases waiting data that is in order, or has waited too long.
  private func release(_ stream: inout Stream, _ pieces: inout [Piece], _ now: Int64) {
    var used = 0
    while used < stream.early.count {
      let early = stream.early[used]
      let next = stream.next ?? early.sequence
      let ahead = Int(Int32(bitPattern: early.sequence &- next))
      let isTooMuch =
        stream.held > Self.waitingMaximum || held + stream.held > Self.heldMaximum
        || stream.early.count - used > 512 || now - stream.waitsSince > Self.patience
      guard ahead <= 0 || isTooMuch else { break }
      used += 1
      stream.held -= early.bytes.count
      stream.lost += max(0, ahead)
      let known = max(0, -ahead)
      guard known < early.bytes.count || early.isEnd && known <= early.bytes.count else { continue }
      append(
        .held(Array(early.bytes.dropFirst(known))), early.missing, early.isEnd, &stream, &pieces)
      stream.next =
        early.sequence &+ UInt32(truncatingIfNeeded: early.bytes.count + early.missing)
    }
    stream.early.removeFirst(used)
    if !stream.early.isEmpty, used > 0 { stream.waitsSince = now }
  }

  private func append(
    _ place: Piece.Place, _ missing: Int, _ isEnd: Bool, _ stream: inout Stream,
    _ pieces: inout [Piece]
  ) {
    let isEmpty =
      switch place {
      case .segment(let range): range.isEmpty
      case .held(let bytes): bytes.isEmpty
      }
    if !isEmpty || isEnd {
      pieces.append(Piece(place: place, lost: stream.lost, isEnd: isEnd))
      stream.lost = 0
    }
    stream.lost += missing
  }

  private mutating func begin(_ tuple: FiveTuple, _ counters: inout CaptureCounters) {
    if let old = streams[tuple] { held -= old.held }
    begun += 1
    streams[tuple] = Stream(number: begun)
    order.append((tuple, begun))
    var oldest = 0
    while streams.count > Self.streamsMaximum, oldest < order.count {
      let (tuple, number) = order[oldest]
      // If this stream has ended, a newer stream may have the same addresses.
      if let lost = streams[tuple], lost.number == number {
        streams[tuple] = nil
        held -= lost.held
        counters.streamsDropped += 1
      }
      oldest += 1
    }
    order.removeFirst(oldest)
    // Entries for ended streams stay in the order until this cleanup.
    if order.count > 2 * Self.streamsMaximum {
      order = order.filter { streams[$0.tuple]?.number == $0.number }
    }
  }
}

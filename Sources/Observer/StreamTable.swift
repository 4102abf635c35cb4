import RTP
import Wire

/// The RTP streams of all calls.
struct StreamTable {
  private struct Key: Hashable {
    var transport: Int
    var from: Int
    var ssrc: UInt32
  }

  /// A stream with what is counted of it.
  struct Entry {
    var stream: ObservedStream {
      didSet {
        redundantType = stream.payloads.first { $0.codec == "red" }?.payloadType
        seeksProtected =
          stream.protects == nil && stream.payloads.first?.codec.hasPrefix("flexfec") == true
      }
    }
    /// Whether it is one of FlexFEC, and it is not known yet what it protects.
    private(set) var seeksProtected = false
    /// The payload type whose packets have others inside (RFC 2198).
    private(set) var redundantType: UInt8?
    var statistics = SourceReception()
    var deduction = StreamDeduction()
    /// The payload type of the last packet, whose meaning was looked up already.
    var lastPayloadType: UInt8?
    var clockRate: UInt32 = 0
    var highest: UInt16 = 0
    var lastTime: UInt32 = 0
    /// Whether a packet had header extensions, which may name its section.
    var hasExtensions = false
    /// How many names RTCP gave it.
    var names = 0
    /// Packets that no key opened.
    var sealedPackets: UInt64 = 0

    init(_ stream: ObservedStream) { self.stream = stream }
  }

  /// How many streams are told apart; a call has some dozens.
  private static let streamsMaximum = 1 << 17

  private(set) var entries: [Entry] = []
  private var places: [Key: Int] = [:]
  /// The streams of each source, the newest last.
  private var bySource: [UInt32: [Int]] = [:]
  /// How many streams of one source are looked at for the one that goes on elsewhere.
  private static let candidatesMaximum = 64
  /// The stream of the last packet of all: most follow one of the same.
  private var last: (key: Key, index: Int)?

  /// The index of the stream of a packet; nil for one that was not seen yet.
  mutating func find(transport: Int, from: Int, ssrc: UInt32) -> Int? {
    let key = Key(transport: transport, from: from, ssrc: ssrc)
    if let last, last.key == key { return last.index }
    guard let index = places[key] else { return nil }
    last = (key, index)
    return index
  }

  /// Begins a stream; nil when there are too many.
  mutating func begin(_ stream: ObservedStream) -> Int? {
    guard entries.count < Self.streamsMaximum else { return nil }
    var stream = stream
    stream.number = entries.count + 1
    places[Key(transport: stream.transport, from: stream.from, ssrc: stream.ssrc)] = entries.count
    bySource[stream.ssrc, default: []].append(entries.count)
    entries.append(Entry(stream))
    return entries.count - 1
  }

  /// The latest streams of a source, the newest first.
  func latest(of ssrc: UInt32) -> [Int] {
    bySource[ssrc, default: []].suffix(Self.candidatesMaximum).reversed()
  }

  /// Lets a stream go on in another transport.
  mutating func move(_ index: Int, to transport: Int, from: Int) {
    let old = entries[index].stream
    places[Key(transport: old.transport, from: old.from, ssrc: old.ssrc)] = nil
    places[Key(transport: transport, from: from, ssrc: old.ssrc)] = index
    entries[index].stream.transport = transport
    entries[index].stream.from = from
    last = nil
  }

  /// Changes what is known of a stream.
  @inline(__always)
  mutating func update<Result>(_ index: Int, _ change: (inout Entry) -> Result) -> Result {
    change(&entries[index])
  }
}

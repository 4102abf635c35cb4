import Wire

/// A named value of a trace event.
enum TraceValue {
  case number(Int64)
  case text(String)
}

/// Writes a Perfetto trace packet by packet.
///
/// The fields are from `perfetto.protos.Trace`, with their names beside the numbers. The file
/// contains each event name once and refers to it by number.
struct TraceFile {
  private let file: TextFile
  private let start: Int64
  private var processes: Set<Int64> = []
  private var tracks: [String: UInt64] = [:]
  private var names: [String: UInt64] = [:]
  private var annotations: [String: UInt64] = [:]
  private var isBegun = false
  private var failure: ExportFailure?
  /// The number of events written: slices, instants and counters.
  private(set) var events = 0

  /// - Parameter start: the Unix time at which the take began, in nanoseconds.
  init(_ file: TextFile, start: Int64) {
    self.file = file
    self.start = start
  }

  private static let sequence: UInt64 = 1
  private static let sliceBegin: UInt64 = 1
  private static let sliceEnd: UInt64 = 2
  private static let instantType: UInt64 = 3
  private static let counterType: UInt64 = 4

  // MARK: Tracks

  private mutating func process(_ peer: Int64, _ label: String) -> UInt64 {
    let identifier = UInt64(clamping: peer) + 1
    guard processes.insert(peer).inserted else { return identifier }
    var process = Message()
    process.number(1, UInt64(clamping: peer))  // pid
    process.text(6, "peer \(peer) \(label)")  // process_name
    var descriptor = Message()
    descriptor.number(1, identifier)  // uuid
    descriptor.message(3, process)
    packet { $0.message(60, descriptor) }  // track_descriptor
    return identifier
  }

  /// Returns the track with a name; overlapping events go into several lanes, which viewers merge.
  mutating func track(
    _ peer: Int64, _ label: String, _ name: String, lane: Int = 0, isCounter: Bool = false
  ) -> UInt64 {
    let key = "\(peer) \(lane) \(name)"
    if let known = tracks[key] { return known }
    let parent = process(peer, label)
    let identifier = UInt64(tracks.count) + 1_000_000
    tracks[key] = identifier
    var descriptor = Message()
    descriptor.number(1, identifier)
    descriptor.text(2, name)
    descriptor.number(5, parent)  // parent_uuid
    if isCounter { descriptor.message(8, Message()) }  // counter
    packet { $0.message(60, descriptor) }
    return identifier
  }

  // MARK: Events

  /// Writes an event with a duration; `flows` continue after the event, and the flows in `ending`
  /// end with it.
  mutating func slice(
    _ track: UInt64, _ name: String, _ from: Int64, _ to: Int64, flows: [UInt64] = [],
    ending: [UInt64] = [], _ facts: [(String, TraceValue)]
  ) {
    event(Self.sliceBegin, track, name, from, flows, ending, facts)
    event(Self.sliceEnd, track, nil, max(from, to), [], [], [])
    events += 1
  }

  /// Writes an event without a duration.
  mutating func instant(
    _ track: UInt64, _ name: String, _ at: Int64, flows: [UInt64] = [], ending: [UInt64] = [],
    _ facts: [(String, TraceValue)]
  ) {
    event(Self.instantType, track, name, at, flows, ending, facts)
    events += 1
  }

  /// Writes a counter's new value.
  mutating func counter(
    _ peer: Int64, _ label: String, _ name: String, _ at: Int64, _ value: Double
  ) {
    let track = track(peer, label, name, isCounter: true)
    var event = Message()
    event.number(9, Self.counterType)  // type
    event.number(11, track)  // track_uuid
    event.fixed(44, value.bitPattern)  // double_counter_value
    timed(at) { $0.message(11, event) }
    events += 1
  }

  private mutating func event(
    _ type: UInt64, _ track: UInt64, _ name: String?, _ at: Int64, _ flows: [UInt64],
    _ ending: [UInt64], _ facts: [(String, TraceValue)]
  ) {
    var new = Message()
    var event = Message()
    event.number(9, type)
    event.number(11, track)
    if let name { event.number(10, Self.number(of: name, in: &names, 2, &new)) }  // name_iid
    for (key, value) in facts {
      var fact = Message()
      fact.number(1, Self.number(of: key, in: &annotations, 3, &new))  // name_iid
      switch value {
      case .number(let value): fact.number(4, UInt64(bitPattern: value))  // int_value
      case .text(let text): fact.text(6, text)  // string_value
      }
      event.message(4, fact)  // debug_annotations
    }
    for flow in flows { event.fixed(47, flow) }  // flow_ids
    for flow in ending { event.fixed(48, flow) }  // terminating_flow_ids
    timed(at) { packet in
      packet.message(11, event)  // track_event
      if !new.bytes.isEmpty { packet.message(12, new) }  // interned_data
    }
  }

  /// Returns a name's number, and defines the number in `new` when the name is first used.
  private static func number(
    of name: String, in known: inout [String: UInt64], _ field: UInt64, _ new: inout Message
  ) -> UInt64 {
    if let number = known[name] { return number }
    let number = UInt64(known.count) + 1
    known[name] = number
    var entry = Message()
    entry.number(1, number)  // iid
    entry.text(2, name)
    new.message(field, entry)
    return number
  }

  private mutating func timed(_ at: Int64, _ body: (inout Message) -> Void) {
    let time = UInt64(clamping: start +| at)
    packet { packet in
      packet.number(8, time)  // timestamp
      body(&packet)
    }
  }

  /// Adds a packet; the first packet clears all names (SEQ_INCREMENTAL_STATE_CLEARED), and later
  /// packets need the names defined before them (SEQ_NEEDS_INCREMENTAL_STATE).
  private mutating func packet(_ body: (inout Message) -> Void) {
    guard failure == nil else { return }
    var packet = Message()
    packet.number(10, Self.sequence)  // trusted_packet_sequence_id
    packet.number(13, isBegun ? 2 : 3)  // sequence_flags
    isBegun = true
    body(&packet)
    var root = Message()
    root.message(1, packet)
    do throws(ExportFailure) {
      try file.write(root.bytes)
    } catch {
      failure = error
    }
  }

  func finish() throws(ExportFailure) {
    if let failure { throw failure }
    try file.finish()
  }

  // MARK: Protocol Buffers

  private struct Message {
    private(set) var bytes: [UInt8] = []

    private mutating func variable(_ value: UInt64) {
      var rest = value
      while rest > 0x7f {
        bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
        rest >>= 7
      }
      bytes.append(UInt8(rest))
    }

    mutating func number(_ field: UInt64, _ value: UInt64) {
      variable(field << 3)
      variable(value)
    }

    mutating func fixed(_ field: UInt64, _ value: UInt64) {
      variable(field << 3 | 1)
      for place in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: value >> UInt64(8 * place))) }
    }

    mutating func text(_ field: UInt64, _ text: String) { content(field, Array(text.utf8)) }
    mutating func message(_ field: UInt64, _ message: Message) { content(field, message.bytes) }

    private mutating func content(_ field: UInt64, _ content: [UInt8]) {
      variable(field << 3 | 2)
      variable(UInt64(content.count))
      bytes += content
    }
  }
}

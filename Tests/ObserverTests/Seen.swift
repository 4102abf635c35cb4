import Foundation
import Observer
import RTP
import Wire

/// An observer's reports about a capture.
final class Seen {
  var calls: [ObservedCall] = []
  var transports: [ObservedTransport] = []
  var states: [ObservedState] = []
  var candidates: [ObservedCandidate] = []
  var pairs: [ObservedPair] = []
  var carried: [CarriedDatagram] = []
  var handshakes: [DTLSFacts] = []
  var keys: [ObservedKeys] = []
  var streams: [ObservedStream] = []
  var extensions: [(map: HeaderExtensionMap, how: Knowledge)] = []
  var packets: [ObservedPacket] = []
  var descriptions: [ObservedDescription] = []
  var coverage: [CoverageReport] = []
  /// The reception statistics of RFC 3550, by stream.
  var statistics: [Int: SourceReception] = [:]

  /// Returns how many RTP or RTCP packets were readable, and how many there were.
  func count(rtp isRTP: Bool) -> (clear: Int, all: Int) {
    let chosen = packets.filter { packet in
      switch packet.kind {
      case .rtp: isRTP
      case .rtcp: !isRTP
      case .sctp: false
      }
    }
    return (chosen.count { $0.isClear }, chosen.count)
  }

  func record(_ output: Observer.Output) {
    switch output {
    case .call(let call): calls.append(call)
    case .transport(let transport): transports.append(transport)
    case .state(let state): states.append(state)
    case .candidate(let candidate): candidates.append(candidate)
    case .pair(let pair): pairs.append(pair)
    case .carried(let datagram): carried.append(datagram)
    case .handshake(_, let facts): handshakes.append(facts)
    case .keys(let found): keys.append(found)
    case .stream(let stream):
      streams.removeAll { $0.number == stream.number }
      streams.append(stream)
    case .checked: break
    case .extensions(_, let map, let how): extensions.append((map, how))
    case .packet(let packet): packets.append(packet)
    case .description(let description): descriptions.append(description)
    case .coverage(let row): coverage.append(row)
    }
  }
}

/// Feeds an observer, and collects its reports.
struct Watch {
  let seen = Seen()
  private var outbox = Outbox<Observer.Output>()
  private var began: Int64?

  init() {}

  static func sample(_ name: String) throws -> [UInt8] {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Samples")
    return Array(try Data(contentsOf: folder.appending(path: name)))
  }

  mutating func step(_ observer: inout Observer, _ input: Observer.Input, at now: Instant) {
    while let due = observer.deadline, due < now {
      observer.step(.deadline, at: due, into: &outbox)
      drain()
    }
    observer.step(input, at: now, into: &outbox)
    drain()
  }

  private mutating func drain() {
    while let output = outbox.next() { seen.record(output) }
  }

  /// Feeds a capture's events to an observer at their capture times, without ending the capture.
  mutating func show(_ observer: inout Observer, capture bytes: [UInt8]) throws {
    var reader = CaptureReader()
    reader.append(bytes.span.bytes)
    var last = Instant.zero
    while let event = try reader.next() {
      switch event {
      case .datagram(let datagram):
        last = max(last, instant(datagram.unixNanoseconds))
        step(
          &observer,
          .datagram(
            datagram.tuple, [UInt8](reader.bytes(datagram.payload)),
            isTruncated: datagram.isTruncated), at: last)
      case .stream(let piece):
        last = max(last, instant(piece.unixNanoseconds))
        step(
          &observer,
          .stream(
            piece.tuple, [UInt8](reader.bytes(piece.payload)), lost: piece.lost,
            isEnd: piece.isEnd), at: last)
      case .secrets(_, let place):
        step(&observer, .keyLog([UInt8](reader.bytes(place))), at: last)
      case .comment, .dropped: break
      }
    }
  }

  private mutating func instant(_ unixNanoseconds: Int64) -> Instant {
    let zero = began ?? unixNanoseconds
    began = zero
    return Instant(nanoseconds: unixNanoseconds - zero)
  }

  /// Ends the capture, and collects the streams' statistics.
  mutating func end(_ observer: inout Observer) {
    step(&observer, .end, at: Instant(nanoseconds: .max / 2))
    for stream in observer.streams {
      seen.statistics[stream.number] = observer.statistics(of: stream.number)
    }
  }

  /// Returns an observer's reports about a sample, using its key log and descriptions.
  static func whole(
    _ name: String, ending: String = "pcap", hasKeys: Bool = true, hasDescriptions: Bool = true,
    settings: ObserverSettings = ObserverSettings()
  ) throws -> Seen {
    var watch = Watch()
    var observer = Observer(settings)
    if hasKeys {
      watch.step(&observer, .keyLog(try sample("\(name).keys")), at: .zero)
    }
    if hasDescriptions {
      for kind in ["offer", "answer"] {
        let text = String(decoding: try sample("\(name)-\(kind).sdp"), as: UTF8.self)
        watch.step(&observer, .description(text), at: .zero)
      }
    }
    try watch.show(&observer, capture: try sample("\(name).\(ending)"))
    watch.end(&observer)
    return watch.seen
  }
}

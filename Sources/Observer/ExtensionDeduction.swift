import RTP
import Wire

/// Concludes from their contents which header extensions a transport has, where no description
/// says so: numbers that count over all streams, times that run as time does, levels of sounds,
/// names that stay.
struct ExtensionDeduction {
  /// How many packets are looked at, and after how many something is concluded.
  private static let packetsMaximum = 600
  private static let packetsMinimum = 60

  /// What is counted of one identifier.
  private struct Element {
    var count = 0
    var lengths: Set<Int> = []
    /// By the end that sends.
    var numbers: [UInt16?] = [nil, nil]
    var counting = 0
    var times: [(value: UInt32, at: Instant)?] = [nil, nil]
    var timing = 0
    var isText = true
    /// The text of each source, while it stays the same.
    var texts: [UInt32: [UInt8]] = [:]
    var textChanges = 0
    var onFrames = 0

    mutating func record(
      _ value: RawSpan, _ ssrc: UInt32, _ end: Int, _ kind: MediaKind?, _ now: Instant
    ) {
      count += 1
      lengths.insert(value.byteCount)
      if kind == .video { onFrames += 1 }
      if value.byteCount == 2 {
        let number = value.uint16(at: 0)
        if let last = numbers[end], (1...8).contains(number &- last) {
          counting += 1
        }
        numbers[end] = number
      }
      if value.byteCount == 3 {
        let time = UInt32(value.uint16(at: 0)) << 8 | UInt32(value.byte(at: 2))
        if let last = times[end] {
          // Seconds with 18 bits of fraction, of which 6 bits are whole.
          let passed = Double((time &- last.value) & 0xff_ffff) / 262_144
          if abs(passed - (now - last.at).seconds) < 0.05 { timing += 1 }
        }
        times[end] = (time, now)
      }
      let text = [UInt8](value)
      let isTextHere =
        (1...16).contains(text.count) && text.allSatisfy { (0x21...0x7e).contains($0) }
      isText = isText && isTextHere
      guard isTextHere, texts.count < 64 else { return }
      if let known = texts.updateValue(text, forKey: ssrc), known != text {
        textChanges += 1
      }
    }
  }

  /// By identifier, for those that were there: few, where a call is one.
  private var elements: [Int: Element] = [:]
  private var packets = 0
  private(set) var isOver = false

  /// Ends it: something else tells.
  mutating func stop() {
    isOver = true
    elements = [:]
  }

  /// Takes a packet; gives the extensions once they are clear.
  mutating func take(
    _ header: RTPHeader, _ bytes: RawSpan, from end: Int, kind: MediaKind?, at now: Instant
  ) -> HeaderExtensionMap? {
    guard !isOver else { return nil }
    packets += 1
    var reader = HeaderExtensionElements(header)
    while let (id, range) = reader.next(in: bytes) {
      elements[Int(id), default: Element()].record(
        bytes.extracting(range), header.ssrc, end, kind, now)
    }
    guard packets >= Self.packetsMaximum else { return nil }
    let map = conclude()
    stop()
    return map == HeaderExtensionMap() ? nil : map
  }

  private func conclude() -> HeaderExtensionMap {
    var map = HeaderExtensionMap()
    for id in 1...255 {
      guard let element = elements[id], element.count > 4,
        element.count >= Self.packetsMinimum || element.isText, let number = UInt8(exactly: id)
      else { continue }
      let uri: HeaderExtensionURI
      if element.lengths == [2], element.counting * 10 > element.count * 8 {
        uri = .transportSequence
      } else if element.lengths == [3], element.timing * 10 > element.count * 8 {
        uri = .absoluteSendTime
      } else if element.isText, element.textChanges == 0 {
        // The names of sections come first; those of encodings are on video frames alone.
        let isEncoding = map.mid != 0 && element.onFrames == element.count
        uri = isEncoding ? .streamID : .mid
      } else if element.lengths == [1], element.onFrames == 0 {
        uri = .audioLevel
      } else {
        continue
      }
      map.add(uri: uri.rawValue, id: number)
    }
    return map
  }
}

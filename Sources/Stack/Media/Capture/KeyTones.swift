/// Keys of a telephone that are pressed one after the other, each in the place of the blocks of
/// audio that it lasts (RFC 4733, W3C RTCDTMFSender).
package struct KeyTones: Hashable, Sendable {
  /// What one packet says of a key that is down.
  struct Event: Hashable {
    /// 0 to 15: the digits, the star, the hash and four letters (RFC 4733 section 3.2).
    var code: UInt8
    /// Where the event began, or the part of it that fits the field of its duration (section
    /// 2.5.1.3), and how long it lasts by now: in samples at 48 kHz.
    var start: Int64
    var duration: Int64
    var isFirst: Bool
    var isEnd: Bool
  }

  /// What W3C allows, in milliseconds: other lengths are taken for the nearest of these.
  private static let durations: ClosedRange<UInt32> = 40...6_000
  private static let gaps: ClosedRange<UInt32> = 30...6_000
  /// A comma waits two seconds.
  private static let commaSamples: Int64 = 96_000
  private static let blockLength = Int64(BlockCutter.blockLength)
  private static let keys = Array("0123456789*#ABCD")
  /// The longest line that anybody dials.
  private static let keysMaximum = 256
  /// The end of an event is said three times (RFC 4733 section 2.5.1.4).
  private static let endPackets = 3
  /// The largest duration that a packet states, in ticks.
  private static let longestPart: Int64 = 0xffff

  /// The keys that were not pressed yet, the next one first; nil waits.
  private var codes: [UInt8?]
  private let duration: Int64
  private let gap: Int64
  /// How many samples at 48 kHz a tick of the audio lasts.
  private var ticks: Int64 = 1
  private var pressed: (code: UInt8, began: Int64, part: Int64)?
  private var waitsUntil: Int64 = .min

  /// Reads keys in capitals or small letters; nil for others, or for too many.
  ///
  /// - Parameters:
  ///   - duration: how long each is down, in milliseconds.
  ///   - gap: how long none is down between two, in milliseconds.
  package init?(_ text: String, duration: UInt32, gap: UInt32) {
    guard text.utf8.count <= KeyTones.keysMaximum else { return nil }
    codes = []
    for character in text.uppercased() {
      if character == "," {
        codes.append(nil)
      } else if let code = KeyTones.keys.firstIndex(of: character) {
        codes.append(UInt8(code))
      } else {
        return nil
      }
    }
    func samples(_ milliseconds: UInt32, _ range: ClosedRange<UInt32>) -> Int64 {
      48 * Int64(min(max(milliseconds, range.lowerBound), range.upperBound))
    }
    self.duration = samples(duration, KeyTones.durations)
    self.gap = samples(gap, KeyTones.gaps)
  }

  package static func == (left: Self, right: Self) -> Bool {
    left.codes == right.codes && left.duration == right.duration && left.gap == right.gap
  }

  package func hash(into hasher: inout Hasher) { hasher.combine(codes) }

  /// Whether nothing is left to be pressed, or to be let go.
  var isOver: Bool { codes.isEmpty && pressed == nil }

  /// The same for audio of a codec.
  func counted(in ticks: Int64) -> KeyTones {
    var tones = self
    tones.ticks = max(1, ticks)
    return tones
  }

  /// The packets in the place of a block of audio that begins at a media time; none where the audio
  /// itself is sent.
  mutating func next(at time: Int64) -> [Event] {
    if pressed == nil {
      guard time >= waitsUntil, let code = codes.first else { return [] }
      codes.removeFirst()
      guard let code else {
        waitsUntil = time + KeyTones.commaSamples
        return []
      }
      pressed = (code, time, time)
    }
    guard let key = pressed else { return [] }
    let end = time + KeyTones.blockLength
    let isEnd = end - key.began >= duration
    let event = Event(
      code: key.code, start: key.part, duration: end - key.part, isFirst: time == key.began,
      isEnd: isEnd)
    if isEnd {
      pressed = nil
      waitsUntil = end + gap
      return Array(repeating: event, count: KeyTones.endPackets)
    }
    if (end - key.part + KeyTones.blockLength) / ticks > KeyTones.longestPart {
      pressed?.part = end
    }
    return [event]
  }
}

extension KeyTones.Event {
  /// -10 dBm0, which telephones are used to.
  private static let volume: UInt8 = 10

  /// The four bytes of RFC 4733 section 2.3.
  ///
  /// - Parameter ticks: how many samples at 48 kHz a tick lasts.
  func payload(ticks: Int64) -> [UInt8] {
    let length = UInt16(clamping: duration / max(1, ticks))
    return [
      code, (isEnd ? 0x80 : 0) | Self.volume, UInt8(length >> 8),
      UInt8(truncatingIfNeeded: length),
    ]
  }
}

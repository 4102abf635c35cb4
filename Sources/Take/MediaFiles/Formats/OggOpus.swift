import Media
import Wire

/// The Opus identification header (RFC 7845 section 5.1).
enum OpusHead {
  static func bytes(channels: Int, preSkip: Int) -> [UInt8] {
    let skip = UInt16(clamping: preSkip)
    return Array("OpusHead".utf8) + [1, UInt8(clamping: channels)]
      + [UInt8(truncatingIfNeeded: skip), UInt8(skip >> 8)]
      + [0x80, 0xbb, 0, 0] + [0, 0, 0]
  }
}

/// Writes Opus packets unchanged into an Ogg file (RFC 3533, RFC 7845).
///
/// libogg is not used, because it does little more than compute checksums: calling it would need
/// more code than writing the pages here.
package struct OggOpusFile {
  private let file: MediaFile
  private var lengths: [UInt8] = []
  private var body: [UInt8] = []
  /// The end of the last packet, in samples at 48 kHz.
  private var position: Int64 = 0
  private var pageBegin: Int64 = 0
  private var sequence: UInt32 = 0

  /// The duration after which a page is written, in samples at 48 kHz: a second, so that players
  /// can seek.
  private static let longestPage: Int64 = 48_000
  private static let serial: UInt32 = 0x7265_7461

  /// Starts a file with its two headers.
  ///
  /// - Parameter preSkip: how many samples at 48 kHz a player skips at the start.
  package init(_ file: MediaFile, channels: Int, preSkip: Int) throws(MediaFileError) {
    self.file = file
    try writePage(OpusHead.bytes(channels: channels, preSkip: preSkip), flags: 2, at: 0)
    let vendor = Array("retake".utf8)
    try writePage(
      Array("OpusTags".utf8) + [UInt8(vendor.count), 0, 0, 0] + vendor + [0, 0, 0, 0],
      flags: 0, at: 0)
  }

  /// Adds the next packet; `samples` is its duration in samples at 48 kHz.
  package mutating func add(_ packet: [UInt8], samples: Int) throws(MediaFileError) {
    let count = packet.count / 255 + 1
    // A packet that does not fit into one page is dropped. Readers should refuse it anyway, because
    // it exceeds 61,440 bytes (RFC 7845 section 6).
    guard count <= 255 else { return }
    if lengths.count + count > 255 || position - pageBegin >= Self.longestPage {
      try flush(isLast: false)
    }
    lengths += [UInt8](repeating: 255, count: count - 1) + [UInt8(packet.count % 255)]
    body += packet
    position += Int64(samples)
  }

  /// Writes the last page, which is marked as the end of the stream.
  package mutating func finish() throws(MediaFileError) { try flush(isLast: true) }

  private mutating func flush(isLast: Bool) throws(MediaFileError) {
    try writePage(lengths, body, flags: isLast ? 4 : 0, at: position)
    (lengths, body, pageBegin) = ([], [], position)
  }

  private mutating func writePage(
    _ packet: [UInt8], flags: UInt8, at position: Int64
  ) throws(MediaFileError) {
    try writePage([UInt8(packet.count)], packet, flags: flags, at: position)
  }

  private mutating func writePage(
    _ lengths: [UInt8], _ body: [UInt8], flags: UInt8, at position: Int64
  ) throws(MediaFileError) {
    var page = Array("OggS".utf8) + [0, flags]
    page.append(little: UInt64(bitPattern: position), 8)
    page.append(little: UInt64(Self.serial), 4)
    page.append(little: UInt64(sequence), 4)
    page += [0, 0, 0, 0, UInt8(lengths.count)] + lengths + body
    let check = Self.checksum(page)
    for place in 0..<4 { page[22 + place] = UInt8(truncatingIfNeeded: check >> UInt32(8 * place)) }
    sequence &+= 1
    try file.write(page)
  }

  /// Returns the CRC from RFC 3533 section 6: 32 bits, polynomial 0x04c11db7, not reflected,
  /// starting at zero.
  private static func checksum(_ page: [UInt8]) -> UInt32 {
    page.reduce(0) { $0 << 8 ^ table[Int(UInt8($0 >> 24) ^ $1)] }
  }

  private static let table: [UInt32] = (0..<256).map { byte in
    (0..<8).reduce(UInt32(byte) << 24) { value, _ in
      value & 0x8000_0000 == 0 ? value << 1 : value << 1 ^ 0x04c1_1db7
    }
  }
}

extension [UInt8] {
  fileprivate mutating func append(little value: UInt64, _ count: Int) {
    for place in 0..<count { append(UInt8(truncatingIfNeeded: value >> UInt64(8 * place))) }
  }
}

// MARK: - OpusTimeline

/// Places received Opus packets on one clock without gaps, decoding nothing.
///
/// Packets without data replace lost packets and the silence that a sender omits (DTX). They make
/// the player's decoder conceal the missing audio (RFC 7845 section 4.1). Each has one byte, with
/// the previous packet's mode, bandwidth and channels.
package struct OpusTimeline {
  /// A packet with its position.
  package struct Piece {
    package var bytes: [UInt8]
    /// The packet's start, in samples at 48 kHz.
    package var position: Int64
    /// The packet's duration in samples.
    package var samples: Int
    /// Whether the packet replaces a missing one.
    package var isFiller: Bool
  }

  /// The position of the next packet.
  package private(set) var end: Int64 = 0
  /// The number of concealed samples.
  package private(set) var concealed: Int64 = 0
  /// The number of samples cut from pauses because the pauses were too long.
  package private(set) var leftOut: Int64 = 0
  /// The number of packets dropped as duplicate, too late, or invalid.
  package private(set) var dropped = 0

  private var last: (time: UInt32, at: Int64, position: Int64, samples: Int, toc: UInt8)?
  private var rest: Int64

  /// Creates a timeline that starts at 0.
  ///
  /// - Parameter limit: the maximum number of samples that fillers may replace: no call pauses for
  ///   longer than a day, and a wrong date must not fill a disk.
  package init(concealing limit: Int64 = 24 * 3_600 * 48_000) { rest = limit }

  /// How far a packet's time may go back, in samples, for the packet to count as late; beyond that,
  /// the sender's clock restarted.
  private static let lateness: Int64 = 5 * 48_000
  /// How far a packet's time may be ahead of its arrival, in samples; beyond that, the sender's
  /// clock restarted.
  private static let lead: Int64 = 10 * 48_000

  /// Emits the next packet at its position, and before it the fillers for any gap.
  ///
  /// - Parameters:
  ///   - time: the packet's RTP time.
  ///   - nanoseconds: when the packet was played or sent; if the sender's RTP times restart, these
  ///     times determine how long the pause is.
  package mutating func place(
    _ packet: [UInt8], time: UInt32, atNanoseconds nanoseconds: Int64,
    _ emit: (Piece) throws(MediaFileError) -> Void
  ) throws(MediaFileError) {
    guard let toc = packet.first, let form = OpusPacket(packet) else {
      dropped += 1
      return
    }
    var position = end
    if let last {
      let ticks = Int64(Int32(bitPattern: time &- last.time))
      let passed = max(0, (nanoseconds -| last.at) / 125 * 6 / 1_000)
      if ticks <= 0, ticks > -Self.lateness {
        dropped += 1
        return
      }
      position =
        ticks < 0 || ticks > passed + Self.lead
        ? end + max(0, passed - Int64(last.samples)) : last.position + ticks
      try fill(to: position, last.toc, emit)
      if position - end >= 120 {
        leftOut += position - end
        position = end
      }
    }
    last = (time, nanoseconds, position, form.duration, toc)
    try emit(Piece(bytes: packet, position: end, samples: form.duration, isFiller: false))
    end += Int64(form.duration)
  }

  private mutating func fill(
    to position: Int64, _ toc: UInt8, _ emit: (Piece) throws(MediaFileError) -> Void
  ) throws(MediaFileError) {
    while position - end >= 120, rest > 0 {
      let (byte, samples) = Self.filler(toc, upTo: position - end)
      try emit(Piece(bytes: [byte], position: end, samples: samples, isFiller: true))
      end += Int64(samples)
      concealed += Int64(samples)
      rest -= Int64(samples)
    }
  }

  /// Returns the only byte of a packet without data, and the packet's duration in samples: at most
  /// 20 ms.
  ///
  /// The packet has the mode of the previous packet if frames of that mode can be so short.
  /// Otherwise, it uses CELT with the same bandwidth, or with wideband instead of medium band,
  /// which CELT lacks (RFC 6716 table 2).
  private static func filler(_ toc: UInt8, upTo samples: Int64) -> (toc: UInt8, samples: Int) {
    let configuration = toc >> 3
    let stereo = toc & 4
    let lengths: [Int] = [960, 480, 240]
    let length: Int = lengths.first { samples >= Int64($0) } ?? 120
    if configuration < 16, length >= 480 {
      // The first two configurations of each group have frames of 10 and 20 ms. A group has four
      // configurations for SILK, and two in hybrid mode.
      let base = configuration & (configuration < 12 ? ~3 : ~1)
      return ((base | (length == 480 ? 0 : 1)) << 3 | stereo, length)
    }
    let band: UInt8 =
      switch configuration {
      case 0..<4: 16
      case 4..<12: 20
      case 12..<14: 24
      case 14..<16: 28
      default: configuration & ~3
      }
    let size: UInt8 = [120: 0, 240: 1, 480: 2][length] ?? 3
    return ((band | size) << 3 | stereo, length)
  }
}

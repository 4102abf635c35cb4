import Tape
import Wire

/// The recorded frames of a take as the answers to codec calls.
///
/// Frames are read as the replay reaches their steps; an answer belongs to one direction of one
/// transceiver of one peer.
final class FrameScript {
  /// A recorded call of a codec.
  struct Entry {
    var step: Int
    var format: Format
    var quantiser: UInt8
    var audioLevel: UInt8?
    var peak: UInt16
    var energy: UInt64
    var size: Int
    /// The encoded frame; nil for one that was received, in a take that keeps no media.
    var bytes: [UInt8]?

    /// Whether these may be the bytes of the frame.
    func holds(_ other: [UInt8]) -> Bool {
      guard let bytes else { return other.count == size }
      return Value.blob(bytes).matches(.blob(other))
    }
  }

  /// What frames of one kind have in common.
  struct Format {
    var voice: Voice
    var ssrc: UInt32
    var outcome: String
    var isKey: Bool
    var isVoice: Bool
    var width: Int
    var height: Int
    var channels: Int
    var samples: Int

    /// Whether a codec is asked about such frames; others would wait for ever.
    var isAsked: Bool { outcome != "not decoded" && outcome != "passed on" }
  }

  /// Whose frames an entry stands among.
  struct Voice: Hashable {
    var peer: UInt32
    var track: UInt32
    var isInbound: Bool
  }

  private let connection: SQLiteConnection
  private var statement: SQLiteStatement
  /// The formats in their order; `known` has those up to the present one.
  private var formats: SQLiteStatement
  private var known: [Int64: Format] = [:]
  private let media: WireCursor
  /// What was sent, where the take keeps no media.
  private let sent: SentFrames?
  private var isAtEnd = false
  /// Entries that were read and not yet asked for.
  private var waiting: [(voice: Voice, entries: [Entry])] = []
  private var readThroughStep = 0
  private var step = 0
  /// The frames that were not sent whole: how many, and the step of the first.
  private(set) var unsent: (count: Int, step: Int)?

  /// How many entries ahead of the replay may be looked at.
  private static let lookahead = 256

  /// - Parameter keepsMedia: whether the take has the frames themselves; else they are read from
  ///   the packets that were sent.
  init(path: String, keepsMedia: Bool) throws(TapeError) {
    sent = keepsMedia ? nil : try SentFrames(path: path)
    connection = try TakeFile.open(path, cacheKilobytes: TapeReader.cacheKilobytes)
    do throws(SQLiteError) {
      statement = try connection.prepare(
        """
        SELECT row >> 16, at_ns, format, rtp_time & 0xffffffff, quantiser, audio_level, peak,
          energy, size
        FROM frame_store ORDER BY row
        """)
      formats = try connection.prepare(
        """
        SELECT format, peer, track, direction = 'in', ssrc, outcome, key, voice, width, height,
          channels, samples
        FROM format ORDER BY format
        """)
      media = try WireCursor(connection, table: "media")
    } catch {
      throw TapeError(path: path, place: "frame", reason: error.description)
    }
  }

  /// Tells which step is replayed from now on.
  func begin(step: Int) { self.step = step }

  /// The next encoded frame of the present step; nil when the encoder gave none.
  func encoded(_ voice: Voice) -> Entry? {
    while !isAtEnd, readThroughStep <= step { read() }
    return take(voice) { $0.step == self.step }
  }

  /// The result of decoding a payload, or of making audio up; nil when none was recorded.
  ///
  /// A decoder may run before its result is shown, so entries of later steps count too.
  func decoded(_ voice: Voice, where matches: (Entry) -> Bool) -> Entry? {
    var budget = FrameScript.lookahead
    while true {
      if let found = take(voice, matches) { return found }
      guard !isAtEnd, readThroughStep <= step || budget > 0 else { return nil }
      if readThroughStep > step { budget -= 1 }
      read()
    }
  }

  private func take(_ voice: Voice, _ matches: (Entry) -> Bool) -> Entry? {
    guard let queue = waiting.firstIndex(where: { $0.voice == voice }),
      let index = waiting[queue].entries.firstIndex(where: matches)
    else { return nil }
    let found = waiting[queue].entries[index]
    // What was passed over was never asked for and will not be.
    waiting[queue].entries.removeSubrange(...index)
    return found
  }

  private func read() {
    guard (try? statement.step()) == true else {
      isAtEnd = true
      return
    }
    let (step, at, number, rtpTime) = statement.values(
      Int.self, Instant.self, Int64.self, UInt32.self)
    let (quantiser, audioLevel, peak, energy, size) = statement.values(
      from: 4, UInt8.self, UInt8?.self, UInt16.self, UInt64.self, Int.self)
    readThroughStep = step
    // A frame without a format stands in a file that was altered, which its reader will say.
    guard let format = format(number) else { return }
    var bytes: [UInt8]?
    if let sent {
      if format.isAsked, !format.voice.isInbound {
        let wanted = SentFrames.Wanted(
          peer: format.voice.peer, ssrc: format.ssrc, rtpTime: rtpTime, size: size, at: at)
        let found = sent.bytes(of: wanted)
        bytes = found.bytes
        if !found.isWhole { unsent = (1 + (unsent?.count ?? 0), unsent?.step ?? step) }
      }
    } else {
      guard let kept = try? media.take(Int64(size)) else {
        isAtEnd = true
        return
      }
      bytes = kept
    }
    guard format.isAsked else { return }
    let entry = Entry(
      step: step, format: format, quantiser: quantiser, audioLevel: audioLevel, peak: peak,
      energy: energy, size: size, bytes: bytes)
    let voice = format.voice
    if let queue = waiting.firstIndex(where: { $0.voice == voice }) {
      waiting[queue].entries.append(entry)
    } else {
      waiting.append((voice, [entry]))
    }
  }

  /// The format with a number; nil when there is none.
  private func format(_ wanted: Int64) -> Format? {
    while known[wanted] == nil, (try? formats.step()) == true {
      let (number, peer, track, isInbound, ssrc) = formats.values(
        Int64.self, UInt32.self, UInt32.self, Bool.self, UInt32.self)
      let (outcome, isKey, isVoice, width, height, channels, samples) = formats.values(
        from: 5, String.self, Bool.self, Bool.self, Int.self, Int.self, Int.self, Int.self)
      known[number] = Format(
        voice: Voice(peer: peer, track: track, isInbound: isInbound), ssrc: ssrc,
        outcome: outcome, isKey: isKey, isVoice: isVoice, width: width, height: height,
        channels: channels, samples: samples)
    }
    return known[wanted]
  }
}

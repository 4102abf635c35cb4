import Tape

/// The recorded frames of a take as the answers to codec calls.
///
/// Frames are read as the replay reaches their steps; an answer belongs to one direction of one
/// transceiver of one peer.
final class FrameScript {
  /// A recorded call of a codec.
  struct Entry {
    var step: Int
    var outcome: String
    var isKey: Bool
    var isVoice: Bool
    var width: Int
    var height: Int
    var channels: Int
    var samples: Int
    var quantiser: UInt8
    var audioLevel: UInt8?
    var peak: UInt16
    var energy: UInt64
    var bytes: [UInt8]
  }

  /// Whose frames an entry stands among.
  struct Voice: Hashable {
    var peer: Int64
    var track: Int64
    var isInbound: Bool
  }

  private let connection: SQLiteConnection
  private var statement: SQLiteStatement
  private let media: WireCursor
  private var isAtEnd = false
  /// Entries that were read and not yet asked for.
  private var waiting: [(voice: Voice, entries: [Entry])] = []
  private var readThroughStep = 0
  private var step = 0

  /// How many entries ahead of the replay may be looked at.
  private static let lookahead = 256

  init(path: String) throws(TapeError) {
    connection = try TakeFile.open(path, cacheKilobytes: TapeReader.cacheKilobytes)
    do throws(SQLiteError) {
      statement = try connection.prepare(
        """
        SELECT store.row >> 16, peer, track, direction = 'in', outcome, key, voice, width, height,
          channels, samples, quantiser, audio_level, peak, energy, size
        FROM frame_store AS store CROSS JOIN format USING (format) ORDER BY store.row
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

  /// The result of decoding a payload, or of making sound up; nil when none was recorded.
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
    guard (try? statement.step()) == true, let bytes = try? media.take(statement.integer(15)) else {
      isAtEnd = true
      return
    }
    readThroughStep = Int(statement.integer(0))
    let voice = Voice(
      peer: statement.integer(1), track: statement.integer(2),
      isInbound: statement.integer(3) != 0)
    let entry = Entry(
      step: readThroughStep, outcome: statement.text(4) ?? "", isKey: statement.integer(5) != 0,
      isVoice: statement.integer(6) != 0, width: Int(clamping: statement.integer(7)),
      height: Int(clamping: statement.integer(8)), channels: Int(clamping: statement.integer(9)),
      samples: Int(clamping: statement.integer(10)),
      quantiser: UInt8(clamping: statement.integer(11)),
      audioLevel: statement.isNull(12) ? nil : UInt8(clamping: statement.integer(12)),
      peak: UInt16(clamping: statement.integer(13)),
      energy: UInt64(bitPattern: statement.integer(14)), bytes: bytes)
    // No codec is asked about these, so they would wait for ever.
    if entry.outcome == "not decoded" || entry.outcome == "passed on" { return }
    if let queue = waiting.firstIndex(where: { $0.voice == voice }) {
      waiting[queue].entries.append(entry)
    } else {
      waiting.append((voice, [entry]))
    }
  }
}

import DequeModule
import Digests
import Tape
import Wire

/// The recorded frames of a take as the answers to codec calls.
///
/// Frames are taken from the steps as these are read; an answer belongs to one direction of one
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
    /// The encoded frame; nil for one that was received.
    var bytes: [UInt8]?
    /// What tells the bytes of a frame that was received; nil in a take that keeps no media.
    var mark: XXH3.Mark?

    /// Whether these may be the bytes of the frame.
    func holds(_ other: [UInt8]) -> Bool {
      other.count == size && (mark == nil || mark == XXH3.mark(other.span.bytes))
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

  private var known: [Int64: Format] = [:]
  /// What was sent, where the take keeps no media.
  private let sent: SentFrames?
  /// Where more steps come from.
  private var source: StepSource?
  /// Entries that were read and not yet asked for.
  private var waiting: [(voice: Voice, entries: Deque<Entry>)] = []
  private var step = 0
  /// The frames that were not sent whole: how many, and the step of the first.
  private(set) var unsent: (count: Int, step: Int)?
  /// How many frames were read so far.
  private var count = 0

  /// How many frames ahead of the replay may be looked at.
  private static let lookahead = 256
  /// How many entries of a voice wait at most: nobody asks for those of another kind of machine.
  private static let waitingMaximum = 1_024

  /// - Parameter keepsMedia: whether the take has the frames themselves; else they are read from
  ///   the packets that were sent.
  init(path: String, keepsMedia: Bool) throws(TapeError) {
    sent = keepsMedia ? nil : try SentFrames(path: path)
  }

  /// Takes the frames from the steps of a source, as they are read.
  func follow(_ source: StepSource) {
    self.source = source
    source.onlooker = { [unowned self] in learn($0) }
  }

  /// Tells which step is replayed from now on.
  func begin(step: Int) { self.step = step }

  /// The next encoded frame of the present step; nil when the encoder gave none.
  func encoded(_ voice: Voice) -> Entry? { take(voice) { $0.step == self.step } }

  /// The result of decoding a payload, or of making audio up; nil when none was recorded.
  ///
  /// A decoder may run before its result is shown, so entries of later steps count too.
  func decoded(_ voice: Voice, where matches: (Entry) -> Bool) -> Entry? {
    let limit = count + FrameScript.lookahead
    while true {
      if let found = take(voice, matches) { return found }
      guard count < limit, source?.lookAhead() == true else { return nil }
    }
  }

  private func take(_ voice: Voice, _ matches: (Entry) -> Bool) -> Entry? {
    guard let queue = waiting.firstIndex(where: { $0.voice == voice }),
      let index = waiting[queue].entries.firstIndex(where: matches)
    else { return nil }
    // What was passed over was never asked for and will not be.
    waiting[queue].entries.removeFirst(index)
    return waiting[queue].entries.popFirst()
  }

  // MARK: Reading

  /// Takes note of the frames of steps, before they are executed.
  func learn(_ chunk: TapeChunk) {
    for index in chunk.steps.indices {
      for row in chunk.steps[index].outputRows {
        switch chunk.rows.table(row) {
        case .format:
          if let format = FormatRow(chunk.rows, row) { known[format.number] = Format(format) }
        case .frame: learn(chunk.rows, row, of: chunk.steps[index].head.number)
        default: break
        }
      }
    }
  }

  private func learn(_ rows: RowList, _ row: Int, of step: Int) {
    count += 1
    // A frame without a format stands in a file that was altered, which its reader will say.
    guard let frame = FrameRow.withoutBytes(rows, row), let format = known[frame.format.number],
      format.isAsked
    else { return }
    var entry = Entry(
      step: step, format: format, quantiser: UInt8(clamping: frame.quantiser),
      audioLevel: frame.audioLevel, peak: frame.peak, energy: frame.energy, size: frame.size)
    if format.voice.isInbound {
      entry.mark = rows.withStreamBytes(row) { XXH3.mark($0) }
    } else if let sent {
      let wanted = SentFrames.Wanted(
        peer: format.voice.peer, ssrc: format.ssrc, rtpTime: frame.rtpTime.number,
        size: frame.size, at: frame.at)
      let found = sent.bytes(of: wanted)
      entry.bytes = found.bytes
      if !found.isWhole { unsent = (1 + (unsent?.count ?? 0), unsent?.step ?? step) }
    } else {
      entry.bytes = rows.withStreamBytes(row) { [UInt8]($0) }
    }
    append(entry, format.voice)
  }

  private func append(_ entry: Entry, _ voice: Voice) {
    guard let queue = waiting.firstIndex(where: { $0.voice == voice }) else {
      waiting.append((voice, [entry]))
      return
    }
    if waiting[queue].entries.count == FrameScript.waitingMaximum {
      waiting[queue].entries.removeFirst()
    }
    waiting[queue].entries.append(entry)
  }
}

extension FrameScript.Format {
  fileprivate init(_ row: FormatRow) {
    self.init(
      voice: FrameScript.Voice(
        peer: row.peer.number, track: row.track, isInbound: row.direction.isInbound),
      ssrc: row.ssrc, outcome: row.outcome, isKey: row.isKey, isVoice: row.isVoice,
      width: row.width ?? 0, height: row.height ?? 0, channels: row.channels ?? 0,
      samples: row.samples ?? 0)
  }
}

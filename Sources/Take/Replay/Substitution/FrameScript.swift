import Crypto
import DequeModule
import Media
import Peer
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

  /// What frames of one kind have in common; a class, because every frame refers to its own.
  final class Format {
    let voice: Voice
    let ssrc: UInt32
    let outcome: String
    let isKey: Bool
    let isVoice: Bool
    let width: Int
    let height: Int
    let channels: Int
    let samples: Int
    /// Where its frames wait.
    let line: Line

    fileprivate init(_ row: FormatRow, _ voice: Voice, _ line: Line) {
      self.voice = voice
      self.line = line
      ssrc = row.ssrc
      outcome = row.outcome
      isKey = row.isKey
      isVoice = row.isVoice
      width = row.width ?? 0
      height = row.height ?? 0
      channels = row.channels ?? 0
      samples = row.samples ?? 0
    }

    /// Whether a codec is asked about such frames; others would wait for ever.
    var isAsked: Bool { outcome != "not decoded" && outcome != "passed on" }
  }

  /// Whose frames an entry stands among.
  struct Voice: Hashable {
    var peer: UInt32
    var track: UInt32
    var isInbound: Bool
  }

  /// The entries of a voice that were read and not yet asked for.
  final class Line {
    fileprivate var entries = Deque<Entry>()

    fileprivate func append(_ entry: Entry) {
      if entries.count == FrameScript.waitingMaximum { entries.removeFirst() }
      entries.append(entry)
    }

    fileprivate func consume(_ matches: (Entry) -> Bool) -> Entry? {
      // It is the first one as a rule.
      if let first = entries.first, matches(first) { return entries.popFirst() }
      guard let index = entries.firstIndex(where: matches) else { return nil }
      // What was passed over was never asked for and will not be.
      entries.removeFirst(index)
      return entries.popFirst()
    }
  }

  private var known: [Int64: Format] = [:]
  /// What was sent, where the take keeps no media.
  private let sent: SentFrames?
  /// Where more steps come from.
  private var source: StepSource?
  private var lines: [Voice: Line] = [:]
  private var step = 0
  /// The frames that were not sent whole: how many, and the step of the first.
  private(set) var unsent: (count: Int, step: Int)?
  /// How many frames were read so far.
  private var count = 0

  /// How many frames ahead of the replay may be looked at.
  private static let lookahead = 256
  /// How many entries of a voice wait at most: nobody asks for those of another kind of machine.
  fileprivate static let waitingMaximum = 1_024

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

  /// Where the frames of a voice wait.
  func line(of voice: Voice) -> Line {
    if let known = lines[voice] { return known }
    let line = Line()
    lines[voice] = line
    return line
  }

  /// The next encoded frame of the present step; nil when the encoder gave none.
  func encoded(_ line: Line) -> Entry? { line.consume { $0.step == self.step } }

  /// The result of decoding a payload, or of making audio up; nil when none was recorded.
  ///
  /// A decoder may run before its result is shown, so entries of later steps count too.
  func decoded(_ line: Line, where matches: (Entry) -> Bool) -> Entry? {
    let limit = count + FrameScript.lookahead
    while true {
      if let found = line.consume(matches) { return found }
      guard count < limit, source?.lookAhead() == true else { return nil }
    }
  }

  // MARK: Reading

  /// Records the frames of steps, before they are executed.
  func learn(_ chunk: TapeChunk) {
    for index in chunk.steps.indices {
      for row in chunk.steps[index].outputRows {
        switch chunk.rows.table(row) {
        case .format:
          if let format = FormatRow(chunk.rows, row) { learn(format) }
        case .frame: learn(chunk.rows, row, of: chunk.steps[index].head.number)
        default: break
        }
      }
    }
  }

  private func learn(_ row: FormatRow) {
    let voice = Voice(
      peer: row.peer.number, track: row.track, isInbound: row.direction.isInbound)
    known[row.number] = Format(row, voice, line(of: voice))
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
    format.line.append(entry)
  }
}

/// Codecs that applications brought, as a take names them.
enum OwnCodecCheck {
  /// Whether the frames of a take have to stand in for its codecs, because peers of it had codecs
  /// of their application's that are not here; throws when the take cannot be read.
  static func needsFrames(
    _ reader: TapeReader, codecs: () -> any CodecFactory
  ) throws(TapeError) -> Bool {
    let configurations = try reader.peerConfigurations(with: "ownCodecs")
    let named = configurations.flatMap { text in
      CanonicalJSON.value(PeerConfiguration.self, from: text)?.ownCodecs ?? []
    }
    guard !named.isEmpty else { return false }
    let present = codecs().applicationCodecs
    return !named.allSatisfy { present.contains($0) }
  }
}

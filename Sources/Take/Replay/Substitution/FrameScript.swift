import Crypto
import DequeModule
import Media
import Peer
import Tape
import Wire

/// Supplies recorded frames as the results of codec calls.
///
/// Frames are collected while steps are read, in a queue for each direction of a transceiver.
final class FrameScript {
  /// The recorded result of a codec call.
  struct Entry {
    var step: Int
    var format: Format
    var quantiser: UInt8
    var audioLevel: UInt8?
    var peak: UInt16
    var energy: UInt64
    var size: Int
    /// The encoded frame; nil for a frame that was received.
    var bytes: [UInt8]?
    /// The hash of a received frame; nil for a sent frame, and in a take without media.
    var mark: XXH3.Mark?

    /// Returns whether these bytes may be the frame that the entry describes.
    func holds(_ other: [UInt8]) -> Bool {
      other.count == size && (mark == nil || mark == XXH3.mark(other.span.bytes))
    }
  }

  /// The properties that many frames share; a class, because every entry refers to a format.
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
    /// The queue for frames in this format.
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

    /// Whether a codec is called for frames with this outcome; entries for other frames would never
    /// be consumed.
    var isAsked: Bool { outcome != "not decoded" && outcome != "passed on" }
  }

  /// One direction of a transceiver.
  struct Voice: Hashable {
    var peer: UInt32
    var track: UInt32
    var isInbound: Bool
  }

  /// A queue of recorded results, in order.
  final class Line {
    fileprivate var entries = Deque<Entry>()

    fileprivate func append(_ entry: Entry) {
      if entries.count == FrameScript.waitingMaximum { entries.removeFirst() }
      entries.append(entry)
    }

    fileprivate func consume(_ matches: (Entry) -> Bool) -> Entry? {
      // The first entry usually matches.
      if let first = entries.first, matches(first) { return entries.popFirst() }
      guard let index = entries.firstIndex(where: matches) else { return nil }
      // Earlier entries were for calls that this replay did not make.
      entries.removeFirst(index)
      return entries.popFirst()
    }
  }

  private var known: [Int64: Format] = [:]
  /// Recovers sent frames from packets; nil if the take has media.
  private let sent: SentFrames?
  /// The source of more steps; nil until `follow` is called.
  private var source: StepSource?
  private var lines: [Voice: Line] = [:]
  private var step = 0
  /// The number of frames that were not sent completely, and the step of the first one; nil if all
  /// were sent.
  private(set) var unsent: (count: Int, step: Int)?
  /// The number of frames read so far.
  private var count = 0

  /// How many more frames are read when no entry matches.
  private static let lookahead = 256
  /// The maximum number of entries per queue, which matters for queues that no codec reads.
  fileprivate static let waitingMaximum = 1_024

  /// - Parameter keepsMedia: whether the take has frames; if not, they are recovered from sent
  ///   packets.
  init(path: String, keepsMedia: Bool) throws(TapeError) {
    sent = keepsMedia ? nil : try SentFrames(path: path)
  }

  /// Collects the frames of all steps that a source reads.
  func follow(_ source: StepSource) {
    self.source = source
    source.onlooker = { [unowned self] in learn($0) }
  }

  /// Sets the number of the step that is being replayed.
  func begin(step: Int) { self.step = step }

  /// Returns the queue of a direction; creates it if there is none.
  func line(of voice: Voice) -> Line {
    if let known = lines[voice] { return known }
    let line = Line()
    lines[voice] = line
    return line
  }

  /// Returns the next frame that the encoder emitted in this step; nil if there is none.
  func encoded(_ line: Line) -> Entry? { line.consume { $0.step == self.step } }

  /// Returns the recorded result of a decoder or of concealment; nil if there is none.
  ///
  /// A frame's row is in the step that showed the frame, which may be later than the decoder's
  /// call. So steps are read ahead if necessary.
  func decoded(_ line: Line, where matches: (Entry) -> Bool) -> Entry? {
    let limit = count + FrameScript.lookahead
    while true {
      if let found = line.consume(matches) { return found }
      guard count < limit, source?.lookAhead() == true else { return nil }
    }
  }

  // MARK: Reading

  /// Collects the frames of steps that are not executed yet.
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
    // A frame without its format means that the file was altered, which the reader reports.
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

/// Checks for takes whose peers used codecs that the application provided.
enum OwnCodecCheck {
  /// Returns whether recorded frames must replace the codecs, because peers used an application's
  /// own codecs and this process lacks at least one of them.
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

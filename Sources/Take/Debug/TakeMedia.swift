import FoundationEssentials
import Media
import MediaFiles
import Peer
import RTP
import Replay
import Tape
package import Wire

/// Video frames and audio at a place in a take, decoded from the take's media.
package struct TakeMedia {
  /// The words that select media, such as `peer=1 track=2 seconds=3`.
  package struct Choice: Sendable {
    var peer: Int64?
    var track: Int64?
    var seconds = 2.0

    /// Parses the words after the file name.
    package init(_ words: some Sequence<String>, for command: DebugCommandName)
      throws(DebugFailure)
    {
      for word in words {
        let parts = word.split(separator: "=", maxSplits: 1).map { String($0) }
        let value = parts.last ?? ""
        switch parts.count == 2 ? parts[0] : "" {
        case "peer" where Int64(value) != nil: peer = Int64(value)
        case "track" where Int64(value) != nil: track = Int64(value)
        case "seconds" where command == .audio && Choice.lengths.contains(Double(value) ?? 0):
          seconds = Double(value) ?? seconds
        case "seconds" where command == .audio:
          throw .command("seconds= needs a number from 0.02 to 600, not \(value)")
        default:
          throw .command(
            "\"\(word)\" is not an argument of this command; its usage is \(command.usage)")
        }
      }
    }

    private static let lengths = 0.02...600
  }

  let path: String

  /// Prepares access to a take; nothing is read yet.
  package init(path: String) { self.path = path }

  private struct Track {
    var peer: Int64
    var number: Int64
  }

  /// Writes the video frame that a track showed at an instant; returns a line that describes the
  /// file.
  package func writeVideoFrame(_ file: String, _ choice: Choice, at instant: Instant)
    throws(DebugFailure) -> String
  {
    let (track, videoFrame, shownAt, isExact) = try reading { connection in
      try self.videoFrame(connection, choice, at: instant)
    }
    try write(PNG.file(videoFrame), to: file)
    let exact = isExact ? "the same samples as in the recording" : "not the recorded samples"
    return
      "\(file): \(videoFrame.width)x\(videoFrame.height), "
      + "peer \(track.peer) track \(track.number), "
      + "shown from \(seconds(shownAt)) s on; \(exact)"
  }

  /// Writes the audio that a track played around an instant; returns a line that describes the
  /// file.
  package func writeAudio(_ file: String, _ choice: Choice, around instant: Instant)
    throws(DebugFailure) -> String
  {
    let half = Interval(nanoseconds: Int64(saturating: choice.seconds * 5e8))
    let (track, blocks, begin) = try reading { connection in
      try self.audio(connection, choice, from: instant - half, to: instant + half)
    }
    let channels = blocks.first?.channels ?? 1
    let samples = blocks.flatMap(WAVWriter.samples)
    let format = WAVFormat(channels: channels, sampleRate: AudioBlock.sampleRate)
    try write(WAVWriter.header(format, dataByteCount: samples.count) + samples, to: file)
    let length = Double(samples.count) / Double(2 * channels * AudioBlock.sampleRate)
    return "\(file): \(decimal(length, 2)) s of audio, peer \(track.peer) track "
      + "\(track.number), from \(seconds(begin)) s on"
  }

  // MARK: Decoding

  private func videoFrame(
    _ connection: borrowing SQLiteConnection, _ choice: Choice, at instant: Instant
  ) throws -> (Track, I420Buffer, Int64, Bool) {
    let track = try self.track(connection, choice, kind: "video", at: instant)
    let statement = try connection.prepare(
      """
      SELECT bytes, at_ns, digest, codec FROM frame
      WHERE peer = ?1 AND track = ?2 AND direction = 'in' AND kind = 'video'
        AND outcome = 'decoded' AND at_ns <= ?3
        AND row >= (
          SELECT max(row) FROM frame WHERE peer = ?1 AND track = ?2 AND direction = 'in'
            AND kind = 'video' AND outcome = 'decoded' AND key = 1 AND at_ns <= ?3
        )
      ORDER BY row
      """)
    bind(track, instant, to: statement)
    var decoder: (any VideoDecoding)?
    var shown: (videoFrame: I420Buffer, at: Int64, digest: [UInt8])?
    while try statement.step() {
      let (bytes, at, digest, codec) = statement.values(
        [UInt8].self, Int64.self, [UInt8].self, String.self)
      let used =
        try decoder
        ?? LibraryCodecs().videoDecoder(track: "\(track.number)", CodecName(rawValue: codec))
      decoder = used
      shown = (try used.decode(bytes).videoFrame, at, digest)
    }
    guard let shown else {
      throw DebugFailure.command("no video frame was shown before this point")
    }
    let digest = DecodedMedia.videoFrame(shown.videoFrame).digest
    return (track, shown.videoFrame, shown.at, digest == shown.digest)
  }

  private func audio(
    _ connection: borrowing SQLiteConnection, _ choice: Choice, from begin: Instant,
    to end: Instant
  ) throws -> (Track, [AudioBlock], Int64) {
    let track = try self.track(connection, choice, kind: "audio", at: end)
    let statement = try connection.prepare(
      """
      SELECT bytes, at_ns, outcome, samples, codec FROM frame
      WHERE peer = ?1 AND track = ?2 AND direction = 'in' AND kind = 'audio'
        AND at_ns <= ?3 AND at_ns >= ?4
      ORDER BY row
      """)
    bind(track, end, to: statement)
    // One second of run-up brings the decoder into its recorded state.
    statement.bind((begin - .seconds(1)).nanoseconds, at: 4)
    var decoders: [String: any AudioDecoding] = [:]
    var blocks: [AudioBlock] = []
    var beginsAt: Int64?
    while try statement.step() {
      let (bytes, at, outcome, samples) = statement.values(
        [UInt8].self, Int64.self, String.self, Int.self)
      let codec = statement.text(4) ?? ""
      let decoder =
        try decoders[codec]
        ?? LibraryCodecs().audioDecoder(
          track: "\(track.number)", CodecName(rawValue: codec), channels: 1)
      decoders[codec] = decoder
      let count = max(120, samples)
      // A recovered block came from redundancy in the packet after it; here it is concealed.
      let request: AudioDecodeRequest =
        outcome == "decoded" ? .payload(bytes) : .conceal(frameCount: count)
      let block =
        (try? decoder.decode(request).block) ?? AudioBlock(blank: count, channels: 1)
      guard at >= begin.nanoseconds else { continue }
      beginsAt = beginsAt ?? at
      blocks.append(block)
    }
    guard let beginsAt else { throw DebugFailure.command("no audio was played around this point") }
    return (track, blocks, beginsAt)
  }

  private func bind(_ track: Track, _ instant: Instant, to statement: borrowing SQLiteStatement) {
    statement.bind(track.peer, at: 1)
    statement.bind(track.number, at: 2)
    statement.bind(instant.nanoseconds, at: 3)
  }

  /// Returns the first track of this kind that had frames before the instant and matches the chosen
  /// peer and track number, if any.
  private func track(
    _ connection: borrowing SQLiteConnection, _ choice: Choice, kind: String, at instant: Instant
  ) throws -> Track {
    let statement = try connection.prepare(
      """
      SELECT DISTINCT peer, track FROM format
      WHERE direction = 'in' AND kind = '\(kind)'
        AND row <= (SELECT max(row) FROM frame_store WHERE at_ns <= \(instant.nanoseconds))
      ORDER BY peer, track
      """)
    var known: [String] = []
    while try statement.step() {
      let (peer, number) = statement.values(Int64.self, Int64.self)
      let track = Track(peer: peer, number: number)
      if choice.peer ?? track.peer == track.peer, choice.track ?? track.number == track.number {
        return track
      }
      known.append("peer=\(track.peer) track=\(track.number)")
    }
    throw DebugFailure.command(
      known.isEmpty
        ? "no \(kind) was received before this point"
        : "there is no such \(kind) track; there is \(known.joined(separator: ", "))")
  }

  // MARK: Files

  private func reading<Value>(_ body: (borrowing SQLiteConnection) throws -> Value)
    throws(DebugFailure) -> Value
  {
    do {
      let connection = try TakeFile.open(path)
      guard try TakeHeader.read(from: connection, path: path).keepsMedia else {
        throw DebugFailure.command(
          "\(path) was recorded without its media; retake export --media replays it instead")
      }
      return try body(connection)
    } catch let failure as DebugFailure {
      throw failure
    } catch let error as TapeError {
      throw .take(error)
    } catch let error as SQLiteError {
      throw .take(TapeError(path: path, error))
    } catch {
      throw .command("\(path): a frame cannot be decoded: \(error)")
    }
  }

  private func write(_ bytes: [UInt8], to file: String) throws(DebugFailure) {
    do throws(WholeFile.Failure) {
      // Readable only by its owner, like the take.
      try WholeFile.write(bytes, to: file, .kept)
    } catch {
      throw .file(error)
    }
  }
}

import Media
import Peer
import RTP
import Replay
import Tape
import Wire

/// Decodes the stored frames of received media: of a peer, a kind of media or a part of a take.
///
/// Nothing is replayed. Video is decoded from the last key frame before the part, and audio from a
/// second before the part.
struct MediaPart {
  let take: String
  let peers: [(number: Int64, label: String)]
  /// The number of the peer whose media is decoded; nil for all.
  let only: Int64?
  /// The only kind of media to decode; nil for both.
  var kind: MediaKind?
  let window: ClosedRange<Int64>

  private struct Track {
    var peer: (number: Int64, label: String)
    var number: UInt32
    var isVideo: Bool
    /// Whether another stack received and decoded the track; the take then has the encoded frames
    /// but no digests of the decoded media.
    var isReported: Bool
  }

  /// A row of `frame` without its peer and track.
  private struct Frame {
    var at: Instant
    var codec: CodecName
    var outcome: String
    var rtpTime: UInt32
    var isKey: Bool
    var bytes: [UInt8]
    var digest: [UInt8]
    /// The number of decoded audio samples.
    var samples: Int
    var channels: Int
  }

  /// How much audio is decoded before the first wanted block, because a decoder's output depends on
  /// earlier packets.
  private static let preroll: Int64 = 1_000_000_000

  /// Decodes the take's frames and writes the media.
  ///
  /// - Returns: false if the take has to be replayed instead: everything is requested, the take
  ///   contains no media, received tracks were turned down, disabled or limited in number, or a
  ///   frame decodes differently from the recording.
  func write(into tracks: TrackFiles, progress: (String) -> Void) throws(ExportFailure) -> Bool {
    return try ExportFailure.reading { () throws(TapeError) in
      let connection = try TakeFile.openForQueries(take)
      guard try TakeHeader.read(from: connection, path: take).keepsMedia else { return false }
      do throws(SQLiteError) {
        // Other stacks' reports cannot be replayed, so their stored frames are the only source.
        let isReported =
          try connection.integer("SELECT count(*) > 0 AND min(role = 'reported') FROM peer") == 1
        guard only != nil || kind != nil || window != .min ... .max || isReported else {
          return false
        }
        let isChanged = try connection.integer(
          """
          SELECT EXISTS (
            SELECT 1 FROM call_request WHERE name IN ('setVolume', 'limitAudioSlots')
              OR name = 'setEnabled' AND arguments ->> '$.isInbound')
          """)
        guard isChanged == 0 else { return false }
        for track in try list(connection) {
          progress("track \(track.number) of peer \(track.peer.number)")
          let isWhole =
            try track.isReported
            ? writeReported(track, connection, into: tracks)
            : track.isVideo
              ? writeVideo(track, connection, into: tracks)
              : writeAudio(track, connection, into: tracks)
          guard isWhole else { return false }
        }
        return true
      } catch {
        throw TapeError(path: take, error)
      }
    }
  }

  private func list(_ connection: borrowing SQLiteConnection) throws(SQLiteError) -> [Track] {
    let rows = try connection.prepare(
      """
      SELECT DISTINCT format.peer, track, kind = 'video', peer.role = 'reported'
      FROM format JOIN peer USING (peer)
      WHERE direction = 'in' AND kind IN ('audio', 'video') ORDER BY format.peer, track
      """)
    var found: [Track] = []
    while try rows.step() {
      let (peer, track, isVideo, isReported) = rows.values(
        Int64.self, UInt32.self, Int64.self, Int64.self)
      guard only == nil || only == peer, kind == nil || (kind == .video) == (isVideo == 1) else {
        continue
      }
      let label = peers.first { $0.number == peer }?.label ?? ""
      found.append(
        Track(
          peer: (peer, label), number: track, isVideo: isVideo == 1, isReported: isReported == 1))
    }
    return found
  }

  /// Calls a closure with each of a track's frames from a row or a time on, until the closure
  /// returns false.
  private func each(
    of track: Track, from: String, _ connection: borrowing SQLiteConnection,
    _ use: (Frame) -> Bool
  ) throws(SQLiteError) -> Bool {
    let rows = try connection.prepare(
      """
      SELECT at_ns, codec, outcome, rtp_time, key, bytes, digest, samples, channels FROM frame
      WHERE peer = \(track.peer.number) AND track = \(track.number) AND direction = 'in'
        AND kind = '\(track.isVideo ? "video" : "audio")' AND at_ns <= \(window.upperBound)
        AND \(from)
      ORDER BY row
      """)
    while try rows.step() {
      let (at, codec, outcome, rtpTime, isKey) = rows.values(
        Int64.self, String.self, String.self, UInt32.self, Int64.self)
      let (bytes, digest, samples, channels) = rows.values(
        from: 5, [UInt8].self, [UInt8].self, Int.self, Int.self)
      let frame = Frame(
        at: Instant(nanoseconds: at), codec: CodecName(rawValue: codec), outcome: outcome,
        rtpTime: rtpTime, isKey: isKey == 1, bytes: bytes, digest: digest, samples: samples,
        channels: channels)
      guard use(frame) else { return false }
    }
    return true
  }

  private func put(
    _ frame: Frame, _ decoded: DecodedMedia, of track: Track, into tracks: TrackFiles
  ) {
    let record = FrameRecord(
      transceiver: track.number, kind: track.isVideo ? .video : .audio, isInbound: true,
      codec: frame.codec, ssrc: 0, rtpTime: frame.rtpTime, isKey: frame.isKey, width: 0, height: 0,
      bytes: frame.bytes, outcome: frame.outcome, decoded: decoded, quantiser: 0)
    guard let media = ReceivedMedia(record, at: frame.at) else { return }
    tracks.write(media, record.kind, of: track.peer)
  }

  private func writeVideo(
    _ track: Track, _ connection: borrowing SQLiteConnection, into tracks: TrackFiles
  ) throws(SQLiteError) -> Bool {
    var decoder: (any VideoDecoding)?
    // Decoding begins with the last key frame before the first wanted frame.
    let from = """
      row >= coalesce((
        SELECT max(frame_store.row) FROM frame_store JOIN format USING (format)
        WHERE peer = \(track.peer.number) AND track = \(track.number) AND direction = 'in'
          AND kind = 'video' AND outcome = 'decoded' AND key = 1
          AND at_ns <= \(window.lowerBound)
      ), 0)
      """
    return try each(of: track, from: from, connection) { frame in
      guard ["decoded", "undecodable"].contains(frame.outcome) else {
        put(frame, .none, of: track, into: tracks)
        return true
      }
      let used =
        decoder ?? (try? LibraryCodecs().videoDecoder(track: "\(track.number)", frame.codec))
      decoder = used
      let picture = try? used?.decode(frame.bytes).videoFrame
      guard frame.outcome == "decoded" else { return true }
      guard let picture else { return false }
      let decoded = DecodedMedia.videoFrame(picture)
      guard decoded.digest == frame.digest else { return false }
      put(frame, decoded, of: track, into: tracks)
      return true
    }
  }

  /// Decodes what another stack received.
  ///
  /// If no library decodes a codec, its video is written undecoded, and its audio is left out.
  ///
  /// - Returns: true, because the reports of another stack are never replayed.
  private func writeReported(
    _ track: Track, _ connection: borrowing SQLiteConnection, into tracks: TrackFiles
  ) throws(SQLiteError) -> Bool {
    var video: (any VideoDecoding)?
    var audio: (codec: CodecName, decoder: any AudioDecoding)?
    // Without a key frame before it, the first wanted frame could not be decoded.
    let begin = window.lowerBound == .min ? .min : window.lowerBound &- Self.reportedPreroll
    return try each(of: track, from: "at_ns >= \(begin)", connection) { frame in
      if track.isVideo {
        video = video ?? (try? LibraryCodecs().videoDecoder(track: "\(track.number)", frame.codec))
        guard let video else {
          put(frame, .none, of: track, into: tracks)
          return true
        }
        guard let picture = try? video.decode(frame.bytes).videoFrame else { return true }
        put(frame, .videoFrame(picture), of: track, into: tracks)
      } else {
        if audio?.codec != frame.codec {
          let made = try? LibraryCodecs().audioDecoder(
            track: "\(track.number)", frame.codec, channels: frame.codec == .opus ? 2 : 1)
          audio = made.map { (frame.codec, $0) }
        }
        guard let block = try? audio?.decoder.decode(.payload(frame.bytes)).block else {
          return true
        }
        put(frame, .audio(block), of: track, into: tracks)
      }
      return true
    }
  }

  /// How far before the window decoding starts, so that it includes a key frame: without loss,
  /// browsers rarely send one.
  private static let reportedPreroll: Int64 = 30_000_000_000

  private func writeAudio(
    _ track: Track, _ connection: borrowing SQLiteConnection, into tracks: TrackFiles
  ) throws(SQLiteError) -> Bool {
    let begin = window.lowerBound == .min ? .min : window.lowerBound &- Self.preroll
    var decoders: [(codec: CodecName, decoder: any AudioDecoding)] = []
    // A lost block is recovered from the redundancy in the packet played after it.
    var waiting: [Frame] = []
    func play(_ frame: Frame, _ request: AudioDecodeRequest) -> Bool {
      let known = decoders.first { $0.codec == frame.codec }?.decoder
      let made =
        known
        ?? (try? LibraryCodecs().audioDecoder(
          track: "\(track.number)", frame.codec, channels: max(1, frame.channels)))
      guard let used = made else { return false }
      if known == nil { decoders.append((frame.codec, used)) }
      let block =
        (try? used.decode(request).block)
        ?? AudioBlock(blank: max(120, frame.samples), channels: max(1, frame.channels))
      put(frame, .audio(block), of: track, into: tracks)
      return true
    }
    func concealed(_ frame: Frame) -> Bool {
      play(frame, .conceal(frameCount: max(120, frame.samples)))
    }
    let isWhole = try each(of: track, from: "at_ns >= \(begin)", connection) { frame in
      switch frame.outcome {
      case "recovered":
        waiting.append(frame)
        return true
      case "concealed" where !waiting.isEmpty:
        waiting.append(frame)
        return true
      case "concealed": return concealed(frame)
      case "decoded":
        for former in waiting {
          let isPlayed =
            former.outcome == "recovered"
            ? play(
              former,
              .recoverPrevious(from: frame.bytes, frameCount: max(120, former.samples)))
            : concealed(former)
          guard isPlayed else { return false }
        }
        waiting = []
        return play(frame, .payload(frame.bytes))
      default: return true
      }
    }
    for frame in waiting where isWhole { _ = concealed(frame) }
    return isWhole
  }
}

// MARK: - MediaReplay

/// Replays a take and writes the decoded media that its peers received.
struct MediaReplay {
  let take: String
  let peers: [(number: Int64, label: String)]
  /// The number of the peer whose media is written; nil for all.
  let only: Int64?
  let tracks: TrackFiles

  /// Replays the take to its end or to the first difference.
  func run(progress: (String) -> Void) throws(ExportFailure) -> ReplayReport {
    var made = 0
    return try ExportFailure.reading { () throws(TapeError) in
      let replayer = try Replayer(
        path: take, kinds: .following { _, outputs, _ in observe(outputs) },
        codecs: { LibraryCodecs() },
        peer: { codecs in
          // The replay creates its peers in the order in which the take lists them.
          let peer = made < peers.count ? peers[made] : (number: Int64(made + 1), label: "")
          made += 1
          let machine = PeerMachine(codecs: codecs)
          guard only == nil || only == peer.number else { return machine }
          return HeardPeer(machine) { media, kind in tracks.write(media, kind, of: peer) }
        })
      let end = try replayer.lastTime() ?? .zero
      return try replayer.run { at in
        progress("\(at.wholeSeconds) of \(end.wholeSeconds) s, \(counted(tracks.count, "frame"))")
      }
    }
  }
}

extension MediaReplay {
  /// Writes the decoded media that the ends of observed calls received.
  private func observe(_ outputs: [ObserverOutput]) {
    for output in outputs {
      guard case .followed(.event(.frame(let frame)), let at) = output.content,
        let number = output.peers?.first.map({ Int64($0) }), only == nil || only == number,
        let media = ReceivedMedia(frame, at: at)
      else { continue }
      let label = peers.first { $0.number == number }?.label ?? ""
      tracks.write(media, frame.kind, of: (number, label))
    }
  }
}

/// A replayed peer whose received media is written.
private final class HeardPeer: ReplayedPeer {
  private let machine: PeerMachine
  private let receive: (ReceivedMedia, MediaKind) -> Void

  init(_ machine: PeerMachine, _ receive: @escaping (ReceivedMedia, MediaKind) -> Void) {
    self.machine = machine
    self.receive = receive
  }

  func step(_ input: PeerInput, at now: Instant, into outbox: inout Outbox<PeerOutput>) {
    machine.step(input, at: now, into: &outbox)
    for case .event(.frame(let frame)) in outbox.outputs {
      if let media = ReceivedMedia(frame, at: now) { receive(media, frame.kind) }
    }
  }

  var deadline: Instant? { machine.deadline }
  var entropyDrawn: UInt64 { machine.entropyDrawn }
}

extension Instant {
  /// The number of whole seconds since the take began.
  var wholeSeconds: Int64 { nanoseconds / 1_000_000_000 }
}

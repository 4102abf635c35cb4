package import Tape
import Wire

/// Writes a list of a take's tracks, with each track's peer, beginning, end and speech: information
/// that media files lack.
package struct TracksFile {
  private let take: String
  private let peer: Int64?
  private let window: ClosedRange<Int64>

  package init(take: String, peer: Int64?, window: ClosedRange<Int64>) {
    self.take = take
    self.peer = peer
    self.window = window
  }

  /// A file beside this one, with a track's media.
  package struct Media: Sendable {
    var peer: Int64
    var track: Int64
    var isSent: Bool
    var isVideo: Bool
    var path: String
    /// The file's beginning and end, in nanoseconds since the take began; `to` is nil if unknown.
    var from: Int64
    var to: Int64?

    package init(_ file: FrameExport.Written) {
      (peer, track) = (file.track.peer, file.track.number)
      (isSent, isVideo) = (file.track.isSent, file.track.isVideo)
      (path, from, to) = (file.path, file.from, file.to)
    }

    package init?(_ file: PacketExport.Written) {
      guard let stream = file.stream else { return nil }
      (peer, track, isSent, isVideo) = (stream.peer, stream.track, false, stream.isVideo)
      (path, from, to) = (file.path, file.from, file.to)
    }

    package init?(_ file: TrackFiles.Written) {
      guard let peer = file.peer, let track = file.track else { return nil }
      (self.peer, self.track) = (peer, track)
      (isSent, isVideo) = (false, file.kind == .video)
      (path, from, to) = (file.path, file.begin.nanoseconds, nil)
    }

    fileprivate var json: JSONText {
      .object([
        ("file", .text(String(path.split(separator: "/").last ?? ""))),
        ("from_ns", .integer(from)), ("to_ns", to.map { .integer($0) }),
      ])
    }
  }

  /// Writes the file unless there are no tracks; returns the number of tracks.
  package func write(
    to path: String, _ present: WholeFile.Present, media: [Media] = []
  ) throws(ExportFailure) -> Int {
    let connection = try ExportFailure.reading { () throws(TapeError) in
      try TakeFile.openForQueries(take)
    }
    let header = try ExportFailure.reading { () throws(TapeError) in
      try TakeHeader.read(from: connection, path: take)
    }
    let tracks = try ExportFailure.asking(take) { () throws(SQLiteError) in
      try list(connection, media)
    }
    guard !tracks.isEmpty else { return 0 }
    let speech = try ExportFailure.asking(take) { () throws(SQLiteError) in
      try self.speech(connection)
    }
    let file = try TextFile(path, present)
    let start = Double(header.startUnixNanoseconds) / 1e6
    try file.write(
      """
      {"take":\(JSONText.text(String(take.split(separator: "/").last ?? "")).text),\
      "label":\(JSONText.text(header.label).text),
       "start_utc":\(JSONText.text(DateText.iso(start)).text),\
      "start_unix_ns":\(header.startUnixNanoseconds),
       "tracks":\(JSONText.list(tracks, separator: ",\n  ").text),
       "speech":\(JSONText.list(speech, separator: ",\n  ").text)}

      """)
    try file.finish()
    return tracks.count
  }

  private func list(
    _ connection: borrowing SQLiteConnection, _ media: [Media]
  ) throws(SQLiteError) -> [JSONText] {
    let rows = try connection.prepare(
      """
      SELECT peer, label, track, mid, kind, direction, codec, ssrc, payload_type, participant,
        first_ns, last_ns, packets, lost
      FROM media_stream
      WHERE track IS NOT NULL AND kind IN ('audio', 'video') AND codec <> 'rtx'
      ORDER BY peer, track, direction, ssrc
      """)
    var found: [JSONText] = []
    while try rows.step() {
      let (number, label, track, mid, kind) = rows.values(
        Int64.self, String.self, Int64.self, String?.self, String.self)
      let (direction, codec, ssrc, type, participant) = rows.values(
        from: 5, String.self, String.self, Int64.self, Int64.self, String?.self)
      let (first, last, packets, lost) = rows.values(
        from: 10, Int64.self, Int64.self, Int64.self, Int64?.self)
      guard peer == nil || peer == number, first <= window.upperBound, last >= window.lowerBound
      else { continue }
      let files = media.filter {
        $0.peer == number && $0.track == track && $0.isSent == (direction == "out")
          && $0.isVideo == (kind == "video")
      }
      found.append(
        .object([
          ("peer", .integer(number)), ("label", .text(label)),
          ("participant", participant.map { .text($0) }), ("track", .integer(track)),
          ("mid", mid.map { .text($0) }), ("kind", .text(kind)), ("direction", .text(direction)),
          ("codec", .text(codec)), ("ssrc", .integer(ssrc)), ("payload_type", .integer(type)),
          ("first_packet_ns", .integer(first)), ("last_packet_ns", .integer(last)),
          ("packets", .integer(packets)), ("packets_lost", lost.map { .integer($0) }),
          ("files", files.isEmpty ? nil : .list(files.map(\.json))),
        ]))
    }
    return found
  }

  private func speech(_ connection: borrowing SQLiteConnection) throws(SQLiteError) -> [JSONText] {
    let rows = try connection.prepare(
      """
      SELECT speaker.peer, speaker.participant, speaker.track, speaker.direction,
        speaker.contributor, speaker.from_ns, speaker.to_ns, speaker.dbov,
        (
          SELECT voice.person FROM voice
          WHERE voice.peer = speaker.peer AND voice.track = speaker.track
            AND voice.direction = speaker.direction
            AND voice.contributor IS speaker.contributor
            AND voice.from_ns <= speaker.from_ns AND voice.to_ns >= speaker.from_ns
          LIMIT 1
        )
      FROM speaker
      WHERE speaker.to_ns >= \(window.lowerBound) AND speaker.from_ns <= \(window.upperBound)
      ORDER BY speaker.from_ns, speaker.peer, speaker.track
      """)
    var found: [JSONText] = []
    while try rows.step() {
      let (number, participant, track, direction) = rows.values(
        Int64.self, String.self, Int64.self, String.self)
      let (contributor, from, to, level, person) = rows.values(
        from: 4, Int64?.self, Int64.self, Int64.self, Double?.self, String?.self)
      guard peer == nil || peer == number else { continue }
      found.append(
        .object([
          ("person", .text(person ?? participant)), ("peer", .integer(number)),
          ("track", .integer(track)), ("direction", .text(direction)),
          ("contributor", contributor.map { .integer($0) }), ("from_ns", .integer(from)),
          ("to_ns", .integer(to)), ("dbov", level.map { .number($0) }),
        ]))
    }
    return found
  }
}

import Peer
import Replay
package import Tape
import Wire

/// Writes received packets, without SRTP, into files for rtptools and Janus.
///
/// A replay decrypts them, up to the end of the requested window; it runs no codecs if the take has
/// media.
package struct PacketExport {
  /// A packet file that an export wrote.
  package struct Written: Sendable {
    package var path: String
    package var packets: Int
    /// The arrival of the first and the last packet, in nanoseconds since the take began.
    package var from: Int64
    package var to: Int64
    /// The stream in the file; nil if the file has all streams.
    package var stream: Stream?
  }

  /// A received RTP stream.
  package struct Stream: Hashable, Sendable {
    package var peer: Int64
    package var label: String
    package var track: Int64
    package var mid: String
    package var isVideo: Bool
    package var codec: String
    package var ssrc: UInt32
    var payloadType: UInt8
  }

  private let take: String
  private let peer: Int64?
  private let window: ClosedRange<Int64>
  private let present: WholeFile.Present

  package init(
    take: String, peer: Int64?, window: ClosedRange<Int64>, present: WholeFile.Present
  ) {
    self.take = take
    self.peer = peer
    self.window = window
    self.present = present
  }

  private func open() throws(ExportFailure) -> SQLiteConnection {
    try ExportFailure.reading { () throws(TapeError) in try TakeFile.openForQueries(take) }
  }

  /// Returns the Unix time at which the take began, in nanoseconds.
  private func start() throws(ExportFailure) -> Int64 {
    let connection = try open()
    return try ExportFailure.reading { () throws(TapeError) in
      try TakeHeader.read(from: connection, path: take).startUnixNanoseconds
    }
  }

  /// Returns whether a peer is an end of an observed call.
  private func isObserved(
    _ peer: Int64, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> Bool {
    try connection.integer(
      "SELECT count(*) FROM peer WHERE peer = \(peer) AND role = 'observed'") == 1
  }

  /// Returns the local addresses of a peer's paths and candidate pairs.
  private func addresses(
    of peer: Int64, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> Set<String> {
    let rows = try connection.prepare(
      """
      SELECT local FROM path_end WHERE peer = \(peer)
      UNION SELECT local FROM candidate_pair WHERE peer = \(peer)
      """)
    var found: Set<String> = []
    while try rows.step() { found.insert(rows.text(0) ?? "") }
    return found
  }

  /// Replays the take and calls a closure with each RTP and RTCP packet received in the window.
  private func replay(
    _ progress: (String) -> Void,
    _ use: @escaping ([UInt8], ClearPacket.Kind, SocketAddress, Int64) -> Void
  ) throws(ExportFailure) -> ReplayReport {
    let connection = try open()
    let (isObserved, addresses) = try ExportFailure.asking(take) { () throws(SQLiteError) in
      guard let peer, try self.isObserved(peer, connection) else { return (false, Set<String>()) }
      return (true, try self.addresses(of: peer, connection))
    }
    let window = window
    return try ExportFailure.reading { () throws(TapeError) in
      let until = window.upperBound == .max ? nil : Instant(nanoseconds: window.upperBound)
      return try FollowedReplay(take: take, only: isObserved ? nil : peer).run(
        until: until,
        progress: { at, end in progress("\(at.wholeSeconds) of \(end.wholeSeconds) s") }
      ) { sight, source, destination, at in
        guard case .clear(let bytes, let kind, isSent: false) = sight, kind != .sctp,
          window.contains(at.nanoseconds), bytes.count >= 4,
          !isObserved || addresses.contains("\(destination)")
        else { return }
        use(bytes, kind, source, at.nanoseconds)
      }
    }
  }

  // MARK: rtptools

  /// Writes all received packets into one file, in the format of rtpdump and rtpplay 1.0.
  package func writeDump(
    to path: String, progress: (String) -> Void
  ) throws(ExportFailure) -> TakeExport.Replayed<Written?> {
    let dump = Dump(try TextFile(path, present), start: try start())
    let report = try replay(progress) { bytes, kind, source, at in
      dump.add(bytes, isRTCP: kind == .rtcp, from: source, at: at)
    }
    if let failure = dump.failure { throw failure }
    guard dump.packets > 0 else { return TakeExport.Replayed(written: nil, report: report) }
    try dump.file.finish()
    return TakeExport.Replayed(
      written: Written(path: path, packets: dump.packets, from: dump.first, to: dump.last),
      report: report)
  }

  private final class Dump {
    let file: TextFile
    private let start: Int64
    private(set) var packets = 0
    private(set) var first: Int64 = 0
    private(set) var last: Int64 = 0
    private(set) var failure: ExportFailure?

    init(_ file: TextFile, start: Int64) {
      self.file = file
      self.start = start
    }

    func add(_ bytes: [UInt8], isRTCP: Bool, from source: SocketAddress, at: Int64) {
      guard failure == nil, bytes.count <= 65_527 else { return }
      var writer = ByteWriter(capacity: bytes.count + 100)
      if packets == 0 {
        first = at
        let begin = max(0, start +| at)
        let port = UInt16(truncatingIfNeeded: source.port)
        let name = source.ip.isIPv4 ? "\(source.ip)" : "0.0.0.0"
        writer.append("#!rtpplay1.0 \(name)/\(port)\n")
        writer.uint32(UInt32(clamping: begin / 1_000_000_000))
        writer.uint32(UInt32(clamping: begin % 1_000_000_000 / 1_000))
        writer.append(source.ip.isIPv4 ? source.ip.bytes : [0, 0, 0, 0])
        writer.uint16(port)
        writer.uint16(0)
      }
      packets += 1
      last = max(last, at)
      writer.uint16(UInt16(clamping: bytes.count + 8))
      writer.uint16(isRTCP ? 0 : UInt16(clamping: bytes.count))
      // The milliseconds since the first packet, whose time the header states.
      writer.uint32(UInt32(clamping: (at - first) / 1_000_000))
      writer.append(bytes)
      do throws(ExportFailure) {
        try file.write(writer.bytes)
      } catch {
        failure = error
      }
    }
  }

  // MARK: Janus

  /// Writes a Janus recording for each received track, and a list for each peer.
  package func writeRecordings(
    into folder: String, progress: (String) -> Void
  ) throws(ExportFailure) -> TakeExport.Replayed<[Written]> {
    let connection = try open()
    let start = try start()
    let streams = try ExportFailure.asking(take) { () throws(SQLiteError) in
      try self.streams(connection)
    }
    let recordings = Recordings(
      folder: folder, present: present, start: start, streams: streams.map { ($0.stream, $0.head) })
    let report = try replay(progress) { bytes, kind, _, at in
      if kind == .rtp { recordings.add(bytes, at: at) }
    }
    if let failure = recordings.failure { throw failure }
    let written = try recordings.finish()
    for peer in Set(written.compactMap(\.stream?.peer)).sorted() {
      try writeList(of: written.filter { $0.stream?.peer == peer }, into: folder, start: start)
    }
    return TakeExport.Replayed(written: written, report: report)
  }

  private func streams(
    _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [(stream: Stream, head: [(String, JSONText?)])] {
    let rows = try connection.prepare(
      """
      SELECT peer, label, track, coalesce(mid, ''), kind = 'video', codec, ssrc, payload_type
      FROM media_stream
      WHERE direction = 'in' AND track IS NOT NULL AND codec NOT IN ('', 'rtx', 'red', 'ulpfec')
        AND kind IN ('audio', 'video') ORDER BY peer, track, ssrc
      """)
    var found: [Stream] = []
    while try rows.step() {
      let (number, label, track, mid, isVideo) = rows.values(
        Int64.self, String.self, Int64.self, String.self, Int64.self)
      let (codec, ssrc, payloadType) = rows.values(from: 5, String.self, UInt32.self, UInt8.self)
      guard peer == nil || peer == number, !found.contains(where: { $0.ssrc == ssrc }) else {
        continue
      }
      found.append(
        Stream(
          peer: number, label: label, track: track, mid: mid, isVideo: isVideo == 1, codec: codec,
          ssrc: ssrc, payloadType: payloadType))
    }
    var all: [(stream: Stream, head: [(String, JSONText?)])] = []
    for stream in found { all.append((stream, try head(of: stream, connection))) }
    return all
  }

  /// Returns the header of a stream's recording, without times.
  ///
  /// The format and the header extensions are those in the stream's section of the peer's newest
  /// description.
  private func head(
    of stream: Stream, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [(String, JSONText?)] {
    let lines = try connection.prepare(
      """
      SELECT attribute, value, mid FROM sdp_line
      WHERE peer = \(stream.peer) AND attribute IN ('extmap', 'fmtp')
        AND "row" = (SELECT max("row") FROM description WHERE peer = \(stream.peer))
      ORDER BY line
      """)
    var extensions: [(String, JSONText?)] = []
    var format: String?
    while try lines.step() {
      let (name, value, mid) = lines.values(String.self, String?.self, String?.self)
      guard mid == stream.mid else { continue }
      let words = (value ?? "").split(separator: " ", maxSplits: 1)
      guard words.count == 2, let number = words[0].split(separator: "/").first else { continue }
      if name == "extmap" {
        extensions.append(
          (String(number), .text(String(words[1].split(separator: " ").first ?? ""))))
      } else if UInt8(number) == stream.payloadType {
        format = String(words[1])
      }
    }
    return [
      ("t", .text(stream.isVideo ? "v" : "a")), ("c", .text(stream.codec)),
      ("f", format.map { .text($0) }), ("d", .text(stream.label)),
      ("x", extensions.isEmpty ? nil : .object(extensions)),
    ]
  }

  /// Writes the list by which Janus and importers find a peer's files.
  private func writeList(
    of written: [Written], into folder: String, start: Int64
  ) throws(ExportFailure) {
    let audio = written.filter { $0.stream?.isVideo == false }
    let video = written.filter { $0.stream?.isVideo == true }
    guard let stream = written.first?.stream else { return }
    var text = ""
    for place in 0..<max(audio.count, video.count) {
      text += "[\(stream.peer * 1_000 + Int64(place) + 1)]\nname = "
      text += FileNamePart.plain(stream.label) + "\ndate = \(start / 1_000_000_000)\n"
      for (name, list) in [("audio", audio), ("video", video)] where place < list.count {
        text += "\(name) = \(list[place].path.split(separator: "/").last ?? "")\n"
      }
    }
    let path = Recordings.path(folder, "peer\(stream.peer)-\(FileNamePart.plain(stream.label)).nfo")
    let file = try TextFile(path, present)
    try file.write(text)
    try file.finish()
  }
}

/// The Janus recordings that an export writes, each created with its first packet.
private final class Recordings {
  private struct Recording {
    var file: TextFile
    var written: PacketExport.Written
  }

  private let folder: String
  private let present: WholeFile.Present
  private let start: Int64
  private let streams: [(stream: PacketExport.Stream, head: [(String, JSONText?)])]
  private var open: [Int: Recording] = [:]
  private(set) var failure: ExportFailure?

  init(
    folder: String, present: WholeFile.Present, start: Int64,
    streams: [(stream: PacketExport.Stream, head: [(String, JSONText?)])]
  ) {
    self.folder = folder
    self.present = present
    self.start = start
    self.streams = streams
  }

  static func path(_ folder: String, _ name: String) -> String {
    folder.hasSuffix("/") ? folder + name : "\(folder)/\(name)"
  }

  func add(_ bytes: [UInt8], at: Int64) {
    guard failure == nil, bytes.count >= 12, bytes.count <= 65_535 else { return }
    let ssrc = bytes[8..<12].reduce(0 as UInt32) { $0 << 8 | UInt32($1) }
    guard
      let place = streams.firstIndex(where: {
        $0.stream.ssrc == ssrc && $0.stream.payloadType == bytes[1] & 127
      })
    else { return }
    do throws(ExportFailure) {
      var recording = if let known = open[place] { known } else { try begin(place, at) }
      var writer = ByteWriter(capacity: bytes.count + 10)
      writer.append("MEET")
      let passed = max(0, at - recording.written.from)
      writer.uint32(UInt32(clamping: passed / 1_000_000))
      writer.uint16(UInt16(clamping: bytes.count))
      writer.append(bytes)
      try recording.file.write(writer.bytes)
      recording.written.packets += 1
      recording.written.to = max(recording.written.to, at)
      open[place] = recording
    } catch {
      failure = error
    }
  }

  private func begin(_ place: Int, _ at: Int64) throws(ExportFailure) -> Recording {
    let (stream, head) = streams[place]
    let isAlone =
      streams.count { $0.stream.peer == stream.peer && $0.stream.track == stream.track } == 1
    let name =
      "peer\(stream.peer)-\(FileNamePart.plain(stream.label))-track\(stream.track)-"
      + (stream.isVideo ? "video" : "audio") + (isAlone ? "" : "-\(stream.ssrc)") + ".mjr"
    let path = Self.path(folder, name)
    let file = try TextFile(path, present)
    let microseconds = max(0, start +| at) / 1_000
    let text = JSONText.object(
      head + [("s", .integer(microseconds)), ("u", .integer(microseconds))]
    ).text
    var writer = ByteWriter(capacity: text.utf8.count + 10)
    writer.append("MJR00002")
    writer.uint16(UInt16(clamping: text.utf8.count))
    writer.append(text)
    try file.write(writer.bytes)
    return Recording(
      file: file,
      written: PacketExport.Written(path: path, packets: 0, from: at, to: at, stream: stream))
  }

  func finish() throws(ExportFailure) -> [PacketExport.Written] {
    var written: [PacketExport.Written] = []
    for place in open.keys.sorted() {
      guard let recording = open[place] else { continue }
      try recording.file.finish()
      written.append(recording.written)
    }
    return written
  }
}

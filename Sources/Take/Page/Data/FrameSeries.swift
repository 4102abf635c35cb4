import Stats
import Tape

/// A take's frames by peer, direction and track; each `read` continues where the last one ended.
struct FrameSeries {
  /// The frame outcomes; the page receives an outcome's index in this list.
  private static let outcomes = [
    "encoded", "decoded", "recovered", "concealed", "undecodable", "not decoded", "passed on",
    // Outcomes of blocks at an audio session's device.
    "captured", "mixed", "filler", "played", "silence",
  ]

  private struct Format {
    var place: Int
    /// Twice the outcome's index, plus 1 if a decoder can start with this frame.
    var flags: Int64
    var isVideo: Bool
    /// Whether the frames are received video that was displayed.
    var isShown: Bool
    var width: Int64
    var height: Int64
    var codec: String
  }

  private struct Key: Hashable {
    var peer: Int64
    var direction: String
    var track: Int64
    var kind: String
  }

  /// A frame size that a track has from a time on, until its next size.
  private struct Size {
    var at: Int64
    var width: Int64
    var height: Int64
  }

  private struct Track {
    var key: Key
    var codec = ""
    var at = PageColumn(.steps)
    var size = PageColumn(.values)
    var flags = PageColumn(.values)
    var rtpTime = PageColumn(.steps)
    /// A video frame's quantizer, or the audio peak from 0 to 255.
    var measure = PageColumn(.values)
    var bins = FrameBins()
    var sizes: [Size] = []
    var freezes = FreezeLog()
  }

  private var formats: [Int64: Format] = [:]
  private var tracks: [Track] = []
  private var row: Int64 = 0
  /// The last frame's time, in nanoseconds since the start of the take.
  private(set) var end: Int64 = 0

  /// The maximum number of sizes, because a crafted take can change the size with each frame.
  private static let sizeMaximum = 20_000

  /// Reads the frames added since the last call.
  mutating func read(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    try readFormats(connection)
    let rows = try connection.prepare(
      """
      SELECT row, at_ns, format, rtp_time, size, quantiser, peak FROM frame_store
      WHERE row > ? ORDER BY row
      """)
    rows.bind(row, at: 1)
    while try rows.step() {
      row = rows.integer(0)
      guard let format = formats[rows.integer(2)] else { continue }
      end = max(end, rows.integer(1))
      let at = PageTime.units(rows.integer(1))
      let place = format.place
      tracks[place].at.append(at)
      tracks[place].size.append(rows.integer(4))
      tracks[place].flags.append(format.flags)
      tracks[place].rtpTime.append(rows.integer(3) & 0xffff_ffff)
      let measure = format.isVideo ? rows.integer(5) : rows.integer(6) >> 7
      tracks[place].measure.append(measure)
      tracks[place].bins.add(outcome: format.flags >> 1, measure: measure, at: at)
      if format.width > 0 { record(format, at: at) }
      if format.isShown { tracks[place].freezes.shown(at: rows.integer(1)) }
    }
  }

  private mutating func record(_ format: Format, at: Int64) {
    let sizes = tracks[format.place].sizes
    if let last = sizes.last, last.width == format.width, last.height == format.height { return }
    guard sizes.count < Self.sizeMaximum else { return }
    tracks[format.place].sizes.append(Size(at: at, width: format.width, height: format.height))
  }

  private mutating func readFormats(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let rows = try connection.prepare(
      """
      SELECT format, peer, direction, track, kind, codec, outcome, key, width, height FROM format
      WHERE kind IN ('audio', 'video', 'pcm') ORDER BY format
      """)
    while try rows.step() {
      let (number, peer, direction, track, kind, codec) = rows.values(
        Int64.self, Int64.self, String.self, Int64.self, String.self, String.self)
      guard formats[number] == nil else { continue }
      let (outcome, isKey, width, height) = rows.values(
        from: 6, String.self, Int64.self, Int64.self, Int64.self)
      let key = Key(peer: peer, direction: direction, track: track, kind: kind)
      let place = tracks.firstIndex { $0.key == key } ?? tracks.count
      if place == tracks.count { tracks.append(Track(key: key)) }
      tracks[place].codec = codec
      let code = Self.outcomes.firstIndex(of: outcome) ?? Self.outcomes.count
      let isShown =
        kind == "video" && direction == "in" && ["decoded", "not decoded"].contains(outcome)
      formats[number] = Format(
        place: place, flags: Int64(code) << 1 | (isKey & 1), isVideo: kind == "video",
        isShown: isShown,
        width: width, height: height, codec: codec)
    }
  }

  /// Moves the frames read since the last call into a list.
  mutating func drain(into list: inout PageSeriesList) {
    for place in tracks.indices {
      let track = tracks[place]
      let overview = tracks[place].bins.drain()
      list.add(
        PageSeries(
          what: "frames",
          facts: [
            ("peer", .integer(track.key.peer)), ("direction", .text(track.key.direction)),
            ("track", .integer(track.key.track)), ("kind", .text(track.key.kind)),
            ("codec", .text(track.codec)),
          ],
          columns: [
            ("at", tracks[place].at.drain()), ("size", tracks[place].size.drain()),
            ("flags", tracks[place].flags.drain()), ("rtpTime", tracks[place].rtpTime.drain()),
            ("measure", tracks[place].measure.drain()),
          ],
          // The page needs every device block's values, not only an overview.
          overview: track.key.kind == "pcm" ? [] : overview))
    }
  }

  /// The rows of the `freeze` view as a JSON array: `[peer, track, from, to, text]`.
  var freezes: String {
    let rows = tracks.flatMap { track in
      track.freezes.gaps.map {
        "[\(track.key.peer),\"\(track.key.track)\",\(seconds($0.from)),\(seconds($0.to)),"
          + "\"\(($0.to - $0.from + 500_000) / 1_000_000) ms\"]"
      }
    }
    return "[" + rows.joined(separator: ",") + "]"
  }

  private func seconds(_ nanoseconds: Int64) -> String {
    StatsValue.number((Double(nanoseconds) / 1e4).rounded() / 1e5).json
  }

  /// Each track's frame sizes and when they began, as a JSON array: `[peer, direction, track,
  /// seconds, width, height]`.
  var sizes: String {
    let rows = tracks.flatMap { track in
      track.sizes.map {
        "[\(track.key.peer),\(jsonString(track.key.direction)),\(track.key.track),"
          + "\(StatsValue.number(Double($0.at) / 1e5).json),\($0.width),\($0.height)]"
      }
    }
    return "[" + rows.joined(separator: ",") + "]"
  }
}

/// A track's freezes, by the rule of the `freeze` view.
///
/// A gap between displayed frames is a freeze if at least 5 gaps precede it, and if it is at least
/// three times as long as the mean of the last 30 gaps and at least 150 ms longer than that mean.
struct FreezeLog {
  private var last: Int64?
  /// The last gaps that are not pauses, and their sum.
  private var latest: [Int64] = []
  private var sum: Int64 = 0

  /// The freezes, in nanoseconds.
  private(set) var gaps: [(from: Int64, to: Int64)] = []

  private static let pause: Int64 = 5_000_000_000
  private static let count = 30

  /// Adds the time of the next displayed frame.
  mutating func shown(at: Int64) {
    defer { last = at }
    guard let last else { return }
    let gap = at &- last
    guard gap <= Self.pause else { return }
    if latest.count >= 5 {
      let mean = Double(sum) / Double(latest.count)
      if Double(gap) >= max(3 * mean, mean + 150_000_000) { gaps.append((last, at)) }
    }
    latest.append(gap)
    sum = sum &+ gap
    if latest.count > Self.count { sum = sum &- latest.removeFirst() }
  }
}

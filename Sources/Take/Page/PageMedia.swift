import MediaFiles
import RTP
import Stats
package import Tape
import Wire

/// One direction of a track's media, remuxed from a take's frames into a file that browsers play.
///
/// The times in the file are when frames were displayed, played or sent.
package struct PageMedia: Sendable {
  /// The track, direction and kind of media that a file contains.
  package struct Place: Hashable, Sendable {
    package var peer: Int64
    package var direction: String
    package var track: Int64
    package var kind: String

    package init(peer: Int64, direction: String, track: Int64, kind: String) {
      self.peer = peer
      self.direction = direction
      self.track = track
      self.kind = kind
    }

    /// The members as a JSON object, which identifies the file on the page.
    package var facts: String {
      JSONText.object([
        ("peer", .integer(peer)), ("direction", .text(direction)), ("track", .integer(track)),
        ("kind", .text(kind)),
      ]).text
    }
  }

  package let place: Place
  /// One of `video/webm`, `audio/webm`, `audio/wav` and `video/mp4`.
  package let type: String
  /// The first frame's time in the take, in seconds; the file starts there.
  package let begin: Double
  package let bytes: [UInt8]

  /// Returns a take's tracks with media, in order.
  package static func places(_ connection: borrowing SQLiteConnection) throws(SQLiteError)
    -> [Place]
  {
    let rows = try connection.prepare(
      """
      SELECT DISTINCT peer, direction, track, kind FROM format
      WHERE outcome <> 'undecodable' AND peer > 0
        AND codec IN ('vp8', 'vp9', 'av1', 'h264', 'opus', 'pcmu', 'pcma')
        AND EXISTS (
          SELECT 1 FROM frame_store WHERE frame_store.row >= format.row
            AND frame_store.format = format.format AND position IS NOT NULL AND size > 0)
      ORDER BY peer, direction, track, kind
      """)
    var found: [Place] = []
    while try rows.step() {
      let (peer, direction, track, kind) = rows.values(
        Int64.self, String.self, Int64.self, String.self)
      found.append(Place(peer: peer, direction: direction, track: track, kind: kind))
    }
    return found
  }

  /// Returns the number of bytes of media in a take.
  package static func byteCount(_ connection: borrowing SQLiteConnection) throws(SQLiteError)
    -> Int
  {
    let last = "SELECT piece * 8152 + length(bytes) FROM media ORDER BY piece DESC LIMIT 1"
    return Int(clamping: try connection.integer(last) ?? 0)
  }

  /// Creates the file; fails without a frame that a player can start with, or if browsers do not
  /// play the codec.
  package init?(_ place: Place, _ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let rows = try connection.prepare(
      """
      SELECT at_ns, codec, key, width, height, channels, bytes FROM frame
      WHERE peer = \(place.peer) AND direction = '\(place.direction == "in" ? "in" : "out")'
        AND track = \(place.track) AND kind = '\(place.kind == "audio" ? "audio" : "video")'
        AND size > 0 AND bytes IS NOT NULL AND outcome <> 'undecodable'
      ORDER BY row
      """)
    var file: Container?
    var first: Int64 = 0
    while try rows.step() {
      let isKey = rows.integer(2) == 1 || place.kind == "audio"
      let at = rows.integer(0)
      if file == nil {
        guard isKey else { continue }
        let codec = rows.text(1) ?? ""
        var (width, height, channels) = rows.values(from: 3, Int.self, Int.self, Int?.self)
        // The size of frames that were forwarded without being decoded is read from their bytes.
        if width <= 0, let look = CodecName(rawValue: codec).codec?.look,
          let size = rows.withBlob(6, { look($0).size })
        {
          (width, height) = size
        }
        file = Container(codec: codec, width: width, height: height, channels: channels ?? 2)
        guard file != nil else { return nil }
        first = at
      }
      file?.add(rows.bytes(6), at: (at &- first) / 1_000_000, isKey: isKey)
    }
    guard let file, let bytes = file.bytes else { return nil }
    self.place = place
    self.bytes = bytes
    type = file.type(of: place.kind)
    begin = Double(first) / 1e9
  }

  /// The description for the page as JSON, without the bytes.
  package var facts: String {
    JSONText.object([
      ("peer", .integer(place.peer)), ("direction", .text(place.direction)),
      ("track", .integer(place.track)), ("kind", .text(place.kind)), ("type", .text(type)),
      ("begin", .number(begin)),
    ]).text
  }
}

/// Muxes frames into the container in which browsers play their codec.
private struct Container {
  private var webM: WebMWriter?
  private var mp4: MP4Writer?
  /// The writer for G.711, which browsers play only in WAV; nil for other codecs.
  private var wav: G711WAVWriter?

  /// Creates a container; fails for a codec that browsers do not play.
  init?(codec: String, width: Int, height: Int, channels: Int) {
    switch codec {
    case "opus": webM = WebMWriter(.opus(channels: max(channels, 1)))
    case "pcmu", "pcma": wav = G711WAVWriter(isALaw: codec == "pcma")
    case "h264": mp4 = MP4Writer(width: width, height: height)
    default:
      guard let name = WebMWriter.videoCodec(codec) else { return nil }
      webM = WebMWriter(.video(codec: name, width: width, height: height))
    }
  }

  mutating func add(_ frame: [UInt8], at milliseconds: Int64, isKey: Bool) {
    webM?.add(frame, at: milliseconds, isKey: isKey)
    mp4?.add(frame, at: milliseconds, isKey: isKey)
    wav?.add(frame, at: milliseconds)
  }

  func type(of kind: String) -> String {
    if wav != nil { return "audio/wav" }
    return mp4 == nil ? "\(kind)/webm" : "video/mp4"
  }

  var bytes: [UInt8]? { webM?.file() ?? mp4?.file() ?? wav?.file() }
}

import AudioSession
import Tape

/// The microphone audio of a take, chunk by chunk.
final class RecordedMicrophone {
  let format: AudioFormat
  private let rows: SQLiteStatement
  private var first: Int64?

  init(path: String) throws(TapeError) {
    let connection = try TakeFile.openForQueries(path)
    var found: AudioFormat?
    do throws(SQLiteError) {
      rows = try connection.prepare(RecordedMicrophone.query)
      if try rows.step() { found = RecordedMicrophone.chunk(rows)?.format }
      rows.reset()
    } catch {
      throw TapeError(path: path, place: "capture", error)
    }
    guard let found, found.fault == nil else {
      throw TapeError(
        path: path, place: "capture", reason: "it holds no audio that a microphone gave")
    }
    format = found
  }

  /// Deliveries of audio sessions state their format; audio of an application is at 48 kHz.
  private static let query = """
    SELECT at_ns, kind, channels, bytes FROM capture JOIN content USING (content)
    WHERE CASE WHEN EXISTS (SELECT 1 FROM capture WHERE kind LIKE '{%')
      THEN kind LIKE '{%'
      ELSE kind = 'audio' AND (peer, track) = (
        SELECT peer, track FROM capture WHERE kind = 'audio' ORDER BY row LIMIT 1) END
    ORDER BY capture.row
    """

  /// The next chunk, and its time after the first one.
  func next() -> (chunk: PCMChunk, nanoseconds: Int64)? {
    guard (try? rows.step()) == true, let chunk = RecordedMicrophone.chunk(rows) else {
      return nil
    }
    let at = rows.integer(0)
    let begin = first ?? at
    first = begin
    return (chunk, max(0, at - begin))
  }

  private static func chunk(_ rows: borrowing SQLiteStatement) -> PCMChunk? {
    let kind = rows.text(1) ?? ""
    guard kind != "audio" else {
      return PCMChunk(format: AudioFormat(channels: Int(rows.integer(2))), data: rows.bytes(3))
    }
    return AudioSessionDecoder.format(ofDelivery: kind).map {
      PCMChunk(format: $0, data: rows.bytes(3))
    }
  }
}

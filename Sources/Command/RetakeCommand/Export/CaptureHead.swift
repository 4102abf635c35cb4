import FoundationEssentials
import Importing
import Peer
import Secure
import Tape
import Wire

/// What a take knows beside its packets and a capture has at its head: secrets, descriptions, and
/// what an observer was told.
struct CaptureHead {
  private(set) var startUnixNanoseconds: Int64 = 0
  private(set) var comments: [String] = []
  /// Key logs in the format of NSS.
  private(set) var secrets: [String] = []
  private(set) var formats: [ClearSession.Format] = []

  init(_ take: String) throws(TapeError) {
    let connection = try TakeFile.openForQueries(take)
    let header = try TakeHeader.read(from: connection, path: take)
    startUnixNanoseconds = header.startUnixNanoseconds
    do throws(SQLiteError) {
      try readObserver(connection)
      try readKeyLogs(connection)
      try readFormats(connection)
    } catch {
      throw TapeError(path: take, place: "call", error)
    }
  }

  private mutating func readObserver(_ connection: borrowing SQLiteConnection)
    throws(SQLiteError)
  {
    let actors = try connection.prepare(
      "SELECT configuration FROM actor WHERE kind = 'observer' ORDER BY row LIMIT 1")
    if try actors.step() {
      comments.append(CaptureMark.observer.rawValue + actors.values(String.self))
    }
    let calls = try connection.prepare(
      """
      SELECT name, iif(name = 'notSeen', arguments, arguments ->> '$._0') FROM call_request
      WHERE name IN ('keyLog', 'srtpKey', 'description', 'signaling', 'notSeen') ORDER BY row
      """)
    while try calls.step() {
      let (name, text) = calls.values(String.self, String?.self)
      guard let text else { continue }
      switch name {
      case "keyLog": secrets.append(text)
      case "notSeen": comments.append(CaptureMark.notSeen.rawValue + text)
      case "signaling": comments.append(CaptureMark.signaling.rawValue + text)
      case "srtpKey": comments.append(CaptureMark.srtpKey.rawValue + text)
      default: comments.append(CaptureMark.description.rawValue + text)
      }
    }
  }

  /// The secrets of own calls; both ends of one call tell the same.
  private mutating func readKeyLogs(_ connection: borrowing SQLiteConnection)
    throws(SQLiteError)
  {
    let events = try connection.prepare(
      """
      SELECT DISTINCT 'CLIENT_RANDOM ' || (detail ->> '$.clientRandom') || ' '
        || (detail ->> '$.masterSecret') || char(10)
      FROM event WHERE type = 'keylog'
      """)
    while try events.step() { secrets.append(events.values(String.self)) }
  }

  private mutating func readFormats(_ connection: borrowing SQLiteConnection)
    throws(SQLiteError)
  {
    let tracks = try connection.prepare(
      """
      SELECT payload_type, codec, clock_rate, kind FROM track
      WHERE codec <> '' GROUP BY payload_type ORDER BY kind, payload_type
      """)
    while try tracks.step() {
      let (type, codec, clockRate, kind) = tracks.values(
        Int.self, String.self, Int.self, String.self)
      formats.append(
        ClearSession.Format(
          payloadType: UInt8(clamping: type), codec: codec, clockRate: UInt32(clamping: clockRate),
          isAudio: kind == "audio"))
    }
  }
}

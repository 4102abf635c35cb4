import Media
import Peer
import Tape

/// Codecs that applications brought, as a take names them.
enum OwnCodecCheck {
  /// Whether the frames of a take have to stand in for its codecs, because peers of it had codecs
  /// of their application's that are not here; throws when the take cannot be read.
  static func needsFrames(
    _ path: String, codecs: () -> any CodecFactory
  ) throws(TapeError) -> Bool {
    let named = try named(path)
    guard !named.isEmpty else { return false }
    let present = codecs().ownCodecs
    return !named.allSatisfy { present.contains($0) }
  }

  /// The codecs that a take names.
  private static func named(_ path: String) throws(TapeError) -> [OwnCodec] {
    let connection = try TakeFile.open(path)
    var named: [OwnCodec] = []
    do throws(SQLiteError) {
      let statement = try connection.prepare(
        "SELECT configuration FROM peer WHERE instr(configuration, '\"ownCodecs\"') > 0")
      while try statement.step() {
        let text = statement.values(String.self)
        named += CanonicalJSON.value(PeerConfiguration.self, from: text)?.ownCodecs ?? []
      }
    } catch {
      throw TapeError(path: path, place: "peer", error)
    }
    return named
  }
}

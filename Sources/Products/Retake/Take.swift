import Foundation
import Queries
import Stats
public import Tape
public import Wire

/// Why a take cannot be opened, read, replayed or exported: one sentence with the file, the place
/// and the reason.
public typealias TakeError = TapeError

/// A recorded session: one SQLite file that can be read, queried, replayed and exported.
///
///     let take = try Take.open("call.take")
///     for change in try take.rows(of: StateChange.self).all() {
///       print(change.at.nanoseconds, change.machine, change.to)
///     }
///     let result = try await take.replay()
///
/// Opening reads only the metadata; everything else is read on demand, so a take may still be
/// recording: each reader sees the state at the moment when it was created.
public struct Take: Sendable {
  /// A peer connection of the take.
  public struct Peer: Hashable, Sendable {
    /// Its number, from 1.
    public var number: UInt32
    /// Its display name.
    public var label: String
    /// Its role in the session, as the recorder described it; `observed` for an end of a call
    /// between others.
    public var role: String
  }

  /// The file.
  public let path: String
  /// The free text that the recorder passed.
  public let label: String
  /// The Unix time, in nanoseconds, at the take's instant zero.
  public let startUnixNanoseconds: Int64
  /// The version of the schema.
  public let format: Int
  /// The version of Retake that recorded.
  public let toolVersion: String
  /// Whether frames and messages are kept in the clear.
  public let keepsMedia: Bool
  /// The peer connections, in the order of their numbers.
  public let peers: [Peer]
  /// How many steps it had when it was opened.
  public let stepCount: Int
  /// The time of the last of them: the length of the session.
  public let duration: Interval
  /// Whether the recording ended properly; false while it is running, and after the recorder was
  /// killed.
  public let isComplete: Bool

  /// Opens a take.
  /// - Throws: `TakeError` when there is no such file, or it is not a take that this version can
  ///   read.
  public static func open(_ path: String) throws(TakeError) -> Take { try Take(path) }

  private init(_ path: String) throws(TakeError) {
    self.path = path
    let connection = try TakeFile.open(path)
    let header = try TakeHeader.read(from: connection, path: path)
    label = header.label
    startUnixNanoseconds = header.startUnixNanoseconds
    format = Int(header.format)
    toolVersion = header.toolVersion
    keepsMedia = header.keepsMedia
    let reader = try TapeReader(path: path)
    isComplete = reader.ending != nil
    stepCount = try reader.stepCount()
    duration = try (reader.lastTime() ?? .zero) - .zero
    do throws(SQLiteError) {
      let rows = try connection.prepare("SELECT peer, label, role FROM peer ORDER BY peer")
      var found: [Peer] = []
      while try rows.step() {
        let (number, label, role) = rows.values(UInt32.self, String.self, String.self)
        found.append(Peer(number: number, label: label, role: role))
      }
      peers = found
    } catch {
      throw TakeError(path: path, place: "peer", error)
    }
  }

  /// Runs a long computation on a thread of its own, not on the cooperative pool.
  func computing<Value: Sendable>(
    _ body: @escaping @Sendable () throws(TakeError) -> Value
  ) async throws(TakeError) -> Value {
    let result: Result<Value, TakeError> = await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        do throws(TakeError) {
          continuation.resume(returning: .success(try body()))
        } catch {
          continuation.resume(returning: .failure(error))
        }
      }
    }
    return try result.get()
  }
}

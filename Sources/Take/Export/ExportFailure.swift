package import Tape

/// Why an export ended early, in one sentence.
package enum ExportFailure: Error, Hashable, Sendable, CustomStringConvertible {
  /// The take cannot be read.
  case take(TapeError)
  /// A file cannot be written.
  case file(WholeFile.Failure)
  /// The file of a track cannot be written; in the words of the format's writer.
  case media(String)
  /// The folder for media cannot be made.
  case folder(path: String)
  /// The take has no peer of that number; it has these.
  case noSuchPeer(take: String, number: Int64, known: String)

  /// The sentence.
  package var description: String {
    switch self {
    case .take(let error): error.description
    case .file(let failure): failure.description
    case .media(let words): words
    case .folder(let path): "\(path): the folder cannot be made; choose another"
    case .noSuchPeer(let take, let number, let known):
      "\(take): there is no peer \(number); the take has \(known)"
    }
  }

  /// Runs what reads a take.
  static func reading<Value>(_ body: () throws(TapeError) -> Value) throws(ExportFailure) -> Value {
    do throws(TapeError) {
      return try body()
    } catch {
      throw .take(error)
    }
  }

  /// Runs what writes a file as a whole.
  static func writing<Value>(
    _ body: () throws(WholeFile.Failure) -> Value
  ) throws(ExportFailure) -> Value {
    do throws(WholeFile.Failure) {
      return try body()
    } catch {
      throw .file(error)
    }
  }
}

import FoundationEssentials
package import Live
import Replay
import Tape

/// Begins a session, on a loop that it shares or on one of its own, or fails with one sentence.
func openSession(_ options: Session.Options, on loop: MediaLoop? = nil) throws -> Session {
  do throws(SessionError) {
    return try Session(options, loop: loop)
  } catch {
    throw CommandFailure(.inputOutput, error.description)
  }
}

/// Ends a session and its take, or fails with one sentence.
package func finish(_ session: Session, _ path: String) async throws -> TakeSummary {
  do throws(TapeError) {
    guard let summary = try await session.finish() else {
      throw TapeError(path: path, place: "", reason: "nothing was recorded")
    }
    return summary
  } catch {
    throw CommandFailure(.inputOutput, error.description)
  }
}

/// Takes away the take of a call that never was one: nobody took its offer.
func discard(_ path: String) {
  for ending in ["", "-wal", "-shm"] { FileBytes.remove(path + ending) }
}

/// Turns a failure to write a take into one of the command.
func finished<Value>(_ body: () throws(TapeError) -> Value) throws -> Value {
  do throws(TapeError) {
    return try body()
  } catch {
    throw CommandFailure(.inputOutput, error.description)
  }
}

/// A number of bytes for people: `12.3 MB`.
func byteText(_ bytes: Int) -> String {
  switch bytes {
  case ..<1000: "\(bytes) B"
  case ..<1_000_000: decimal(Double(bytes) / 1e3, 1) + " kB"
  case ..<1_000_000_000: decimal(Double(bytes) / 1e6, 1) + " MB"
  default: decimal(Double(bytes) / 1e9, 2) + " GB"
  }
}

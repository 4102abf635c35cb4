import CallRecording
package import Live
import Tape

/// Begins a session, on a loop that it shares or on one of its own, or fails with one sentence.
func openSession(_ options: Session.Options, on loop: MediaLoop? = nil) throws -> Session {
  do throws(TapeError) {
    return try Session.recording(options, on: loop)
  } catch {
    throw CommandFailure(.inputOutput, error.description)
  }
}

/// Ends a session and its take, or fails with one sentence.
package func finish(_ session: Session, _ path: String) async throws -> TakeSummary {
  do throws(TapeError) {
    return try await session.finished(path)
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

import FoundationEssentials
import Glibc
package import Wire

/// Checks a take against its chain of digests, without replaying it.
package struct TapeAudit: Sendable {
  package var steps = 0
  /// The time of the last intact step.
  package var at = Instant.zero
  /// Whether the recording was ended properly; otherwise the take may lack its last steps.
  package var isComplete = false
  /// The first place that was altered; nil if the file is as recorded.
  package var alteration: Alteration?

  /// Checks a take to its end; `progress` receives the time of the last step checked.
  package static func run(path: String, progress: (Instant) -> Void = { _ in }) throws(TapeError)
    -> TapeAudit
  {
    let reader = try TapeReader(path: path)
    var audit = TapeAudit()
    audit.isComplete = reader.ending != nil
    do throws(TapeFault) {
      while let chunk = try reader.next() {
        audit.steps += chunk.steps.count
        if let last = chunk.steps.last {
          audit.at = last.head.at
          progress(last.head.at)
        }
      }
    } catch {
      switch error {
      case .unreadable(let reason): throw reason
      case .altered(let alteration, _): audit.alteration = alteration
      }
    }
    return audit
  }
}

// MARK: - Alteration

/// The first place where a take differs from what was recorded, found by the chain of digests.
package struct Alteration: Error, Hashable, Sendable, Codable, CustomStringConvertible {
  /// The first step that was altered, counted from 1.
  package var step: Int
  /// The time of the altered step, or of the last readable step.
  package var atNanoseconds: Int64
  /// The table that was altered, or `tape` for the steps themselves; empty if it is not clear
  /// which.
  package var table: String
  /// What is wrong at the altered place.
  package var reason: String
  /// The row that a replay produces instead of the altered one; nil if unknown.
  package var expectation: String?

  init(step: Int, atNanoseconds: Int64, table: String = "", reason: String) {
    self.step = step
    self.atNanoseconds = atNanoseconds
    self.table = table
    self.reason = reason
  }

  package var description: String {
    let place = table.isEmpty ? "" : ", table \(table)"
    let more = expectation.map { " (\($0))" } ?? ""
    return "the file was altered after the recording at step \(step)\(place): \(reason)\(more)"
  }
}

/// Why steps cannot be read any further.
package enum TapeFault: Error, Sendable {
  /// The file cannot be read.
  case unreadable(TapeError)
  /// The file differs from what was recorded; the chunk has the altered step, if it can be decoded.
  case altered(Alteration, TapeChunk?)

  /// Converts the fault to an error that names the file.
  package func reason(_ path: String) -> TapeError {
    switch self {
    case .unreadable(let reason): reason
    case .altered(let alteration, _):
      TapeError(
        path: path, place: "step \(alteration.step)",
        reason: "the file was altered: \(alteration.reason)")
    }
  }
}

// MARK: - TakeEnding

/// Whether and how a recording ended, judged by the take and the files beside it.
package enum TakeEnding: Hashable, Sendable {
  /// The recording was ended properly.
  case complete
  /// The recording continues: a process has the file open for writing.
  case beingRecorded(process: Int32)
  /// The recorder was killed; the file contains everything that it had passed to the system.
  case cutShort
  /// The recording was not ended, and the write-ahead log with its last part is missing.
  case withoutLog(String)

  /// Finds out whether and how the recording of a take ended.
  package static func of(_ path: String) throws(TapeError) -> TakeEnding {
    let connection = try TakeFile.open(path, cacheKilobytes: 100)
    do throws(SQLiteError) {
      if try connection.integer("SELECT count(*) FROM ending") == 1 { return .complete }
    } catch {
      throw TapeError(path: path, error)
    }
    if let process = writer(of: path) { return .beingRecorded(process: process) }
    return missingLog(of: path).map { .withoutLog($0) } ?? .cutShort
  }

  /// A description for users; nil if the recording was ended properly.
  package var words: String? {
    switch self {
    case .complete: nil
    case .beingRecorded(let process):
      "it is still being recorded, by process \(process), and replays as far as it got"
    case .cutShort: "the recording was cut short and replays to its end"
    case .withoutLog(let log):
      "the recording was cut short and replays to its end; if it was copied without \(log), which "
        + "has its last part, copy both"
    }
  }

  // MARK: Other files

  /// Returns the name of the write-ahead log if the header requires one and it is missing;
  /// otherwise nil.
  static func missingLog(of path: String) -> String? {
    let head = (try? FileBytes.read(path, atMost: 20).get()) ?? []
    // With a write-ahead log, the header's read and write versions are 2 (SQLite file format
    // section 1.3).
    guard head.count == 20, head[18] == 2 else { return nil }
    return TakeFile.hasLog(path) ? nil : path + "-wal"
  }

  // MARK: Processes

  /// Returns another process that has the file open for writing and holds SQLite's lock on it; nil
  /// if none does.
  ///
  /// The kernel's list of locks is read, because opening and closing the file would release this
  /// process's own locks.
  private static func writer(of path: String) -> Int32? {
    var status = stat()
    guard stat(path.systemPath, &status) == 0,
      let list = try? String(contentsOfFile: "/proc/locks", encoding: .utf8)
    else { return nil }
    for line in list.split(separator: "\n") {
      // A line such as "1: POSIX  ADVISORY  READ 4711 fe:01:123456 1073741826 1073742335".
      let words = line.split(separator: " ")
      guard words.count == 8, words[1] == "POSIX", words[6] == sharedLockStart,
        words[5].split(separator: ":").last == "\(status.st_ino)",
        let process = Int32(words[4]), process != getpid(), writes(process, status)
      else { continue }
      return process
    }
    return nil
  }

  /// The byte at which SQLite's shared lock begins (SHARED_FIRST); recorders hold it on their
  /// takes.
  private static let sharedLockStart = "1073741826"

  /// Returns whether a process has a file open for writing; true if its descriptors cannot be
  /// inspected.
  private static func writes(_ process: Int32, _ file: stat) -> Bool {
    let folder = "/proc/\(process)"
    guard let names = try? FileManager.default.contentsOfDirectory(atPath: folder + "/fd") else {
      return true
    }
    return names.contains { name in
      var status = stat()
      guard stat("\(folder)/fd/\(name)", &status) == 0, status.st_ino == file.st_ino,
        status.st_dev == file.st_dev,
        let text = try? String(contentsOfFile: "\(folder)/fdinfo/\(name)", encoding: .utf8),
        let line = text.split(separator: "\n").first(where: { $0.hasPrefix("flags:") }),
        let flags = Int32(line.dropFirst(6).trimmed, radix: 8)
      else { return false }
      return flags & O_ACCMODE != O_RDONLY
    }
  }
}

// MARK: - StepTimes

/// Finds the times of steps by reading only the `tape` table.
package enum StepTimes {
  /// Returns the time of the last step; nil if the take is empty.
  package static func end(of path: String) throws(TapeError) -> Instant? {
    let count = try find(1, in: path).count
    return try find(count, in: path).at
  }

  /// Returns the time of a step, and the number of all steps; the time is nil if the step does not
  /// exist.
  package static func find(_ step: Int, in path: String) throws(TapeError) -> (
    at: Instant?, count: Int
  ) {
    let connection = try TakeFile.open(path)
    do throws(SQLiteError) {
      let last = try connection.integer(
        "SELECT first_step + steps - 1 FROM tape ORDER BY first_step DESC LIMIT 1")
      let count = Int(last ?? 0)
      let rows = try connection.prepare(
        """
        SELECT first_step, steps, at_ns, body FROM tape WHERE first_step <= ?1
        ORDER BY first_step DESC LIMIT 1
        """)
      rows.bind(Int64(step), at: 1)
      guard (1...max(1, count)).contains(step), try rows.step() else { return (nil, count) }
      let (first, steps, start) = rows.values(Int.self, Int.self, Int64.self)
      let bytes = rows.bytes(3)
      let heads: [StepHead]
      do throws(ReadError) {
        heads = try TapeBody.heads(bytes.span.bytes, first: first, count: steps, start: start)
      } catch {
        throw SQLiteError(code: .corrupt, message: "the heads of step \(first) and later")
      }
      return (heads.first { $0.number == step }?.at, count)
    } catch {
      throw TapeError(path: path, place: "tape", error)
    }
  }

  /// Calls a closure with the number and time of each step up to a time, and possibly of a few
  /// later steps.
  package static func each(
    in path: String, until end: Instant, _ use: (Int, Instant) -> Void
  ) throws(TapeError) {
    let connection = try TakeFile.open(path)
    do throws(SQLiteError) {
      let rows = try connection.prepare(
        "SELECT first_step, steps, at_ns, body FROM tape WHERE at_ns <= ?1 ORDER BY first_step")
      rows.bind(end.nanoseconds, at: 1)
      while try rows.step() {
        let (first, steps, start) = rows.values(Int.self, Int.self, Int64.self)
        let bytes = rows.bytes(3)
        do throws(ReadError) {
          let heads = try TapeBody.heads(
            bytes.span.bytes, first: first, count: steps, start: start)
          for head in heads { use(head.number, head.at) }
        } catch {
          throw SQLiteError(code: .corrupt, message: "the heads of step \(first) and later")
        }
      }
    } catch {
      throw TapeError(path: path, place: "tape", error)
    }
  }

  /// A step that ran later than its actor's deadline.
  package struct Late: Sendable, Hashable {
    package var actor: Int64
    /// The actor's deadline before the step.
    package var due: Int64
    package var at: Int64
  }

  /// Returns the steps that ran at least `bound` nanoseconds after their deadline, because the
  /// process was busy or suspended.
  package static func late(
    by bound: Int64, atMost limit: Int, in connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Late] {
    var deadlines: [UInt32: Instant] = [:]
    var late: [Late] = []
    let rows = try connection.prepare(
      "SELECT first_step, steps, at_ns, body FROM tape ORDER BY first_step")
    while late.count < limit, try rows.step() {
      let (first, steps, start) = rows.values(Int.self, Int.self, Int64.self)
      let bytes = rows.bytes(3)
      let heads: [StepHead]
      do throws(ReadError) {
        heads = try TapeBody.heads(bytes.span.bytes, first: first, count: steps, start: start)
      } catch {
        // Later steps cannot be read if the take was altered, which `verify` reports.
        return late
      }
      for head in heads {
        if let due = deadlines[head.actor], head.at.nanoseconds &- due.nanoseconds >= bound {
          late.append(
            Late(actor: Int64(head.actor), due: due.nanoseconds, at: head.at.nanoseconds))
        }
        deadlines[head.actor] = head.deadline
      }
    }
    return late
  }
}

import FoundationEssentials
import Glibc
import Wire

/// How a recording ended, by what stands in the take and beside it.
package enum TakeEnding: Hashable, Sendable {
  /// In order.
  case complete
  /// Not yet: a process has it open for writing.
  case beingRecorded(process: Int32)
  /// Its recorder was killed; what it had handed over is there.
  case cutShort
  /// Without an end and without the log in which the last of it stood when it was recorded.
  case withoutLog(String)

  /// Looks at a take.
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

  /// What there is to say about it; nil when it ended in order.
  package var words: String? {
    switch self {
    case .complete: nil
    case .beingRecorded(let process):
      "it is still being recorded, by process \(process), and replays as far as it got"
    case .cutShort: "the recording was cut short and replays to its end"
    case .withoutLog(let log):
      "the recording was cut short and replays to its end; if it was copied, then without "
        + "\(log), which holds the last of it: copy both"
    }
  }

  // MARK: Files beside it

  /// The name of the write-ahead log that a file says it has and that is not there.
  static func missingLog(of path: String) -> String? {
    let head = (try? FileBytes.read(path, atMost: 20).get()) ?? []
    // The versions for reading and writing, 2 with a log (SQLite file format section 1.3).
    guard head.count == 20, head[18] == 2 else { return nil }
    var status = stat()
    let log = path + "-wal"
    guard stat(log.systemPath, &status) != 0 || status.st_size == 0 else { return nil }
    return log
  }

  // MARK: Processes

  /// Another process that has the file open for writing and holds SQLite's lock on it.
  ///
  /// Asking the kernel's list opens no file: closing one would drop this process's own locks.
  private static func writer(of path: String) -> Int32? {
    var status = stat()
    guard stat(path.systemPath, &status) == 0,
      let list = try? String(contentsOfFile: "/proc/locks", encoding: .utf8)
    else { return nil }
    for line in list.split(separator: "\n") {
      // 1: POSIX  ADVISORY  READ 4711 fe:01:123456 1073741826 1073742335
      let words = line.split(separator: " ")
      guard words.count == 8, words[1] == "POSIX", words[6] == sharedLockStart,
        words[5].split(separator: ":").last == "\(status.st_ino)",
        let process = Int32(words[4]), process != getpid(), writes(process, status)
      else { continue }
      return process
    }
    return nil
  }

  /// SHARED_FIRST of SQLite: whoever has a take open for recording holds a lock there.
  private static let sharedLockStart = "1073741826"

  /// Whether a process has a file open for writing; so it is taken to be where nobody may look.
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

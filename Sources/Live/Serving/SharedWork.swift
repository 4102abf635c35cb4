import Dispatch
import FoundationEssentials
import Tape

/// A file as it is now: one that is written to, or another of its name, is told apart.
struct FileStamp: Hashable, Sendable {
  private let path: String
  private let sizes: [Int]
  private let changes: [Date]

  init(path: String) {
    let parts = [path, path + "-wal"].map { try? FileManager.default.attributesOfItem(atPath: $0) }
    self.path = path
    sizes = parts.map { $0?[.size] as? Int ?? 0 }
    changes = parts.map { $0?[.modificationDate] as? Date ?? .distantPast }
  }
}

/// Long work on takes, whose result pages share.
///
/// Whoever asks for it again, while the file is the same, waits for what was begun or has it at
/// once.
struct SharedWork<Value: Sendable> {
  private var latest: [(stamp: FileStamp, task: Task<Result<Value, TapeError>, Never>)] = []
  private let maximum: Int

  /// - Parameter maximum: how many results are kept.
  init(keeping maximum: Int) { self.maximum = maximum }

  /// The work on a file, begun where it was not yet.
  mutating func task(
    for stamp: FileStamp, _ work: @escaping @Sendable () throws(TapeError) -> Value
  ) -> Task<Result<Value, TapeError>, Never> {
    if let known = latest.first(where: { $0.stamp == stamp }) { return known.task }
    // It waits for files and other threads, which tasks must not: they share few threads.
    let task = Task.detached {
      await withCheckedContinuation { continuation in
        DispatchQueue.global().async {
          continuation.resume(returning: Result { () throws(TapeError) in try work() })
        }
      }
    }
    if latest.count == maximum { latest.removeFirst() }
    latest.append((stamp, task))
    return task
  }

  /// Keeps nothing of a file, such as of one that soon is another.
  mutating func forget(_ stamp: FileStamp) { latest.removeAll { $0.stamp == stamp } }
}

import Dispatch
import Export
import FoundationEssentials
import Page
import Peer
import Replay
import Stats
import Synchronization
import Tape
import Wire

/// The decrypted contents of the packets around an instant, from a replay of the take.
struct ClearPackets: Sendable {
  /// A decrypted packet with its source, destination and time.
  private struct Sight: Sendable {
    var source: String
    var destination: String
    var at: Int64
    var kind: String
    var bytes: [UInt8]
  }

  let path: String
  /// The span from which packet contents are kept, in nanoseconds since the take began.
  let span: ClosedRange<Int64>
  private let sights: [Sight]

  /// How long before and after a requested packet the contents of other packets are kept, in
  /// nanoseconds, because requests for them are likely to follow.
  private static let margin: Int64 = 2_000_000_000
  private static let byteMaximum = 64 << 20

  /// Replays the take to its end and keeps the contents of packets around `at`.
  init(path: String, around at: Int64) throws(TapeError) {
    self.path = path
    let span = (at &- Self.margin)...(at &+ Self.margin)
    self.span = span
    let found = Found()
    _ = try FollowedReplay(take: path, only: nil).run(progress: { _, _ in }) {
      sight, source, destination, time in
      guard case .clear(let bytes, let kind, _) = sight, span.contains(time.nanoseconds),
        found.byteCount + bytes.count <= Self.byteMaximum
      else { return }
      found.byteCount += bytes.count
      found.sights.append(
        Sight(
          source: "\(source)", destination: "\(destination)", at: time.nanoseconds,
          kind: "\(kind)", bytes: bytes))
    }
    sights = found.sights
  }

  /// Returns a packet's contents as a JSON array of kinds, fields, and bytes in hexadecimal.
  func json(of place: PagePackets.Place) -> String {
    let objects = sights.filter {
      $0.at == place.at && $0.source == place.source && $0.destination == place.destination
    }.map { sight in
      JSONText.object([
        ("kind", .text(sight.kind)), ("bytes", .text(hexadecimal(sight.bytes))),
        ("layers", PacketFields(sight.bytes, kind: sight.kind, isClear: true).json),
      ]).text
    }
    return "[" + objects.joined(separator: ",") + "]"
  }

  private final class Found {
    var sights: [Sight] = []
    var byteCount = 0
  }
}

// MARK: - FileWork

/// Runs work that waits for files and other processes, on threads of its own.
///
/// Tasks share few threads, so an actor that waited for such work would block other tasks.
final class FileWork: Sendable {
  private struct State {
    var waiting: [@Sendable () -> Void] = []
    var threads = 0
  }

  private let state = Mutex(State())
  private let count: Int
  /// The maximum number of jobs that run or wait; further jobs are refused.
  private let limit: Int

  /// - Parameters:
  ///   - count: the number of jobs that run at once.
  ///   - waitingMaximum: the maximum number of jobs that run or wait.
  init(_ count: Int, waitingMaximum: Int = 256) {
    self.count = count
    limit = waitingMaximum
  }

  /// Runs work once a thread is free; returns nil if too much is already waiting.
  func run<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value? {
    await withCheckedContinuation { continuation in
      let isAdded = add { continuation.resume(returning: work()) }
      if !isAdded { continuation.resume(returning: nil) }
    }
  }

  private func add(_ work: @escaping @Sendable () -> Void) -> Bool {
    let (isAdded, needsThread) = state.withLock { state in
      guard state.waiting.count + state.threads < limit else { return (false, false) }
      state.waiting.append(work)
      guard state.threads < count else { return (true, false) }
      state.threads += 1
      return (true, true)
    }
    if needsThread { startWorker(named: "files") { [self] in doAll() } }
    return isAdded
  }

  /// Runs waiting work until none is left.
  private func doAll() {
    while true {
      let next = state.withLock { state -> (@Sendable () -> Void)? in
        guard !state.waiting.isEmpty else {
          state.threads -= 1
          return nil
        }
        return state.waiting.removeFirst()
      }
      guard let next else { return }
      next()
    }
  }
}

// MARK: - SharedWork

/// Identifies a version of a file: the stamp changes with each write, and if a new file replaces
/// the file.
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

/// Long-running work on takes, whose results all pages share.
///
/// A second request for the same, unchanged file waits for the first request's result, or gets it
/// at once.
struct SharedWork<Value: Sendable> {
  private var latest: [(stamp: FileStamp, task: Task<Result<Value, TapeError>, Never>)] = []
  private let maximum: Int

  /// - Parameter maximum: the maximum number of results to keep.
  init(keeping maximum: Int) { self.maximum = maximum }

  /// Returns the task that works on a file, starting it if necessary.
  mutating func task(
    for stamp: FileStamp, _ work: @escaping @Sendable () throws(TapeError) -> Value
  ) -> Task<Result<Value, TapeError>, Never> {
    if let known = latest.first(where: { $0.stamp == stamp }) { return known.task }
    // The work waits for files and other threads, which must not happen on the few threads that
    // tasks share.
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

  /// Discards a file's results, for example before it is replaced.
  mutating func forget(_ stamp: FileStamp) { latest.removeAll { $0.stamp == stamp } }
}

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

/// The decrypted contents of packets around a time, found by a replay of the take.
struct ClearPackets: Sendable {
  /// A packet with its source, destination and time.
  private struct Sight: Sendable {
    var source: String
    var destination: String
    var at: Int64
    var kind: String
    var bytes: [UInt8]
  }

  let path: String
  /// The replayed span, in nanoseconds since the take began.
  let span: ClosedRange<Int64>
  private let sights: [Sight]

  /// The time on both sides of a packet that is decrypted along with it, for further requests.
  private static let margin: Int64 = 2_000_000_000
  private static let byteMaximum = 64 << 20

  /// Replays the take to its end, and keeps the contents of packets around a time.
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

  /// The contents of a packet, as a JSON array of kinds, fields, and bytes in hexadecimal.
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

/// Work that waits for files and other processes, on its own threads: tasks share few threads, and
/// an actor that waits would block all others.
final class FileWork: Sendable {
  private struct State {
    var waiting: [@Sendable () -> Void] = []
    var threads = 0
  }

  private let state = Mutex(State())
  private let count: Int
  /// The limit on work that is under way or waits; more is refused.
  private let limit: Int

  /// - Parameters:
  ///   - count: the maximum number of simultaneous jobs.
  ///   - waitingMaximum: the maximum number of jobs, including waiting ones.
  init(_ count: Int, waitingMaximum: Int = 256) {
    self.count = count
    limit = waitingMaximum
  }

  /// Runs work when a thread is free; nil when too much is waiting already.
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

  /// Runs waiting work until there is none.
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

/// A file's identity and version: it differs after a write, and for another file of the same name.
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
/// A second request for the same, unchanged file waits for the first one or gets its result at
/// once.
struct SharedWork<Value: Sendable> {
  private var latest: [(stamp: FileStamp, task: Task<Result<Value, TapeError>, Never>)] = []
  private let maximum: Int

  /// - Parameter maximum: the maximum number of stored results.
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

  /// Removes a file's results, for example before it is replaced.
  mutating func forget(_ stamp: FileStamp) { latest.removeAll { $0.stamp == stamp } }
}

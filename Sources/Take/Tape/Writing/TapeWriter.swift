import Dispatch
import Synchronization
import Wire

/// Writes a take on another thread; `record` only queues a step.
package final class TapeWriter: Sendable {
  /// A recording's settings.
  package struct Options: Sendable {
    /// Free text for the `take` row.
    package var label = ""
    /// Facts about the take by key, for the `tag` view.
    package var tags: [String: String] = [:]
    /// Whether encoded frames' bytes are stored.
    package var keepsMedia = true
    /// The UTC time at the take's zero instant, in nanoseconds since 1970.
    package var startUnixNanoseconds: Int64 = 0
    /// Retake's version, for the `take` row.
    package var toolVersion = ""
    /// The toolchain that bit-exact replay depends on, for the `take` row.
    package var toolchain = Toolchain()
    /// Whether `record` blocks when the queue is full, for drivers in virtual time.
    package var waitsForDisk = false
    /// The queue limit in bytes, beyond which steps are lost or `record` blocks.
    package var queueLimit = 256 << 20
    /// Whether the file stays if the recording fails; the error then says what it contains.
    package var staysIncomplete = true
    /// The file's size limit in pages of 8 KiB.
    package var pageLimit: Int64 = 0xffff_fffe
    package init() {}
  }

  /// A finished take's totals.
  package struct Summary: Hashable, Sendable {
    package var steps = 0
    package var packets = 0
    /// The file's size in bytes.
    package var bytes = 0
    package init() {}
  }

  /// The steps queued for the writer's thread, and the recording's state.
  private struct Queue {
    var steps: [StepRecord] = []
    var names: [(actor: UInt32, words: ActorWords)] = []
    /// Actors whose last step is written or queued.
    var ended: [UInt32] = []
    var bytes = 0
    var actors: UInt32 = 0
    var peers: UInt32 = 0
    /// The number of `record` callers waiting for room.
    var waiting = 0
    var isFinishing = false
    var error: TapeError?
    var result: Result<Summary, TapeError>?
    /// `finish`'s completion handlers.
    var listeners: [@Sendable (Result<Summary, TapeError>) -> Void] = []
  }

  private let queue = Mutex(Queue())
  /// The file and a spare queue, used by one thread at a time: the one that creates the file, then
  /// the one that writes.
  private let desk: Mutex<Desk>
  private let thread: WriterThread
  private let room = DispatchSemaphore(value: 0)
  private let path: String
  private let options: Options

  private struct Desk {
    let store: TapeStore
    var spare: [StepRecord] = []
    /// After a failure no later step may be written: the take would have a gap.
    var isBroken = false
    var isFinished = false
  }

  /// The number of queued bytes that trigger an early write: bytes that wait longer have left the
  /// processor's caches.
  private static let hurry = 4 << 20

  /// Creates the file, mode 0600; it must not exist.
  package init(path: String, options: Options) throws(TapeError) {
    self.path = path
    self.options = options
    desk = Mutex(Desk(store: try TapeStore(path: path, options: options)))
    thread = WriterThread.next()
    thread.add(self)
  }

  /// Adds an endpoint before its first step; returns its actor and peer numbers, which are equal in
  /// takes with only endpoints.
  package func addPeer(label: String, role: String) -> (actor: UInt32, peer: UInt32) {
    queue.withLock { queue in
      queue.actors += 1
      queue.peers += 1
      var words = ActorWords()
      (words.label, words.role, words.peer) = (label, role, queue.peers)
      queue.names.append((queue.actors, words))
      return (queue.actors, queue.peers)
    }
  }

  /// Adds a machine of another kind before its first step; returns its actor number.
  package func addActor(_ kind: MachineKind, label: String) -> UInt32 {
    queue.withLock { queue in
      queue.actors += 1
      var words = ActorWords()
      (words.label, words.kind) = (label, kind)
      queue.names.append((queue.actors, words))
      return queue.actors
    }
  }

  /// Queues a step; never waits for the disk unless the options say so.
  package func record(_ step: consuming StepRecord) {
    var step = step
    step.outputs.digest()
    let size = step.approximateByteCount
    while true {
      let waits = queue.withLock { queue in
        guard queue.error == nil, !queue.isFinishing else { return false }
        if queue.bytes + size > options.queueLimit, !queue.steps.isEmpty {
          if options.waitsForDisk {
            queue.waiting += 1
            return true
          }
          queue.error = TapeError(
            path: path, place: "",
            reason: "the disk was too slow: \(queue.bytes >> 20) MB were waiting to be written",
            kind: .failed)
          return false
        }
        let wasCalm = queue.bytes < TapeWriter.hurry
        queue.steps.append(step)
        queue.bytes += size
        if wasCalm, queue.bytes >= TapeWriter.hurry { thread.wake(for: self) }
        return false
      }
      guard waits else { return }
      thread.wake(for: self)
      room.wait()
    }
  }

  /// Ends an actor: its state is discarded once its queued steps are written.
  package func end(actor: UInt32) { queue.withLock { $0.ended.append(actor) } }

  /// The error that stopped the recording; nil while it is running.
  package var error: TapeError? { queue.withLock { $0.error } }

  /// Writes all queued steps and closes the file; throws if steps were lost.
  ///
  /// It waits for the disk. A second call returns the same result.
  package func finish() throws(TapeError) -> Summary {
    let done = DispatchSemaphore(value: 0)
    finish { _ in done.signal() }
    done.wait()
    return try queue.withLock { $0.result ?? .success(Summary()) }.get()
  }

  /// Finishes asynchronously; the closure runs on the writer's thread, or immediately if the take
  /// was already finished.
  package func finish(_ complete: @escaping @Sendable (Result<Summary, TapeError>) -> Void) {
    let result = queue.withLock { queue in
      queue.isFinishing = true
      if queue.result == nil { queue.listeners.append(complete) }
      return queue.result
    }
    if let result { return complete(result) }
    thread.wake(for: self)
  }

  /// Writes all queued steps on the caller's thread, so that readers of the take find them.
  package func flush() { _ = writeQueued() }

  /// Writes queued steps, usually on the writer's thread; returns false once the take is finished.
  func writeQueued() -> Bool {
    desk.withLock { desk in
      guard !desk.isFinished else { return false }
      var steps = desk.spare
      desk.spare = []
      let (names, ended, bytes, isLast) = queue.withLock { queue in
        let taken = (queue.names, queue.ended, queue.bytes, queue.isFinishing)
        swap(&queue.steps, &steps)
        queue.names = []
        queue.ended = []
        queue.bytes = 0
        for _ in 0..<queue.waiting { room.signal() }
        queue.waiting = 0
        return taken
      }
      for name in names { desk.store.name(actor: name.actor, name.words) }
      // A driver that waits for the disk loses nothing, so it need not hurry.
      desk.store.isHurried = !options.waitsForDisk && bytes > options.queueLimit / 4
      if !desk.isBroken { desk.isBroken = !write(steps, to: desk.store) }
      for actor in ended { desk.store.forget(actor: actor) }
      // The next steps reuse the queue's memory.
      steps.removeAll(keepingCapacity: true)
      desk.spare = steps
      if isLast { finish(desk.store) }
      desk.isFinished = isLast
      return !isLast
    }
  }

  /// Writes steps; returns false if the disk refused some.
  private func write(_ steps: [StepRecord], to store: TapeStore) -> Bool {
    var start = 0
    while start < steps.count {
      var end = start
      var bytes = 0
      while end < steps.count, end - start < TapeStore.batchSteps, bytes < TapeStore.batchBytes {
        bytes += steps[end].approximateByteCount
        end += 1
      }
      do throws(TapeError) {
        try store.write(steps[start..<end])
      } catch {
        queue.withLock { if $0.error == nil { $0.error = error } }
        return false
      }
      start = end
    }
    return true
  }

  private func finish(_ store: TapeStore) {
    let result: Result<Summary, TapeError>
    do throws(TapeError) {
      if var error = queue.withLock({ $0.error }) {
        try? store.merge()
        if options.staysIncomplete {
          error.reason += "; the take holds the first \(counted(store.summary.steps, "step"))"
        }
        throw error
      }
      try store.end()
      result = .success(store.summary)
    } catch {
      result = .failure(error)
    }
    let listeners = queue.withLock { queue in
      queue.result = result
      defer { queue.listeners = [] }
      return queue.listeners
    }
    for complete in listeners { complete(result) }
  }
}

extension StepRecord {
  /// About how many bytes of memory the step occupies while queued.
  fileprivate var approximateByteCount: Int { 200 + input.byteCount + outputs.byteCount }
}

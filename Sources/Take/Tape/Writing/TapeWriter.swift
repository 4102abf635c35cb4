import Dispatch
import Synchronization
import Wire

/// Records a take; `record` only queues a step, and another thread writes it.
package final class TapeWriter: Sendable {
  /// The settings of a recording.
  package struct Options: Sendable {
    /// Any text that describes the take, for the `take` row.
    package var label = ""
    /// What the application states about the take, by key, for the `tag` view.
    package var tags: [String: String] = [:]
    /// Whether the bytes of encoded frames are stored.
    package var keepsMedia = true
    /// The Unix time at the take's instant zero, in nanoseconds.
    package var startUnixNanoseconds: Int64 = 0
    /// The version of Retake, for the `take` row.
    package var toolVersion = ""
    /// The libraries and the CPU that exact replays depend on, for the `take` row.
    package var toolchain = Toolchain()
    /// Whether `record` waits when the queue is full, as drivers in virtual time need.
    package var waitsForDisk = false
    /// The maximum size of the queue in bytes; beyond it, the recording fails or `record` waits.
    package var queueLimit = 256 << 20
    /// Whether the caller keeps the file if the recording fails; the error then says what the file
    /// contains.
    package var staysIncomplete = true
    /// The maximum size of the file in pages of 8 KiB.
    package var pageLimit: Int64 = 0xffff_fffe
    package init() {}
  }

  /// The size of a finished take.
  package struct Summary: Hashable, Sendable {
    package var steps = 0
    package var packets = 0
    /// The size of the file in bytes.
    package var bytes = 0
    package init() {}
  }

  /// The steps that are waiting to be written, and the state of the recording.
  private struct Queue {
    var steps: [StepRecord] = []
    var names: [(actor: UInt32, words: ActorWords)] = []
    /// The actors that have no steps after the queued steps.
    var ended: [UInt32] = []
    var bytes = 0
    var actors: UInt32 = 0
    var peers: UInt32 = 0
    /// The number of `record` calls that are waiting for room.
    var waiting = 0
    var isFinishing = false
    var error: TapeError?
    var result: Result<Summary, TapeError>?
    /// The closures to call when the take is finished.
    var listeners: [@Sendable (Result<Summary, TapeError>) -> Void] = []
  }

  private let queue = Mutex(Queue())
  /// The file and a spare queue.
  ///
  /// Only one thread at a time uses them: first the thread that creates the file, then the thread
  /// that writes it.
  private let desk: Mutex<Desk>
  private let thread: WriterThread
  private let room = DispatchSemaphore(value: 0)
  private let path: String
  private let options: Options

  private struct Desk {
    let store: TapeStore
    var spare: [StepRecord] = []
    /// Whether writing failed; no further step may then be written, since the take would have a
    /// gap.
    var isBroken = false
    var isFinished = false
  }

  /// The number of queued bytes that causes an early write.
  ///
  /// Bytes that wait longer are no longer in the processor's caches.
  private static let hurry = 4 << 20

  /// Creates the file with mode 0600; it must not exist.
  package init(path: String, options: Options) throws(TapeError) {
    self.path = path
    self.options = options
    desk = Mutex(Desk(store: try TapeStore(path: path, options: options)))
    thread = WriterThread.next()
    thread.add(self)
  }

  /// Adds an endpoint before its first step; returns its numbers as an actor and as a peer.
  ///
  /// If all actors are endpoints, the two numbers are equal.
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

  /// Adds a machine that is not an endpoint before its first step; returns its actor number.
  package func addActor(_ kind: MachineKind, label: String) -> UInt32 {
    queue.withLock { queue in
      queue.actors += 1
      var words = ActorWords()
      (words.label, words.kind) = (label, kind)
      queue.names.append((queue.actors, words))
      return queue.actors
    }
  }

  /// Queues a step, without waiting for the disk unless the options require it.
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

  /// Declares that an actor has no more steps; its state is discarded after the queued steps are
  /// written.
  package func end(actor: UInt32) { queue.withLock { $0.ended.append(actor) } }

  /// The error that stopped the recording; nil if there was none so far.
  package var error: TapeError? { queue.withLock { $0.error } }

  /// Writes all queued steps and closes the file; throws if steps were lost.
  ///
  /// It waits for the disk. A later call returns the same result.
  package func finish() throws(TapeError) -> Summary {
    let done = DispatchSemaphore(value: 0)
    finish { _ in done.signal() }
    done.wait()
    return try queue.withLock { $0.result ?? .success(Summary()) }.get()
  }

  /// Finishes without waiting.
  ///
  /// The closure is called on the writer's thread, or immediately if the take is already finished.
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

  /// Writes all queued steps, usually on the writer's thread; returns false after the take is
  /// finished.
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
      // A driver that waits for the disk loses no steps, so frames can always be compressed.
      desk.store.isHurried = !options.waitsForDisk && bytes > options.queueLimit / 4
      if !desk.isBroken { desk.isBroken = !write(steps, to: desk.store) }
      for actor in ended { desk.store.forget(actor: actor) }
      // The next steps reuse the array's memory.
      steps.removeAll(keepingCapacity: true)
      desk.spare = steps
      if isLast { finish(desk.store) }
      desk.isFinished = isLast
      return !isLast
    }
  }

  /// Writes steps; returns false after an error, which is recorded.
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
          error.reason += "; the take has the first \(counted(store.summary.steps, "step"))"
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
  /// The approximate size of the step in the queue, in bytes of memory.
  fileprivate var approximateByteCount: Int { 200 + input.byteCount + outputs.byteCount }
}

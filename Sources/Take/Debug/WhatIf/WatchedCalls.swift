import Media
import Peer
import Tape
import Wire

/// Runs the receiving sides of an observer's calls again: their jitter buffers and decoders.
///
/// Media is decoded even if the recording did not decode it, so that outcomes can be compared.
struct WatchedCalls {
  /// The observer's number and name in the take.
  let number: UInt32
  let name: String
  private let machine: ObserverMachine
  private let buffer: Interval
  private var outcomes: [PeerOutcome] = []
  private var outbox = Outbox<ObserverOutput>()
  /// The time of the last input; it never decreases.
  private var at = Instant.zero
  private var isEnded = false

  /// - Parameters:
  ///   - buffer: the minimum delay of the changed jitter buffers.
  ///   - peer: the peer whose jitter buffers change; nil for all.
  init(
    number: UInt32, name: String, codecs: @escaping () -> any CodecFactory, buffer: Interval,
    peer: UInt32?
  ) {
    (self.number, self.name, self.buffer) = (number, name, buffer)
    machine = ObserverMachine(
      codecs: { _ in codecs() },
      minimumDelay: { peer == nil || peer == $0 ? buffer : .zero })
  }

  /// Handles a recorded input.
  mutating func step(_ input: ObserverInput, at instant: Instant) {
    var input = input
    switch input {
    case .genesis(var genesis):
      genesis.decodeAll()
      input = .genesis(genesis)
    case .deadline:
      // The stack's deadline may differ from the recorded one.
      guard let due = machine.deadline, due <= instant else { return }
    case .call(.end):
      drive(input, at: instant)
      return end(at: instant)
    default: break
    }
    drive(input, at: instant)
  }

  /// Serves deadlines that were not recorded.
  mutating func passTime(until instant: Instant, patience: Interval) {
    for _ in 0..<FreeRun.wakesMaximum {
      guard !isEnded, let due = machine.deadline, due + patience < instant else { return }
      drive(.deadline, at: due)
    }
  }

  /// Ends the run, and returns the outcome of each call's two peers.
  mutating func finish(at instant: Instant) -> [PeerOutcome] {
    end(at: instant)
    let reports = machine.stats(at: at)
    for index in outcomes.indices {
      let peer = outcomes[index].peer
      guard let stats = reports.first(where: { $0.peer == peer })?.report else { continue }
      outcomes[index].finish(at: instant, stats: stats)
    }
    return outcomes
  }

  /// Stores the statistics, and shows the frames that had arrived, so that the same frames count
  /// for any buffer size.
  private mutating func end(at instant: Instant) {
    guard !isEnded else { return }
    isEnded = true
    for report in machine.stats(at: max(at, instant)) {
      if let index = index(of: report.peer) { outcomes[index].sample(report.report) }
    }
    let last = instant + buffer + FreeRun.drain
    for _ in 0..<FreeRun.wakesMaximum {
      guard let due = machine.deadline, due <= last else { return }
      at = max(at, due)
      machine.step(.deadline, at: at, into: &outbox)
      while let output = outbox.next() {
        guard case .followed(.event(let event), let shown) = output.content,
          let index = output.peers?.first.flatMap(index)
        else { continue }
        outcomes[index].countLate(.event(event), at: shown)
      }
    }
  }

  private mutating func drive(_ input: ObserverInput, at instant: Instant) {
    at = max(at, instant)
    machine.step(input, at: at, into: &outbox)
    while let output = outbox.next() {
      if let peers = output.peers {
        for (peer, label) in zip(peers, output.labels) where index(of: peer) == nil {
          outcomes.append(PeerOutcome(peer: peer, label: label, isObserved: true))
        }
      }
      guard case .followed(.event(let event), let shown) = output.content,
        let index = output.peers?.first.flatMap(index)
      else { continue }
      outcomes[index].record(.event(event), at: shown)
    }
  }

  private func index(of peer: UInt32) -> Int? { outcomes.firstIndex { $0.peer == peer } }
}

import ICE
import JSEP
import Wire

/// Whether a connection is established: exchange complete, ICE connected and all local candidates
/// known.
public enum EstablishmentState: String, Hashable, Sendable {
  /// No description was set.
  case new
  /// The conditions do not hold yet.
  case establishing
  /// The conditions held once; later states do not change that.
  case established
  /// The conditions did not hold in time; they may later.
  case timedOut = "timed-out"
  /// The connection was closed.
  case closed
}

/// Whether a connection was established: one answer for applications that set up calls.
///
/// It is established when the offer/answer exchange is complete, ICE is connected or completed and
/// all local candidates are known. A call that does not get there in time has failed for its user,
/// whatever the individual states.
struct Establishment {
  private var state = EstablishmentState.new
  /// When the time limit is reached; nil before the first description and once the result is known.
  private(set) var deadline: Instant?
  /// The time limit; nil for none.
  private let limit: Interval?
  private let needsAllCandidates: Bool

  init(_ configuration: PeerConfiguration) {
    let milliseconds = Int64(configuration.establishmentTimeoutMilliseconds)
    limit = milliseconds > 0 ? .milliseconds(milliseconds) : nil
    needsAllCandidates = configuration.establishmentNeedsAllCandidates
  }

  /// Follows the other states at the end of every step; returns the states that it passes through.
  mutating func follow(
    _ states: ConnectionStates, isClosed: Bool, at now: Instant
  ) -> [EstablishmentState] {
    let before = state
    if isClosed {
      deadline = nil
      state = .closed
      return before == .closed ? [] : [.closed]
    }
    if state == .new, states.signaling != .stable {
      deadline = limit.map { now + $0 }
      state = .establishing
    }
    let begun = state
    if state == .establishing || state == .timedOut { settle(states, at: now) }
    if state == before { return [] }
    return begun == before || begun == state ? [state] : [begun, state]
  }

  private mutating func settle(_ states: ConnectionStates, at now: Instant) {
    if isEstablished(states) {
      deadline = nil
      state = .established
    } else if let deadline, deadline <= now {
      self.deadline = nil
      state = .timedOut
    }
  }

  private func isEstablished(_ states: ConnectionStates) -> Bool {
    states.signaling == .stable
      && (states.iceConnection == .connected || states.iceConnection == .completed)
      && (states.iceGathering == .complete || !needsAllCandidates)
  }
}

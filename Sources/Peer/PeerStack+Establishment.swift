import Wire

/// Whether a call came about, as applications that set up calls ask: one answer per connection.
///
/// It is established when the offer/answer exchange is over, ICE is connected or completed and all
/// local candidates are known; a call that does not get there in time has failed for its user,
/// whatever the single states say.
struct Establishment {
  /// When the time is over; nil before the first description and once the answer is known.
  var deadline: Instant?
}

extension PeerStack {
  /// Follows the other states; comes after them in every step.
  func settleEstablishment() {
    if isClosed {
      establishment.deadline = nil
      change(.establishment, to: "closed")
      return
    }
    if states.establishment == "new", states.signaling != "stable" {
      let limit = genesis.configuration.establishmentTimeoutMilliseconds
      if limit > 0 { establishment.deadline = now + .milliseconds(Int64(limit)) }
      change(.establishment, to: "establishing")
    }
    guard states.establishment == "establishing" || states.establishment == "timed-out" else {
      return
    }
    if isEstablished {
      establishment.deadline = nil
      change(.establishment, to: "established")
    } else if let deadline = establishment.deadline, deadline <= now {
      establishment.deadline = nil
      change(.establishment, to: "timed-out")
    }
  }

  private var isEstablished: Bool {
    states.signaling == "stable"
      && (states.iceConnection == "connected" || states.iceConnection == "completed")
      && (states.iceGathering == "complete"
        || !genesis.configuration.establishmentNeedsAllCandidates)
  }
}

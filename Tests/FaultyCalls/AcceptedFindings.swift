/// Which findings name which fault: the judge goes by their ids alone.
package enum AcceptedFindings {
  /// The ids of findings that name a fault.
  package static func of(_ kind: FaultKind) -> Set<String> {
    switch kind {
    case .audioLoss, .videoLoss, .loss: ["loss", "loss-at-peer"]
    case .lossBurst: ["loss-burst", "loss", "loss-at-peer"]
    case .mediaDeadOneWay: ["one-way-media", "stream-gap"]
    default: []
    }
  }
}

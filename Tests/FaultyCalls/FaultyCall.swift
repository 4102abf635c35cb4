import JSEP
package import Lab
package import Media
import Peer
import SDP
package import Tape
import Wire

/// A call that was made with one fault, and what the fault came to.
package struct MadeCall: Sendable {
  /// How badly it was, in words.
  package var severity: String
  /// Whether the fault touched as much as a rule needs to see it.
  package var isTouched: Bool
}

/// Makes calls with one fault each.
package struct FaultyCall {
  let plan: FaultPlan
  let chance: Chance
  var setup: CallSetup
  /// How badly, in words.
  var words = ""
  /// What the fault is judged by when the call is over.
  var isTouched: (DrivenCall) -> Bool = { _ in true }
  /// What is changed in the take of a fault that no call in virtual time can have.
  var change: (String) throws(TapeError) -> Void = { _ throws(TapeError) in }
  /// What is done when the call has begun.
  var arrange: (DrivenCall) -> Void = { _ in }
  /// How long the call lasts, in milliseconds.
  var length: Int

  /// Makes the call of a plan into a take.
  package static func make(_ plan: FaultPlan, path: String) throws(TapeError) -> MadeCall {
    var faulty = FaultyCall(plan)
    faulty.prepare()
    let driven = try DrivenCall(
      path: path, seed: plan.seed, setup: faulty.setup, chance: faulty.chance)
    faulty.arrange(driven)
    driven.begin()
    driven.run(until: faulty.length)
    try driven.finish()
    try faulty.change(path)
    return MadeCall(severity: faulty.words, isTouched: faulty.isTouched(driven))
  }

  private init(_ plan: FaultPlan) {
    self.plan = plan
    chance = Chance(plan.seed, "call \(plan.kind.rawValue)")
    setup = CallSetup(chance)
    setup.recorded = plan.recorded
    // A pause at the end, in which reports come.
    length = plan.from + plan.length + chance.within(3_000...6_000)
    // In one of three calls nobody has a camera, where the fault needs none.
    if !plan.kind.needsVideo, chance.isOne(in: 3) { setup.cameras = [false, false] }
  }

  private mutating func prepare() {
    if preparePath() || prepareConnection() || prepareMedia() || prepareBoxes()
      || prepareAgreements() || prepareDevices()
    {
      return
    }
    prepareClocks()
  }

  /// Whether an instant is within the time of the fault.
  func isOn(_ now: Instant) -> Bool {
    let milliseconds = Int(now.nanoseconds / 1_000_000)
    return milliseconds >= plan.from && milliseconds < plan.from + plan.length
  }

  /// Drops what a peer sends of some contents, so many of a thousand, while the fault lasts.
  mutating func lose(_ contents: [Middlebox.Content], perMille: Int, minimum: Int, share: Int = 20)
  {
    let (plan, chance) = (plan, chance)
    arrange = { driven in
      driven.box.treat = { sender, content, _, now in
        let milliseconds = Int(now.nanoseconds / 1_000_000)
        guard sender == plan.culprit, contents.contains(content), milliseconds >= plan.from,
          milliseconds < plan.from + plan.length
        else {
          if sender == plan.culprit, contents.contains(content) { driven.box.seen += 1 }
          return nil
        }
        driven.box.seen += 1
        guard chance.happens(perMille: perMille) else { return nil }
        driven.box.touched += 1
        return []
      }
    }
    isTouched = { $0.box.touched >= minimum && $0.box.touched * 1_000 >= $0.box.seen * share }
  }
}

extension FaultKind {
  /// Whether the fault is one of video, or shows in it alone.
  var needsVideo: Bool {
    switch self {
    case .videoLoss, .repairsLost, .bottleneck, .rejectedSection, .inactiveDirection, .noRepairs,
      .cameraStops, .cameraRepeats, .cameraBlack, .bandwidthLine, .maxBitrate, .layerEnds,
      .codecChanges, .slowProcessor, .audioVideoApart, .requestsUnanswered, .largePacketsLost,
      .wrongMapping, .tinyBitrate, .encoderStops:
      true
    default: false
    }
  }
}

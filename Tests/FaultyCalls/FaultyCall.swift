import JSEP
import Lab
import Media
import Peer
import SDP
package import Tape
import Wire

/// A call made with one fault, and its result.
package struct MadeCall: Sendable {
  /// The fault in words, such as `ice-pwd other than its peer's`.
  package var severity: String
  /// Whether the fault affected the call enough for a rule to detect it.
  package var isTouched: Bool
}

/// Makes calls with one fault each.
package struct FaultyCall {
  let plan: FaultPlan
  let chance: Chance
  var setup: CallSetup
  /// The fault in words, such as `ice-pwd other than its peer's`.
  var words = ""
  /// Returns, after the call, whether the fault took effect.
  var isTouched: (DrivenCall) -> Bool = { _ in true }
  /// Changes the finished take, for a fault that cannot occur in virtual time.
  var change: (String) throws(TapeError) -> Void = { _ throws(TapeError) in }
  /// Runs when the call has started.
  var arrange: (DrivenCall) -> Void = { _ in }
  /// The call's duration, in milliseconds.
  var length: Int

  /// Makes a planned call and records it into a take.
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
    // A pause at the end, in which reports arrive.
    length = plan.from + plan.length + chance.within(3_000...6_000)
    // One call in three has no cameras, if the fault does not need them.
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

  /// Returns whether the fault is active at an instant.
  func isOn(_ now: Instant) -> Bool {
    let milliseconds = Int(now.nanoseconds / 1_000_000)
    return milliseconds >= plan.from && milliseconds < plan.from + plan.length
  }

  /// While the fault lasts, drops a share of the culprit's packets that have one of the given
  /// contents.
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
  /// Whether the fault affects video, or is visible only in video.
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

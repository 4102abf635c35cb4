package import RTP

/// Owns which temporal layer each video frame is of, and what it refers to: the base layer alone,
/// but for each second frame of the third layer, which refers to the middle one as well.
package struct TemporalPattern: Hashable, Sendable {
  /// What the encoder of a video frame has to keep to.
  package struct Step: Hashable, Sendable {
    /// The layer; 0 is the base.
    package var layer: UInt8
    /// Whether it refers to the last frame of the middle layer too.
    package var refersToMiddle: Bool
    /// Whether later frames refer to it: to what is kept of its layer.
    package var isKept: Bool
  }

  /// How many layers there may be.
  package static let counts = 1...3

  private let steps: [Step]
  private var place = 0

  /// - Parameter count: how many layers: 2 halve the rate of frames with each, or 3.
  package init(count: Int) {
    let base = Step(layer: 0, refersToMiddle: false, isKept: true)
    let top = UInt8(max(1, count - 1))
    let free = Step(layer: top, refersToMiddle: false, isKept: false)
    steps =
      count < 3
      ? [base, free]
      : [
        base, free, Step(layer: 1, refersToMiddle: false, isKept: true),
        Step(layer: top, refersToMiddle: true, isKept: false),
      ]
  }

  /// The step of the next frame; a key frame is of the base layer.
  package func next(isKey: Bool) -> Step { isKey ? steps[0] : steps[place] }

  /// Records a frame that was encoded by a step; returns its layer.
  package mutating func take(_ step: Step, isKey: Bool) -> TemporalLayer {
    // The pattern begins anew with a key frame, also with one that the encoder made by itself.
    place = isKey ? 1 : (place + 1) % steps.count
    if isKey { return TemporalLayer(id: 0, isSync: true, isReference: true) }
    return TemporalLayer(
      id: step.layer, isSync: step.layer > 0 && !step.refersToMiddle, isReference: step.isKept)
  }
}

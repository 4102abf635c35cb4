package import RTP

/// Assigns video frames to temporal layers with their references: the base layer only, except that
/// every second frame of the third layer also refers to the middle one.
package struct TemporalPattern: Hashable, Sendable {
  /// How to encode one frame.
  package struct Step: Hashable, Sendable {
    /// The layer; 0 is the base.
    package var layer: UInt8
    /// Whether it also refers to the last frame of the middle layer.
    package var refersToMiddle: Bool
    /// Whether later frames refer to it.
    package var isKept: Bool
  }

  /// The supported numbers of layers.
  package static let counts = 1...3

  private let steps: [Step]
  private var place = 0

  /// - Parameter count: the number of layers, each doubling the frame rate: 2 or 3.
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

  /// Returns the step of the next frame; a key frame is on the base layer.
  package func next(isKey: Bool) -> Step { isKey ? steps[0] : steps[place] }

  /// Records an encoded frame; returns its layer.
  package mutating func record(_ step: Step, isKey: Bool) -> TemporalLayer {
    // The pattern restarts with every key frame, including those the encoder decides on.
    place = isKey ? 1 : (place + 1) % steps.count
    if isKey { return TemporalLayer(id: 0, isSync: true, isReference: true) }
    return TemporalLayer(
      id: step.layer, isSync: step.layer > 0 && !step.refersToMiddle, isReference: step.isKept)
  }
}

/// The temporal layer of a video frame; frames of upper layers can be dropped.
package struct TemporalLayer: Hashable, Sendable {
  /// 0 for the base layer.
  package var id: UInt8
  /// Whether the frame refers only to the base layer, so that a receiver may switch up here.
  package var isSync: Bool
  /// Whether other frames refer to it.
  package var isReference: Bool

  package init(id: UInt8, isSync: Bool, isReference: Bool) {
    self.id = id
    self.isSync = isSync
    self.isReference = isReference
  }
}

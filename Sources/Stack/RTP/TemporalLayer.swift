/// Which temporal layer a video frame is of: those of upper layers can be left out.
package struct TemporalLayer: Hashable, Sendable {
  /// 0 for the base layer.
  package var id: UInt8
  /// Whether the frame refers to the base layer alone, so that who goes up to its layer may begin
  /// with it.
  package var isSync: Bool
  /// Whether other frames refer to it.
  package var isReference: Bool

  package init(id: UInt8, isSync: Bool, isReference: Bool) {
    self.id = id
    self.isSync = isSync
    self.isReference = isReference
  }
}

import SDP

/// An m-section of the session, whose index never changes.
struct SectionSlot: Hashable {
  var kind: SectionKind
  /// The section's MID, generated if the peer stated none.
  var mid: String
  /// Whether descriptions state the MID.
  var midIsSignaled = true
  var transceiverID: UInt32?
  /// Whether the section carries data channels.
  var isData = false
  /// Whether the section is off, so that its index may be reused.
  var isDead = false
  /// The number of the section's transport; bundled sections share one.
  var transportNumber = 0
  /// The protocol and formats of the `m=` line, repeated while the section is off.
  var transport: String
  var formats: [String]
}

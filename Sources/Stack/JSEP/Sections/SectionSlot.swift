import SDP

/// The place of an m-section in the session, which it keeps for good.
struct SectionSlot: Hashable {
  var kind: SectionKind
  /// The section's mid, made up when the peer gave none.
  var mid: String
  /// Whether descriptions state the mid.
  var midIsSignaled = true
  var transceiverID: UInt32?
  /// Whether the section carries the association of data channels.
  var isData = false
  /// Whether the last exchange rejected the section: only then may another take its place.
  var isDead = false
  /// The transport that carries the section; bundled ones share theirs.
  var transportNumber = 0
  /// The `m=` line's protocol and formats, repeated while the section is off.
  var transport: String
  var formats: [String]
}

import Stats

/// What the rows of an endpoint need of its steps before.
final class EndpointNotes: ActorNotes {
  /// The number of the header extension that counts packets over all streams of the transport.
  var transportSequenceID: UInt8 = 0
  var meter = LevelMeter()
  var calls = CallMemory()

  /// The members of each stats object as they were last written.
  private var samples: [String: String] = [:]
  /// The objects of the last whole report, in its order.
  private var reported: [String] = []

  /// Whether a stats object differs from the one that the peer's last report had under its name.
  func isNews(_ id: String, _ members: String) -> Bool {
    samples.updateValue(members, forKey: id) != members
  }

  /// The objects of the peer's last whole report that the present one no longer has.
  func gone(_ report: StatsReport) -> [String] {
    let present = report.objects.map(\.id)
    let known = Set(present)
    let gone = reported.filter { !known.contains($0) }
    reported = present
    // An object that comes back is news again, whatever it says.
    for id in gone { samples[id] = nil }
    return gone
  }
}

package import Wire

extension TakeSummary {
  /// The numbers by which calls of a folder are told apart, under the names of a catalogue.
  ///
  /// Each is that of the worst stream or connection; what the take cannot tell is left out.
  package var facts: JSONText {
    var codecs: [String] = []
    for one in media where !one.codec.isEmpty && !codecs.contains(one.codec) {
      codecs.append(one.codec)
    }
    var found: [String] = []
    for id in findings.findings.flatMap(\.ids) where !found.contains(id) { found.append(id) }
    let isRelayed = connections.contains { one in
      one.pair.map { $0.localType == "relay" || $0.remoteType == "relay" } ?? false
    }
    let frozen = media.reduce(0) { $0 + $1.frozenSeconds }
    func worst(_ values: [Double?], by unit: Double) -> JSONText? {
      values.compactMap { $0 }.max().map { .number(($0 * unit).rounded() / unit) }
    }
    return .object([
      ("codecs", .list(codecs.map { .text($0) })), ("findings", .list(found.map { .text($0) })),
      ("relay", .flag(isRelayed)),
      ("loss_share", worst(media.map { Optional($0.lossShare) }, by: 1e4)),
      ("concealed_share", worst(media.map(\.concealedShare), by: 1e4)),
      ("round_trip_ms", worst(connections.map { $0.roundTrip?.median }, by: 10)),
      ("frozen_ns", .integer(Int64(saturating: frozen * 1e9))),
    ])
  }
}

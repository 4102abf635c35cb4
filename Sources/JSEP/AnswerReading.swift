import SDP
import Wire

/// What a remote answer to an own offer means; refused when it does not fit the offer.
struct AnswerReading {
  /// nil when the answer rejects every section.
  var transport: TransportReading?

  /// Checks an answer against its offer (RFC 3264 section 6, RFC 9429 section 5.11).
  init(_ answer: SDPDocument, to offer: SDPDocument) throws(JSEPError) {
    guard answer.sections.count == offer.sections.count else {
      let line = answer.line(ofSection: min(answer.sections.count, offer.sections.count))
      throw JSEPError(
        .invalidAccess,
        "line \(line): the answer has \(answer.sections.count) m-sections, the offer"
          + " \(offer.sections.count)")
    }
    var accepted: [Int] = []
    for (index, section) in answer.sections.enumerated() {
      let offered = offer.sections[index]
      let place = JSEPError.place(in: answer, at: index)
      guard section.kind == offered.kind, section.mid == nil || section.mid == offered.mid else {
        throw JSEPError(
          .invalidAccess, "\(place) answers \(JSEPError.place(of: offered, at: index))")
      }
      if section.kind == .application, section.port != 0, !offered.isRejected {
        guard section.carriesData else {
          throw JSEPError(.invalidAccess, "\(place) accepts no data channels")
        }
        accepted.append(index)
        continue
      }
      guard section.port != 0, !offered.isRejected, let kind = section.kind.mediaKind else {
        continue
      }
      guard section.multiplexesRTCP else {
        throw JSEPError(.invalidAccess, "\(place) has no a=rtcp-mux")
      }
      let media = SectionMedia.agreed(
        offer: SectionMedia(reading: offered, kind: kind),
        answer: SectionMedia(reading: section, kind: kind), peerAnswered: true)
      guard !media.codecs.isEmpty else {
        throw JSEPError(.invalidAccess, "\(place) accepts no codec of the offer")
      }
      accepted.append(index)
    }
    guard let first = accepted.first else { return }
    try AnswerReading.checkBundle(answer, offer, accepted)
    transport = try TransportReading(answer, section: first, bundle: accepted)
    guard transport?.setup != .actpass else {
      let place = JSEPError.place(in: answer, at: first)
      throw JSEPError(.invalidAccess, "\(place) answers with a=setup:actpass")
    }
  }

  /// There is one transport, so an answer with several sections must bundle them all.
  private static func checkBundle(
    _ answer: SDPDocument, _ offer: SDPDocument, _ accepted: [Int]
  ) throws(JSEPError) {
    guard accepted.count > 1 else { return }
    let mids = accepted.map { answer.sections[$0].mid ?? offer.sections[$0].mid ?? "" }
    let group = Set(answer.bundles.first { $0.contains(mids[0]) } ?? [])
    for (index, mid) in zip(accepted, mids) where !group.contains(mid) {
      let place = JSEPError.place(in: answer, at: index)
      throw JSEPError(.invalidAccess, "\(place) is not bundled with the others")
    }
  }
}

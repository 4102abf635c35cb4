import SDP
import Wire

/// A remote answer to a local offer, parsed and checked against the offer.
struct AnswerReading {
  /// The transport number of every section that the answer accepts.
  var numbers: [Int?]
  /// The peer's side of those transports, in the order of their first sections.
  var transports: [(number: Int, reading: TransportReading)] = []

  /// Checks an answer against its offer (RFC 3264 section 6, RFC 9429 section 5.11).
  ///
  /// - Parameter slots: the sections of the offer with their transports.
  init(
    _ answer: SDPDocument, to offer: SDPDocument, _ slots: [SectionSlot],
    _ capabilities: Capabilities
  ) throws(JSEPError) {
    numbers = [Int?](repeating: nil, count: slots.count)
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
      try answer.checkMultiplexing(index)
      let media = SectionMedia.agreed(
        offer: SectionMedia(reading: offered, kind: kind, capabilities),
        answer: SectionMedia(reading: section, kind: kind, capabilities), peerAnswered: true)
      guard media.carriesMedia else {
        throw JSEPError(.invalidAccess, "\(place) accepts no codec of the offer")
      }
      accepted.append(index)
    }
    for group in AnswerReading.groups(answer, offer, accepted) {
      let number = slots[group[0]].transportNumber
      let place = JSEPError.place(in: answer, at: group[0])
      // A section offered without its own transport has to share another one's.
      guard !transports.contains(where: { $0.number == number }) else {
        throw JSEPError(.invalidAccess, "\(place) is not bundled with the others")
      }
      let reading = try TransportReading(answer, section: group[0], bundle: group)
      guard reading.setup != .actpass else {
        throw JSEPError(.invalidAccess, "\(place) answers with a=setup:actpass")
      }
      transports.append((number, reading))
      for index in group { numbers[index] = number }
    }
  }

  /// Groups the accepted sections by the transport they share (RFC 9143 section 7.4).
  private static func groups(
    _ answer: SDPDocument, _ offer: SDPDocument, _ accepted: [Int]
  ) -> [[Int]] {
    let bundles = answer.bundles.map { Set($0) }
    var groups: [(bundle: Int?, members: [Int])] = []
    for index in accepted {
      let mid = answer.sections[index].mid ?? offer.sections[index].mid ?? ""
      let bundle = bundles.firstIndex { $0.contains(mid) }
      if bundle != nil, let place = groups.firstIndex(where: { $0.bundle == bundle }) {
        groups[place].members.append(index)
      } else {
        groups.append((bundle, [index]))
      }
    }
    return groups.map(\.members)
  }
}

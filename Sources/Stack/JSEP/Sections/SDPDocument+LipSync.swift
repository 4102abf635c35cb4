import SDP

/// Lip synchronisation groups of local descriptions (RFC 5888 section 7).
extension SDPDocument {
  /// The MIDs of sections that send tracks of the same MediaStream, for every stream with several
  /// (RFC 9429 section 5.2.1).
  var commonStreams: [[String]] {
    var found: [(stream: String, senders: [String])] = []
    for section in sections where !section.isRejected {
      guard let mid = section.mid else { continue }
      for stream in section.msids.map(\.streamID) where stream != "-" {
        if let place = found.firstIndex(where: { $0.stream == stream }) {
          found[place].senders.append(mid)
        } else {
          found.append((stream, [mid]))
        }
      }
    }
    var common: [[String]] = []
    for (_, senders) in found where senders.count > 1 && !common.contains(senders) {
      common.append(senders)
    }
    return common
  }

  /// The groups of an answer: those of the offer whose local tracks share a stream too (RFC 9429
  /// section 5.3.1).
  func lipSync(answering offer: SDPDocument) -> [SectionGroup] {
    let common = commonStreams
    return offer.groups.filter { $0.semantics == "LS" }.compactMap { offered in
      let shared = common.lazy.map { $0.filter(offered.mids.contains) }.first { $0.count > 1 }
      return shared.map(SectionGroup.lipSync)
    }
  }
}

import Wire

extension Negotiation {
  /// Sets which codecs a transceiver negotiates and in which order (W3C setCodecPreferences); none
  /// returns to the defaults.
  ///
  /// The retransmission format is used when the list has it, wherever it stands.
  package mutating func setCodecPreferences(_ codecs: [RTPCodec], of transceiver: UInt32)
    throws(JSEPError)
  {
    let index = try liveIndex(of: transceiver)
    let known = RTPCodec.capabilities(transceivers[index].kind, of: capabilities)
    var preferences: [RTPCodec] = []
    for codec in codecs {
      guard let match = known.first(where: { $0.isSame(as: codec) }) else {
        throw JSEPError(
          .invalidModification,
          "\(codec.mimeType) is not among the codecs that a transceiver for"
            + " \(transceivers[index].kind.rawValue) supports")
      }
      if !preferences.contains(match) { preferences.append(match) }
    }
    guard codecs.isEmpty || preferences.contains(where: { !$0.isRetransmission }) else {
      throw JSEPError(.invalidModification, "the preferences name no codec for media")
    }
    transceivers[index].codecPreferences = preferences
  }
}

extension SectionMedia {
  /// The codecs that are preferred, in that order.
  ///
  /// Without a preference they are all that there are in the order of the description; but what can
  /// only be passed through comes after what can be looked at.
  func preferring(_ preferences: [RTPCodec]) -> SectionMedia {
    var media = self
    guard !preferences.isEmpty else {
      media.codecs = codecs.filter { !$0.isPassedThrough } + codecs.filter(\.isPassedThrough)
      return media
    }
    let repairs = preferences.contains { $0.isRetransmission }
    media.codecs = preferences.compactMap { preferred in
      guard let format = preferred.format,
        var codec = codecs.first(where: { $0.format == format })
      else { return nil }
      if !repairs { codec.rtxPayloadType = nil }
      return codec
    }
    return media
  }
}

import SDP
import Wire

/// What both sides agreed on for data channels: one SCTP association over DTLS (RFC 8841).
package struct NegotiatedData: Hashable, Sendable {
  /// The m-section.
  package var mid: String
  /// The number of the transport that carries it.
  package var transport: Int
  /// The peer's SCTP port.
  package var remotePort: UInt16
  /// The largest message that the peer takes, in bytes; 0 for any size (RFC 8841 section 6.1).
  package var remoteMaximumMessageSize: UInt64

  package init(
    mid: String, transport: Int = 0, remotePort: UInt16, remoteMaximumMessageSize: UInt64
  ) {
    self.mid = mid
    self.transport = transport
    self.remotePort = remotePort
    self.remoteMaximumMessageSize = remoteMaximumMessageSize
  }
}

/// The m-section of data channels in own descriptions, and what is read from the peer's.
package enum DataSection {
  /// The own SCTP port; that of everybody.
  package static let port: UInt16 = 5000
  /// The largest message that own descriptions allow the peer to send, in bytes.
  package static let maximumMessageSize = 1 << 20
  /// What a peer takes that does not say it, in bytes (RFC 8841 section 6.1).
  package static let defaultMaximumMessageSize: UInt64 = 65_536

  static let profile = "UDP/DTLS/SCTP"
  static let format = "webrtc-datachannel"
  /// The profiles of RFC 8841 section 4.1.
  static let profiles = [profile, "TCP/DTLS/SCTP"]

  /// The lines of an own section.
  ///
  /// - Parameter isLeftToBundle: whether a peer that does not know BUNDLE must reject the section
  ///   (RFC 9143 section 6).
  static func section(
    mid: String?, profile: String, transport own: LocalTransport, setup: SetupRole,
    isLeftToBundle: Bool = false
  ) -> SDPSection {
    var section = SDPSection(
      kind: .application, port: isLeftToBundle ? 0 : LocalSection.unknownPort, transport: profile,
      formats: [format])
    section.connection = .unknown
    section.append(own, setup)
    if let mid { section.append(SDPLine(.mid, mid)) }
    if isLeftToBundle { section.append(.bundleOnly) }
    section.append(SDPLine(.sctpPort, String(port)))
    section.append(SDPLine(.maximumMessageSize, String(maximumMessageSize)))
    return section
  }
}

extension SDPSection {
  /// Whether the section offers or accepts data channels.
  ///
  /// A port of 0 says that there is no association (RFC 8841 section 5.2); a section without one
  /// means the usual port, as in browsers.
  var carriesData: Bool {
    kind == .application && DataSection.profiles.contains(transport)
      && formats.contains(DataSection.format) && sctpPort != 0
  }

  /// What the peer's section means for an association.
  func agreedData(_ slot: SectionSlot) -> NegotiatedData {
    NegotiatedData(
      mid: slot.mid, transport: slot.transportNumber, remotePort: sctpPort ?? DataSection.port,
      remoteMaximumMessageSize: maximumMessageSize ?? DataSection.defaultMaximumMessageSize)
  }
}

extension Negotiation {
  /// Asks that the session has data channels; negotiation is needed unless it has (W3C
  /// createDataChannel).
  package mutating func wantData() { wantsData = true }

  /// Whether an association is agreed on, or is part of an exchange under way.
  package var mayHaveData: Bool { data != nil || slots.contains { $0.isData && !$0.isDead } }

  /// The section that the next offer needs because an association is wanted that has none.
  func plannedDataSlot(in slots: [SectionSlot], besides mids: Set<String>) -> SectionSlot? {
    guard wantsData, !slots.contains(where: { $0.isData && !$0.isDead }) else { return nil }
    var slot = SectionSlot(
      kind: .application, mid: freeMID(besides: mids), transport: DataSection.profile,
      formats: [DataSection.format])
    slot.isData = true
    return slot
  }

  /// Takes over what an exchange says about the section of the association.
  mutating func settleData(
    _ index: Int, offered: SDPSection, answered: SDPSection, peer: SDPSection
  ) {
    guard answered.port != 0, !offered.isRejected, answered.carriesData else {
      slots[index].isDead = true
      slots[index].isData = false
      // Whoever opens another channel asks again.
      wantsData = false
      return
    }
    data = peer.agreedData(slots[index])
  }
}

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

/// The m-section of data channels in local descriptions, and what is read from the peer's.
package enum DataSection {
  /// The local SCTP port; that of everybody.
  package static let port: UInt16 = 5000
  /// The largest message that local descriptions allow the peer to send, in bytes.
  package static let maximumMessageSize = 1 << 20
  /// What a peer takes that does not say it, in bytes (RFC 8841 section 6.1).
  package static let defaultMaximumMessageSize: UInt64 = 65_536

  static let profile = "UDP/DTLS/SCTP"
  static let format = "webrtc-datachannel"
  /// The profiles of RFC 8841 section 4.1.
  static let profiles = [profile, "TCP/DTLS/SCTP"]
  /// The profile of before RFC 8841, whose format is the SCTP port.
  static let formerProfile = "DTLS/SCTP"
  /// How many streams the older form states: as many as browsers did.
  private static let formerStreams: UInt32 = 1024

  /// The lines of a local section.
  /// - Parameters:
  ///   - formats: those of the peer's section, which tell its form; a local section has the same.
  ///   - isLeftToBundle: whether a peer that does not know BUNDLE must reject the section (RFC 9143
  ///     section 6).
  static func section(
    mid: String?, profile: String, formats: [String], transport own: LocalTransport,
    setup: SetupRole, isLeftToBundle: Bool = false
  ) -> SDPSection {
    let isFormer = !formats.contains(format)
    var section = SDPSection(
      kind: .application, port: isLeftToBundle ? 0 : LocalSection.unknownPort, transport: profile,
      formats: [isFormer ? String(port) : format])
    section.connection = .unknown
    section.append(own, setup)
    if let mid { section.append(SDPLine(.mid, mid)) }
    if isLeftToBundle { section.append(.bundleOnly) }
    if isFormer {
      section.append(SCTPMap(port: port, application: format, streams: formerStreams))
    } else {
      section.append(SDPLine(.sctpPort, String(port)))
    }
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
    guard kind == .application else { return false }
    if formats.contains(DataSection.format) {
      return DataSection.profiles.contains(transport) && sctpPort != 0
    }
    return formerDataPort ?? 0 != 0
  }

  /// The SCTP port in the form of before RFC 8841: the format, which a line may explain.
  private var formerDataPort: UInt16? {
    guard transport == DataSection.formerProfile || DataSection.profiles.contains(transport),
      let port = formats.first.flatMap({ UInt16(decimal: $0) })
    else { return nil }
    let map = values(SCTPMap.self).first { $0.port == port }
    guard let map else { return transport == DataSection.formerProfile ? port : nil }
    return map.application == DataSection.format ? port : nil
  }

  /// What the peer's section means for an association.
  func agreedData(_ slot: SectionSlot) -> NegotiatedData {
    NegotiatedData(
      mid: slot.mid, transport: slot.transportNumber,
      remotePort: sctpPort ?? formerDataPort ?? DataSection.port,
      remoteMaximumMessageSize: maximumMessageSize ?? DataSection.defaultMaximumMessageSize)
  }
}

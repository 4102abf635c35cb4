import SDP
import Wire

/// The negotiated data channel transport: one SCTP association over DTLS (RFC 8841).
package struct NegotiatedData: Hashable, Sendable {
  package var mid: String
  /// The number of its transport.
  package var transport: Int
  package var remotePort: UInt16
  /// The largest message that the peer accepts, in bytes; 0 for any size (RFC 8841 section 6.1).
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

/// Writes the m-section of data channels, and parses the peer's.
package enum DataSection {
  /// The local SCTP port, the same in all stacks.
  package static let port: UInt16 = 5000
  /// The largest message that local descriptions allow, in bytes.
  package static let maximumMessageSize = 1 << 20
  /// The default if the peer states no limit, in bytes (RFC 8841 section 6.1).
  package static let defaultMaximumMessageSize: UInt64 = 65_536

  static let profile = "UDP/DTLS/SCTP"
  static let format = "webrtc-datachannel"
  /// The profiles of RFC 8841 section 4.1.
  static let profiles = [profile, "TCP/DTLS/SCTP"]
  /// The profile from before RFC 8841, whose format is the SCTP port.
  static let formerProfile = "DTLS/SCTP"
  /// The number of streams in the older form, as browsers stated it.
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
  /// Port 0 means no association (RFC 8841 section 5.2); without a port it is the default, as in
  /// browsers.
  var carriesData: Bool {
    guard kind == .application else { return false }
    if formats.contains(DataSection.format) {
      return DataSection.profiles.contains(transport) && sctpPort != 0
    }
    return formerDataPort ?? 0 != 0
  }

  /// The SCTP port in the form from before RFC 8841: the format, or what `sctpmap` says of it.
  private var formerDataPort: UInt16? {
    guard transport == DataSection.formerProfile || DataSection.profiles.contains(transport),
      let port = formats.first.flatMap({ UInt16(decimal: $0) })
    else { return nil }
    let map = values(SCTPMap.self).first { $0.port == port }
    guard let map else { return transport == DataSection.formerProfile ? port : nil }
    return map.application == DataSection.format ? port : nil
  }

  /// Returns the association that the peer's section describes.
  func agreedData(_ slot: SectionSlot) -> NegotiatedData {
    NegotiatedData(
      mid: slot.mid, transport: slot.transportNumber,
      remotePort: sctpPort ?? formerDataPort ?? DataSection.port,
      remoteMaximumMessageSize: maximumMessageSize ?? DataSection.defaultMaximumMessageSize)
  }
}

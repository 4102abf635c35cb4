/// The name of an attribute; names that are not listed here survive as they are.
package struct AttributeName: RawRepresentable, Hashable, Sendable {
  package var rawValue: String

  package init(rawValue: String) { self.rawValue = rawValue }

  // Grouping and identification.
  package static let group = AttributeName(rawValue: "group")
  package static let mid = AttributeName(rawValue: "mid")
  package static let bundleOnly = AttributeName(rawValue: "bundle-only")
  package static let msid = AttributeName(rawValue: "msid")
  package static let msidSemantic = AttributeName(rawValue: "msid-semantic")

  // ICE (RFC 8839, 8840).
  package static let iceUsernameFragment = AttributeName(rawValue: "ice-ufrag")
  package static let icePassword = AttributeName(rawValue: "ice-pwd")
  package static let iceOptions = AttributeName(rawValue: "ice-options")
  package static let iceLite = AttributeName(rawValue: "ice-lite")
  package static let candidate = AttributeName(rawValue: "candidate")
  package static let endOfCandidates = AttributeName(rawValue: "end-of-candidates")

  // DTLS (RFC 8842).
  package static let fingerprint = AttributeName(rawValue: "fingerprint")
  package static let setup = AttributeName(rawValue: "setup")
  package static let tlsID = AttributeName(rawValue: "tls-id")

  // RTP and RTCP.
  package static let rtcp = AttributeName(rawValue: "rtcp")
  package static let rtcpMux = AttributeName(rawValue: "rtcp-mux")
  package static let rtcpMuxOnly = AttributeName(rawValue: "rtcp-mux-only")
  package static let rtcpReducedSize = AttributeName(rawValue: "rtcp-rsize")
  package static let rtcpExtendedReports = AttributeName(rawValue: "rtcp-xr")
  package static let rtcpFeedback = AttributeName(rawValue: "rtcp-fb")
  package static let extensionMap = AttributeName(rawValue: "extmap")
  package static let extensionMapAllowMixed = AttributeName(rawValue: "extmap-allow-mixed")
  package static let rtpMap = AttributeName(rawValue: "rtpmap")
  package static let formatParameters = AttributeName(rawValue: "fmtp")
  package static let ssrc = AttributeName(rawValue: "ssrc")
  package static let ssrcGroup = AttributeName(rawValue: "ssrc-group")
  package static let rid = AttributeName(rawValue: "rid")
  package static let simulcast = AttributeName(rawValue: "simulcast")

  // Directions (RFC 8866 section 6.7).
  package static let sendrecv = AttributeName(rawValue: "sendrecv")
  package static let sendonly = AttributeName(rawValue: "sendonly")
  package static let recvonly = AttributeName(rawValue: "recvonly")
  package static let inactive = AttributeName(rawValue: "inactive")

  // Data channels (RFC 8841).
  package static let sctpPort = AttributeName(rawValue: "sctp-port")
  /// From drafts before RFC 8841: port, protocol and number of streams.
  package static let sctpMap = AttributeName(rawValue: "sctpmap")
  package static let maximumMessageSize = AttributeName(rawValue: "max-message-size")
}

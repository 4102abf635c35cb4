/// The packet type of an RTCP packet.
package struct RTCPType: RawRepresentable, Hashable, Sendable {
  package var rawValue: UInt8
  package init(rawValue: UInt8) { self.rawValue = rawValue }

  package static let senderReport = RTCPType(rawValue: 200)
  package static let receiverReport = RTCPType(rawValue: 201)
  package static let sourceDescription = RTCPType(rawValue: 202)
  package static let goodbye = RTCPType(rawValue: 203)
  package static let application = RTCPType(rawValue: 204)
  /// RFC 4585 section 6.2.
  package static let transportFeedback = RTCPType(rawValue: 205)
  /// RFC 4585 section 6.3.
  package static let payloadFeedback = RTCPType(rawValue: 206)
  /// RFC 3611.
  package static let extendedReport = RTCPType(rawValue: 207)
}

/// The format of a feedback message: its FMT field.
package struct FeedbackFormat: RawRepresentable, Hashable, Sendable {
  package var rawValue: UInt8
  package init(rawValue: UInt8) { self.rawValue = rawValue }

  /// Generic NACK, transport feedback (RFC 4585 section 6.2.1).
  package static let genericNACK = FeedbackFormat(rawValue: 1)
  /// Arrival times, transport feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01).
  package static let transportWide = FeedbackFormat(rawValue: 15)
  /// Picture loss indication, payload feedback (RFC 4585 section 6.3.1).
  package static let pictureLoss = FeedbackFormat(rawValue: 1)
  /// Full intra request, payload feedback (RFC 5104 section 4.3.1).
  package static let fullIntra = FeedbackFormat(rawValue: 4)
  /// Application layer feedback, payload feedback; carries REMB (RFC 4585 section 6.4).
  package static let application = FeedbackFormat(rawValue: 15)
}

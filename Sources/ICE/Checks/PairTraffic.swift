import Wire

/// Owns what came and went over a pair: its checks counted (W3C candidate-pair), how long they
/// took, and when the peer last gave a sign of life.
struct PairTraffic {
  /// When anything valid last came in: a response, a check or other traffic.
  private(set) var heardAt: Instant?
  /// When the peer last showed that it wants to receive here: a response or a check (RFC 7675).
  private(set) var consentedAt: Instant?
  /// When the last response came in.
  private(set) var answeredAt: Instant?

  private(set) var requestsSent: UInt64 = 0
  private(set) var requestsReceived: UInt64 = 0
  private(set) var responsesSent: UInt64 = 0
  private(set) var responsesReceived: UInt64 = 0
  private(set) var consentRequestsSent: UInt64 = 0
  private(set) var roundTrip: Interval?
  private(set) var totalRoundTrip = Interval.zero

  mutating func countRequest() { requestsSent += 1 }

  mutating func countConsentRequest() { consentRequestsSent += 1 }

  /// Notes a response to a request that was sent at an instant.
  mutating func receiveResponse(to sentAt: Instant, at now: Instant) {
    responsesReceived += 1
    heardAt = now
    roundTrip = now - sentAt
    totalRoundTrip = totalRoundTrip + (now - sentAt)
  }

  /// Notes that a check was answered as it should be.
  mutating func answer(at now: Instant) {
    answeredAt = now
    consentedAt = now
  }

  /// Notes checks of the peer, which were answered.
  mutating func receiveRequests(_ count: UInt64, at now: Instant) {
    requestsReceived += count
    responsesSent += count
    heardAt = now
    consentedAt = now
  }

  /// Notes other traffic.
  mutating func hear(at now: Instant) { heardAt = now }

  /// Puts the counts into a report.
  func count(in report: inout ICEPairReport) {
    report.requestsSent = requestsSent
    report.requestsReceived = requestsReceived
    report.responsesSent = responsesSent
    report.responsesReceived = responsesReceived
    report.consentRequestsSent = consentRequestsSent
    report.currentRoundTrip = roundTrip
    report.totalRoundTrip = totalRoundTrip
  }
}

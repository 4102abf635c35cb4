import Wire

/// Counters of a pair (W3C candidate-pair), its round-trip times, and when the peer was last heard.
struct PairTraffic {
  /// When anything valid was last received: a response, a check or other traffic.
  private(set) var receivedAt: Instant?
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

  /// Records a response to a request sent at `sentAt`.
  mutating func receiveResponse(to sentAt: Instant, at now: Instant) {
    responsesReceived += 1
    receivedAt = now
    roundTrip = now - sentAt
    totalRoundTrip = totalRoundTrip + (now - sentAt)
  }

  /// Records a valid response to a check.
  mutating func answer(at now: Instant) {
    answeredAt = now
    consentedAt = now
  }

  /// Counts checks of the peer and the responses to them.
  mutating func receiveRequests(_ count: UInt64, at now: Instant) {
    requestsReceived += count
    responsesSent += count
    receivedAt = now
    consentedAt = now
  }

  /// Records other traffic.
  mutating func receiveData(at now: Instant) { receivedAt = now }

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

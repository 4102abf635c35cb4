import Wire

/// The intervals that an agent works with.
enum ICETiming {
  /// Between two new checks of a small checklist, and of a large one (Ta, RFC 8445 section 14.2).
  static let paceSmall = Interval.milliseconds(20)
  static let paceLarge = Interval.milliseconds(50)
  /// Up to how many pairs a checklist is small.
  static let smallChecklist = 12

  /// How long each request of a round waits for a response; the round fails after the last wait.
  ///
  /// The first waits are shorter than the 500 ms of RFC 8445 section 14.3, as in other stacks,
  /// because every request is a transaction of its own: an early retry costs one datagram and
  /// confuses no measurement. With 30 % loss on both ways it is what connects within 2 s. The last
  /// waits are long, for a peer whose user is slow to answer.
  static let checkWaits: [Interval] = {
    let milliseconds: [Int64] =
      [50, 100, 100, 100, 100, 100] + [Int64](repeating: 150, count: 10)
      + [250, 250, 250, 250, 500, 500, 500, 500, 1000, 1000, 1000, 1000, 1000, 2000, 2000]
    return milliseconds.map { Interval.milliseconds($0) }
  }()

  /// How long higher pairs may stay open before a lower one that works is nominated.
  static let nominationPatience = Interval.milliseconds(100)
  static let nominationPatienceMaximum = Interval.seconds(1)
  /// How long a nomination stands at least before a much better pair may replace it.
  static let nominationHold = Interval.seconds(2)
  /// For how long after the peer chose a pair a lower one does not replace it at once.
  static let choiceHold = Interval.seconds(1)

  /// The bounds between two consent checks (RFC 7675 section 5.1: 5 s, 20 % either way).
  static let consentIntervalMinimum = Interval.seconds(4)
  static let consentIntervalSpread = Interval.seconds(2)
  /// Between two checks while the peer is not heard.
  static let probeInterval = Interval.milliseconds(500)
  /// Without consent for so long, nothing may be sent any more (RFC 7675 section 5.1).
  static let consentLifetime = Interval.seconds(30)
  /// Not hearing the peer for so long means disconnected; one second above the longest pause
  /// between two consent checks.
  static let silence = Interval.seconds(7)
  /// How much longer a silent pair may recover before another that works takes its place.
  static let silenceGrace = Interval.seconds(1)

  /// How long checks may continue without any success.
  static let checkingPatience = Interval.seconds(30)
  /// How long the old path stays open after a restart led to a new one.
  static let retirement = Interval.seconds(5)

  /// How long a connection to a TURN server may take.
  static let connectWait = Interval.milliseconds(9500)
  /// How long the names of STUN servers are waited for.
  static let nameWait = Interval.milliseconds(9500)
  /// Between two indications that keep a mapping alive (RFC 8445 section 11).
  static let keepAlive = Interval.seconds(15)
}

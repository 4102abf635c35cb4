import DequeModule
import ICE
import Wire

/// What waits on paths that nothing announced until it shows what they are: few datagrams of few
/// paths, of which the oldest gives way.
struct PathTrials<State> {
  /// What became of a datagram.
  enum Verdict {
    /// The path is one of a call, with these datagrams.
    case call([CallGate.Admitted])
    case notYet
    case none
  }

  private struct Trial {
    var number: UInt64
    var state: State
    var packets: [CallGate.Admitted] = []
  }

  private static var trialsMaximum: Int { 256 }
  private static var packetsMaximum: Int { 16 }
  /// Longer ones than any network carries whole do not wait.
  private static var lengthMaximum: Int { 9216 }

  private var trials: [PathKey: Trial] = [:]
  /// In the order in which they began; those that are over may still stand here.
  private var order = Deque<(key: PathKey, number: UInt64)>()
  private var begun: UInt64 = 0

  /// Looks at a datagram.
  ///
  /// - Parameter judge: whether the path is of a call now; nil while that is open.
  mutating func judge(
    _ packet: CallGate.Admitted, _ initial: @autoclosure () -> State,
    by judge: (inout State) -> Bool?
  ) -> Verdict {
    let key = PathKey.of(packet.tuple).key
    var trial = trials.removeValue(forKey: key) ?? begin(key, initial())
    let isCall = judge(&trial.state)
    if isCall == false { return .none }
    if isCall == true || packet.bytes.count <= Self.lengthMaximum { trial.packets.append(packet) }
    if isCall == true { return .call(trial.packets) }
    guard trial.packets.count < Self.packetsMaximum else { return .none }
    trials[key] = trial
    return .notYet
  }

  private mutating func begin(_ key: PathKey, _ state: State) -> Trial {
    while trials.count >= Self.trialsMaximum, let oldest = order.popFirst() {
      if trials[oldest.key]?.number == oldest.number { trials[oldest.key] = nil }
    }
    begun += 1
    order.append((key, begun))
    if order.count > 4 * Self.trialsMaximum {
      order.removeAll { $0.number != begun && trials[$0.key]?.number != $0.number }
    }
    return Trial(number: begun, state: state)
  }
}

extension PathTrials<ClientHelloReader> {
  /// Looks at a datagram that begins a DTLS association: it is one of a call when the client offers
  /// SRTP.
  mutating func consider(_ packet: CallGate.Admitted) -> Verdict {
    judge(packet, ClientHelloReader()) { $0.offersSRTP(packet.bytes.span.bytes) }
  }
}

extension PathTrials<ContentEvidence> {
  /// Looks at a datagram that may be channel data, where no port tells: it is when its contents are
  /// those of a call.
  mutating func consider(_ packet: CallGate.Admitted) -> Verdict {
    let bytes = packet.bytes.span.bytes
    guard let (_, data) = ChannelData.readAny(bytes, isTruncated: packet.isTruncated) else {
      return .none
    }
    return judge(packet, ContentEvidence()) { evidence in
      guard evidence.add(bytes.extracting(data)) else { return false }
      return evidence.isEnough ? true : nil
    }
  }
}

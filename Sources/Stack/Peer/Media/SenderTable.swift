import JSEP
import Media
import Wire

/// The application's settings for senders (W3C RTCRtpSender): their encodings, and parameters that
/// were read and may still be set.
struct SenderTable {
  private struct Sender {
    var transceiver: UInt32
    /// A single encoding, or one for each simulcast layer.
    var encodings: [RTPEncoding]
    var degradationPreference: DegradationPreference?
    var contentHint = ContentHint.none
    var isScreencast = false
    /// The parameters that getParameters last returned; nil once they may no longer be set.
    var lastRead: RTPSendParameters?
  }

  private var senders: [Sender] = []

  func encodings(of transceiver: UInt32, _ kind: MediaKind) -> [RTPEncoding] {
    senders.first { $0.transceiver == transceiver }?.encodings ?? [RTPEncoding(defaultsFor: kind)]
  }

  /// Returns the encoding of a sender's layer, or the first one if none has that name.
  func encoding(of transceiver: UInt32, _ kind: MediaKind, rid: String?) -> RTPEncoding {
    let encodings = encodings(of: transceiver, kind)
    return encodings.first { $0.rid == rid } ?? encodings[0]
  }

  /// Returns what to reduce first if a sender's bit rate is short, and the content hint.
  ///
  /// If the application sets no hint, a screen capturer implies `detail`; if it sets no preference,
  /// the hint implies one.
  func adaptation(of transceiver: UInt32) -> (DegradationPreference?, ContentHint) {
    guard let sender = senders.first(where: { $0.transceiver == transceiver }) else {
      return (nil, .none)
    }
    let isUnknown = sender.contentHint == .none && sender.isScreencast
    let hint = isUnknown ? ContentHint.detail : sender.contentHint
    return (sender.degradationPreference ?? hint.degradation, hint)
  }

  /// Records whether a sender's video shows a screen.
  mutating func setScreencast(_ isScreencast: Bool, of transceiver: UInt32, _ kind: MediaKind) {
    update(transceiver, kind) { $0.isScreencast = isScreencast }
  }

  mutating func setContentHint(_ hint: ContentHint, of transceiver: UInt32, _ kind: MediaKind) {
    update(transceiver, kind) { $0.contentHint = hint }
  }

  private mutating func update(
    _ transceiver: UInt32, _ kind: MediaKind, _ change: (inout Sender) -> Void
  ) {
    if let index = senders.firstIndex(where: { $0.transceiver == transceiver }) {
      change(&senders[index])
    } else {
      var sender = Sender(transceiver: transceiver, encodings: [RTPEncoding(defaultsFor: kind)])
      change(&sender)
      senders.append(sender)
    }
  }

  /// Sets the encodings that a transceiver was created with; an empty list keeps the default.
  mutating func begin(_ transceiver: UInt32, _ kind: MediaKind, with encodings: [RTPEncoding]) {
    guard !encodings.isEmpty else { return }
    update(transceiver, kind) { $0.encodings = encodings }
  }

  /// Sets the encodings of a transceiver whose layers a remote offer determines, or restores the
  /// default encoding if there are no layers.
  /// - Parameter rids: the layers; empty for a single stream.
  /// - Returns: whether anything changed.
  mutating func follow(_ rids: [String], of transceiver: UInt32, _ kind: MediaKind) -> Bool {
    let known = encodings(of: transceiver, kind).compactMap(\.rid)
    guard rids.isEmpty ? !known.isEmpty : rids.contains(where: { !known.contains($0) })
    else { return false }
    let encodings =
      rids.isEmpty
      ? [RTPEncoding(defaultsFor: kind)]
      : RTPEncoding.scaled(rids.map { RTPEncoding(rid: $0) })
    update(transceiver, kind) {
      $0.encodings = encodings
      $0.lastRead = nil
    }
    return true
  }

  /// Drops the layers that an exchange did not accept.
  mutating func restrictLayers(_ rids: [String], of transceiver: UInt32) {
    guard let index = senders.firstIndex(where: { $0.transceiver == transceiver }),
      senders[index].encodings.count > 1
    else { return }
    let kept = senders[index].encodings.filter { encoding in
      encoding.rid.map { rids.contains($0) } ?? false
    }
    if !kept.isEmpty { senders[index].encodings = kept }
  }

  /// Invalidates the parameters that were read, because a description was set.
  mutating func endTransactions() {
    for index in senders.indices { senders[index].lastRead = nil }
  }

  // MARK: Parameters

  /// Implements W3C getParameters; the result stays the same until it is set or invalidated.
  /// - Parameter section: the transceiver's negotiated section, if any.
  mutating func parameters(
    of transceiver: TransceiverInfo, _ section: NegotiatedSection?, cname: String,
    transaction: @autoclosure () -> String
  ) -> RTPSendParameters {
    let known = senders.first { $0.transceiver == transceiver.id }
    if let open = known?.lastRead { return open }
    var parameters = RTPSendParameters(
      transactionId: transaction(),
      encodings: encodings(of: transceiver.id, transceiver.kind),
      codecs: section?.sendParameters ?? [],
      headerExtensions: (section?.extensions ?? []).map { .init(uri: $0.uri, id: $0.id) },
      cname: cname, reducedSizeRTCP: section?.reducedSizeRTCP ?? false)
    parameters.degradationPreference = known?.degradationPreference
    update(transceiver.id, transceiver.kind) { $0.lastRead = parameters }
    return parameters
  }

  /// Implements W3C setParameters: accepts only the parameters that were last read.
  mutating func set(
    _ parameters: RTPSendParameters, of transceiver: TransceiverInfo
  ) throws(PeerError) {
    guard transceiver.direction != .stopped else {
      throw PeerError(
        name: "InvalidStateError", message: "transceiver \(transceiver.id) is stopped")
    }
    guard let read = senders.first(where: { $0.transceiver == transceiver.id })?.lastRead else {
      throw PeerError(
        name: "InvalidStateError",
        message: "the parameters were not read before, or were set since: call getParameters")
    }
    var comparable = parameters
    comparable.encodings = read.encodings
    comparable.degradationPreference = read.degradationPreference
    guard comparable == read, parameters.encodings.map(\.rid) == read.encodings.map(\.rid) else {
      throw PeerError(
        name: "InvalidModificationError",
        message: "only the encodings and the degradation preference can be changed")
    }
    for encoding in parameters.encodings { try encoding.check() }
    let encodings = parameters.encodings.map { $0.suited(to: transceiver.kind) }
    update(transceiver.id, transceiver.kind) {
      $0.lastRead = nil
      $0.encodings = encodings
      $0.degradationPreference = parameters.degradationPreference
    }
  }

  // MARK: Bit rates

  /// Divides a bit rate equally among senders; what a sender cannot use is divided among the
  /// others.
  static func shares(of total: UInt64, limits: [UInt64?]) -> [UInt64] {
    var shares = [UInt64](repeating: 0, count: limits.count)
    var rest = total
    let order = limits.indices.sorted {
      (limits[$0] ?? .max, $0) < (limits[$1] ?? .max, $1)
    }
    for (place, index) in order.enumerated() {
      let equal = rest / UInt64(limits.count - place)
      shares[index] = min(equal, limits[index] ?? .max)
      rest -= shares[index]
    }
    return shares
  }
}

extension NegotiatedSection {
  /// The codecs for W3C getParameters, each followed by its RTX codec.
  fileprivate var sendParameters: [RTPSendParameters.Codec] {
    codecs.flatMap { codec in
      let own = RTPSendParameters.Codec(
        payloadType: codec.payloadType, codec: RTPCodec(codec, kind))
      guard let rtx = codec.rtxPayloadType else { return [own] }
      let format = RTPCodec(
        mimeType: "\(kind.rawValue)/rtx", clockRate: codec.clockRate,
        sdpFmtpLine: "apt=\(codec.payloadType)")
      return [own, RTPSendParameters.Codec(payloadType: rtx, codec: format)]
    }
  }
}

extension RTPEncoding {
  init(defaultsFor kind: MediaKind) {
    self.init(scaleResolutionDownBy: kind == .video ? 1 : nil)
  }

  /// Returns the encoding without members that do not apply to the kind (W3C addTransceiver).
  func suited(to kind: MediaKind) -> RTPEncoding {
    var encoding = self
    if kind == .audio {
      encoding.maxFramerate = nil
      encoding.scaleResolutionDownBy = nil
      encoding.scalabilityMode = nil
    } else {
      encoding.scaleResolutionDownBy = scaleResolutionDownBy ?? 1
    }
    return encoding
  }

  /// Returns a transceiver's initial encodings (W3C addTransceiver): one without a name, or several
  /// named layers, by default each half the size of the next.
  static func suited(
    _ encodings: [RTPEncoding], to kind: MediaKind
  ) throws(PeerError) -> [RTPEncoding] {
    for encoding in encodings { try encoding.check() }
    let rids = encodings.compactMap(\.rid)
    guard encodings.count < 2 || rids.count == encodings.count, Set(rids).count == rids.count,
      rids.allSatisfy(SimulcastLayer.isName)
    else {
      throw PeerError(
        name: "TypeError",
        message: "each of several encodings needs a rid of its own, of 1 to 16 letters and digits")
    }
    let count = kind == .audio ? 1 : SimulcastLayer.countMaximum
    var suited = encodings.prefix(count).map { $0.suited(to: kind) }
    if suited.count == 1 { suited[0].rid = nil }
    let isScaled = encodings.contains { $0.scaleResolutionDownBy != nil }
    return suited.count > 1 && !isScaled ? scaled(suited) : suited
  }

  /// Scales layers so that each is half the size of the next.
  static func scaled(_ encodings: [RTPEncoding]) -> [RTPEncoding] {
    var encodings = encodings
    for index in encodings.indices {
      encodings[index].scaleResolutionDownBy = Double(1 << (encodings.count - 1 - index))
    }
    return encodings
  }

  /// Throws if a value is out of range.
  func check() throws(PeerError) {
    if let maxFramerate, !(maxFramerate.isFinite && maxFramerate >= 0) {
      throw PeerError(name: "RangeError", message: "maxFramerate must be 0 or more")
    }
    if let scaleResolutionDownBy, !(scaleResolutionDownBy.isFinite && scaleResolutionDownBy >= 1) {
      throw PeerError(name: "RangeError", message: "scaleResolutionDownBy must be 1 or more")
    }
    if let scalabilityMode, temporalLayers == nil {
      throw PeerError(
        name: "OperationError",
        message: "the scalability mode \(scalabilityMode) is none of L1T1, L1T2 and L1T3")
    }
  }

  /// The number of temporal layers; nil if the mode is not supported.
  var temporalLayers: Int? {
    guard let scalabilityMode else { return 1 }
    return TemporalPattern.counts.first { scalabilityMode == "L1T\($0)" }
  }

  /// Returns the audio bit rate in bit/s: the encoding's limit, but at most `maximum`.
  func audioBitrate(upTo maximum: UInt32) -> UInt32 {
    guard let maxBitrate else { return maximum }
    // Opus has no lower bit rate (RFC 6716 section 2.1.1).
    return min(maximum, UInt32(clamping: max(maxBitrate, 6_000)))
  }
}

import JSEP
import SCTP
import Secure
import Transport
import Wire

/// The association of a peer and its data channels.
struct DataTransport {
  /// A channel that is not closed.
  struct Known {
    let number: DataChannelNumber
    let isRemote: Bool
    var options: DataChannelInit
    var wasOpen = false
  }

  /// Senders of one channel whose calls are answered when less is buffered.
  struct Waiting {
    let number: DataChannelNumber
    var calls: [UInt32]
  }

  private let entropy: EntropyStream
  var association: SCTPAssociation
  /// Whether the association was told its role and the peer's ports.
  var isStarted = false
  /// The bundle that carries it, once it was started.
  var carrier = 0
  /// In order of creation, which is the order of their numbers.
  var channels: [Known] = []
  var waiting: [Waiting] = []
  /// How many channels were ever open, and how many of those are no longer.
  var opened: UInt64 = 0
  var closed: UInt64 = 0

  /// How many bytes of a channel may be buffered before senders wait for their answers.
  static let bufferMark: UInt64 = 1 << 20

  init(entropy: EntropyStream) {
    self.entropy = entropy
    association = SCTPAssociation(entropy: entropy)
  }

  /// Takes a new association in the place of one that has ended.
  mutating func renew() {
    association = SCTPAssociation(entropy: entropy, firstChannel: association.nextChannel)
    isStarted = false
  }

  func index(of number: DataChannelNumber) -> Int? {
    channels.firstIndex { $0.number == number }
  }
}

// Data channels: the application above, DTLS below.
extension PeerStack {
  // MARK: Calls

  func createDataChannel(_ options: DataChannelInit) throws(PeerError) -> DataChannelInfo {
    if let refusal = data.association.refusal(ofOpening: options) { throw PeerError(refusal) }
    let number = data.association.nextChannel
    let channel = DataTransport.Known(number: number, isRemote: false, options: options)
    data.channels.append(channel)
    tell(channel, .connecting, DataChannelCounters())
    negotiation.wantData()
    drive(SCTPAssociation.Input.open(options))
    return info(channel)
  }

  /// Sends a message; the call is answered at once, or when not too much is buffered any more.
  func send(_ message: DataMessage, call id: UInt32) {
    let number = DataChannelNumber(message.channel)
    let refusal = data.association.refusal(ofSending: message.bytes.count, on: number)
    if isClosed || refusal != nil {
      emit(.reply(id: id, .failure(PeerError(refusal ?? .closed))))
      return
    }
    drive(.send(number, binary: message.isBinary, message.bytes))
    guard data.association.bufferedAmount(of: number) > DataTransport.bufferMark else {
      emit(.reply(id: id, .done))
      return
    }
    if let index = data.waiting.firstIndex(where: { $0.number == number }) {
      data.waiting[index].calls.append(id)
    } else {
      data.waiting.append(DataTransport.Waiting(number: number, calls: [id]))
    }
  }

  func closeDataChannel(_ number: UInt32) throws(PeerError) {
    drive(.close(try known(number)))
  }

  func setBufferedAmountLowThreshold(_ threshold: UInt64, of number: UInt32) throws(PeerError) {
    drive(.setBufferedAmountLowThreshold(try known(number), threshold))
  }

  /// The channels that are not closed, oldest first.
  var dataChannels: [DataChannelInfo] { data.channels.map(info) }

  /// A channel that this peer has or had.
  private func known(_ number: UInt32) throws(PeerError) -> DataChannelNumber {
    guard number < data.association.nextChannel.rawValue else {
      throw PeerError(name: "InvalidAccessError", message: "there is no data channel \(number)")
    }
    return DataChannelNumber(number)
  }

  private func info(_ channel: DataTransport.Known) -> DataChannelInfo {
    let maximum = negotiation.data?.remoteMaximumMessageSize
    return DataChannelInfo(
      number: channel.number.rawValue, isRemote: channel.isRemote,
      options: data.association.options(of: channel.number) ?? channel.options,
      readyState: data.association.state(of: channel.number),
      bufferedAmount: data.association.bufferedAmount(of: channel.number),
      maxMessageSize: maximum == 0 ? nil : maximum)
  }

  // MARK: The association

  /// Begins the association once it is agreed on and DTLS can carry it.
  ///
  /// An exchange may have moved its section to another transport: there is another one then.
  func startDataIfReady() {
    guard let agreed = negotiation.data else {
      dropRefusedChannels()
      return
    }
    if data.isStarted, data.carrier != agreed.transport { endAssociation() }
    guard let bundle = dataBundle, bundle.dtlsState == .connected,
      let role = bundle.transport.dtlsRole
    else { return }
    guard !data.isStarted else {
      // The only thing of an association that a later exchange changes (RFC 8841 section 6).
      return drive(.remoteMaximumMessageSize(agreed.remoteMaximumMessageSize))
    }
    data.isStarted = true
    data.carrier = bundle.number
    drive(
      .start(
        SCTPParameters(
          isClient: role == .client, localPort: DataSection.port, remotePort: agreed.remotePort,
          remoteMaximumMessageSize: agreed.remoteMaximumMessageSize,
          localMaximumMessageSize: DataSection.maximumMessageSize)))
  }

  /// Ends what an exchange refused: the association, or the channels that waited for one.
  private func dropRefusedChannels() {
    guard !negotiation.wantsData else { return }
    if data.isStarted { return endAssociation() }
    for channel in data.channels {
      tell(
        .dataChannelError(
          channel: channel.number.rawValue, "the peer does not take data channels"))
      drive(SCTPAssociation.Input.close(channel.number))
    }
  }

  /// Ends the association with its channels and prepares another one, for which an exchange or a
  /// handshake may make way: it does not outlive what carries it (RFC 8841 section 9).
  func endAssociation() {
    guard data.isStarted else { return }
    drive(SCTPAssociation.Input.abort)
    data.renew()
  }

  /// The bundle whose DTLS association carries, or would carry, data channels.
  var dataBundle: Bundle? {
    negotiation.data.map { bundles[$0.transport] } ?? bundles.first
  }

  /// Takes an SCTP packet from DTLS.
  func receiveData(_ packet: [UInt8], over bundle: Bundle) {
    guard negotiation.mayHaveData, bundle === dataBundle else {
      refuse(layer: "sctp", "data channels were not negotiated")
      return
    }
    drive(SCTPAssociation.Input.packet(packet))
  }

  func drive(_ input: SCTPAssociation.Input) {
    let isOutermost = dataOutputs.isEmpty
    data.association.step(input, at: now, into: &dataOutputs)
    guard isOutermost else { return }
    while let output = dataOutputs.next() { handle(output) }
    answerSenders()
  }

  private func handle(_ output: SCTPAssociation.Output) {
    switch output {
    case .packet(let bytes):
      if let bundle = bundles[data.carrier] { drive(bundle, .data(bytes)) }
    case .state(let state): change(.sctp, to: state.rawValue)
    case .failure(let reason): refuse(layer: "sctp", reason)
    case .channelAnnounced(let number):
      let options = data.association.options(of: number) ?? DataChannelInit()
      data.channels.append(
        DataTransport.Known(number: number, isRemote: true, options: options))
    case .channelOpened(let number): open(number)
    case .channelClosing(let number): tell(number, .closing)
    case .channelClosed(let number, let counters): close(number, counters)
    case .channelFailure(let number, let reason):
      tell(.dataChannelError(channel: number.rawValue, reason))
    case .message(let number, let binary, let bytes):
      tell(.message(DataMessage(channel: number.rawValue, isBinary: binary, bytes: bytes)))
    case .bufferedAmountLow(let number): tell(.bufferedAmountLow(channel: number.rawValue))
    }
  }

  /// Answers the senders that waited for room.
  private func answerSenders() {
    guard !data.waiting.isEmpty else { return }
    var still: [DataTransport.Waiting] = []
    for waiting in data.waiting {
      let isGone = data.association.state(of: waiting.number) == .closed
      guard
        isGone || data.association.bufferedAmount(of: waiting.number) <= DataTransport.bufferMark
      else {
        still.append(waiting)
        continue
      }
      let lost = PeerError(
        name: "OperationError", message: "the data channel closed before all was sent")
      for id in waiting.calls { emit(.reply(id: id, isGone ? .failure(lost) : .done)) }
    }
    data.waiting = still
  }

  // MARK: Channels

  private func open(_ number: DataChannelNumber) {
    guard let index = data.index(of: number) else { return }
    data.channels[index].wasOpen = true
    data.opened += 1
    tell(number, .open)
  }

  private func close(_ number: DataChannelNumber, _ counters: DataChannelCounters) {
    guard let index = data.index(of: number) else { return }
    let channel = data.channels.remove(at: index)
    if channel.wasOpen { data.closed += 1 }
    tell(channel, .closed, counters)
  }

  private func tell(_ number: DataChannelNumber, _ state: DataChannelState) {
    guard let index = data.index(of: number) else { return }
    // The stream is known by now, and gone from the association when the channel is closed.
    if let options = data.association.options(of: number) { data.channels[index].options = options }
    let counters = data.association.counters(of: number) ?? DataChannelCounters()
    tell(data.channels[index], state, counters)
  }

  private func tell(
    _ channel: DataTransport.Known, _ state: DataChannelState, _ counters: DataChannelCounters
  ) {
    tell(
      .dataChannel(
        DataChannelRecord(
          channel: channel.number.rawValue, isRemote: channel.isRemote, options: channel.options,
          state: state, counters: counters)))
  }
}

extension PeerError {
  /// The W3C exception of a refused channel or message.
  init(_ refusal: DataChannelRefusal) {
    switch refusal {
    case .closed:
      self.init(name: "InvalidStateError", message: "there is no association any more")
    case .notOpen: self.init(name: "InvalidStateError", message: "the data channel is not open")
    case .tooLarge(let maximum):
      self.init(name: "TypeError", message: "the peer takes messages of \(maximum) bytes at most")
    case .bufferFull:
      self.init(name: "OperationError", message: "the data channel's buffer is full")
    case .malformed:
      self.init(
        name: "TypeError",
        message: "a data channel takes one limit at most, texts of up to 65535 bytes, and a "
          + "stream below 65535 when it is negotiated by the application")
    case .noStream:
      self.init(name: "OperationError", message: "the stream is taken, or none is free")
    }
  }
}

import JSEP
import SCTP
import Secure
import Wire

/// A peer's data channels over an SCTP association (RFC 8831), between the application's calls and
/// DTLS.
struct DataTransport: Machine {
  enum Input {
    /// Opens a channel that `channel(madeWith:)` returned after checking its options.
    case open(Channel)
    /// Sends a message; the reply is delayed while too much data is buffered.
    case send(DataMessage, call: UInt32)
    case close(DataChannelNumber)
    case setBufferedAmountLowThreshold(DataChannelNumber, UInt64)
    /// The negotiated data section, whether the application wants channels, and the DTLS role once
    /// the DTLS association is established.
    case negotiated(NegotiatedData?, isWanted: Bool, role: DTLSRole?)
    /// An SCTP packet from DTLS.
    case packet([UInt8])
    /// A new DTLS association replaced the previous one.
    case carrierRenewed
    /// The DTLS association ended.
    case carrierLost
    case deadline
  }

  enum Output {
    /// An SCTP packet for a transport's DTLS association.
    case packet([UInt8], transport: Int)
    case state(SCTPState)
    case event(PeerEvent)
    case reply(call: UInt32, PeerReply)
    case refused(String)
  }

  /// A channel that is not closed.
  struct Channel {
    let number: DataChannelNumber
    let isRemote: Bool
    var options: DataChannelInit
    var wasOpen = false
  }

  /// The send calls on one channel that are answered once less data is buffered.
  private struct Waiting {
    let number: DataChannelNumber
    var calls: [UInt32]
  }

  private(set) var association: SCTPAssociation
  private var associationOutputs = Outbox<SCTPAssociation.Output>()
  /// The data section as last negotiated; nil if there is none.
  private(set) var agreed: NegotiatedData?
  /// Whether the SCTP association was started with its role and the remote peer's port.
  private var isStarted = false
  /// The number of the association's transport, once started.
  private var carrier = 0
  /// The channels in the order of their creation and number.
  private(set) var channels: [Channel] = []
  private var waiting: [Waiting] = []
  /// The number of channels opened so far, and how many of them have closed again.
  private(set) var opened: UInt64 = 0
  private(set) var closed: UInt64 = 0

  private let entropy: EntropyStream
  /// The current step's outputs.
  private var outbox = Outbox<Output>()
  /// The current step's instant.
  private var now = Instant.zero

  /// A send's reply is delayed while the channel has more than this many bytes buffered.
  private static let bufferMark: UInt64 = 1 << 20

  init(entropy: EntropyStream) {
    self.entropy = entropy
    association = SCTPAssociation(entropy: entropy)
  }

  mutating func step(_ input: Input, at now: Instant, into outbox: inout Outbox<Output>) {
    self.now = now
    swap(&self.outbox, &outbox)
    apply(input)
    deadline = association.deadline
    swap(&self.outbox, &outbox)
  }

  private mutating func apply(_ input: Input) {
    switch input {
    case .open(let channel): open(channel)
    case .send(let message, let call): send(message, call)
    case .close(let number): drive(.close(number))
    case .setBufferedAmountLowThreshold(let number, let threshold):
      drive(.setBufferedAmountLowThreshold(number, threshold))
    case .negotiated(let data, let isWanted, let role):
      agreed = data
      if let data {
        settle(data, role)
      } else if !isWanted {
        refuseChannels()
      }
    case .packet(let packet): drive(.packet(packet))
    case .carrierRenewed: endAssociation()
    case .carrierLost: drive(.abort)
    case .deadline: drive(.deadline)
    }
  }

  /// The association's next deadline.
  ///
  /// It is cached, because each step of the peer reads it.
  private(set) var deadline: Instant?

  // MARK: Calls

  private mutating func open(_ channel: Channel) {
    channels.append(channel)
    report(channel, .connecting, DataChannelCounters())
    drive(.open(channel.options))
  }

  private mutating func send(_ message: DataMessage, _ call: UInt32) {
    let number = DataChannelNumber(message.channel)
    if let refusal = association.refusal(ofSending: message.bytes.count, on: number) {
      outbox.append(.reply(call: call, .failure(PeerError(refusal))))
      return
    }
    drive(.send(number, binary: message.isBinary, message.bytes))
    guard association.bufferedAmount(of: number) > DataTransport.bufferMark else {
      outbox.append(.reply(call: call, .done))
      return
    }
    if let index = waiting.firstIndex(where: { $0.number == number }) {
      waiting[index].calls.append(call)
    } else {
      waiting.append(Waiting(number: number, calls: [call]))
    }
  }

  /// Answers the waiting senders whose channel has space in its buffer again or has closed.
  private mutating func answerSenders() {
    guard !waiting.isEmpty else { return }
    var still: [Waiting] = []
    for sender in waiting {
      let isGone = association.state(of: sender.number) == .closed
      guard isGone || association.bufferedAmount(of: sender.number) <= DataTransport.bufferMark
      else {
        still.append(sender)
        continue
      }
      let lost = PeerError(
        name: "OperationError", message: "the data channel closed before all was sent")
      for call in sender.calls {
        outbox.append(.reply(call: call, isGone ? .failure(lost) : .done))
      }
    }
    waiting = still
  }

  // MARK: Association

  /// Starts the association once it is negotiated and DTLS can carry it.
  ///
  /// If an exchange moved the section to another transport, a new association starts.
  private mutating func settle(_ agreed: NegotiatedData, _ role: DTLSRole?) {
    if isStarted, carrier != agreed.transport { endAssociation() }
    guard let role else { return }
    guard !isStarted else {
      // A later exchange may change only this parameter (RFC 8841 section 6).
      return drive(.remoteMaximumMessageSize(agreed.remoteMaximumMessageSize))
    }
    isStarted = true
    carrier = agreed.transport
    drive(
      .start(
        SCTPParameters(
          isClient: role == .client, localPort: DataSection.port, remotePort: agreed.remotePort,
          remoteMaximumMessageSize: agreed.remoteMaximumMessageSize,
          localMaximumMessageSize: DataSection.maximumMessageSize)))
  }

  /// Ends the association because an exchange rejected it; if none was started, closes the channels
  /// that wait for one.
  private mutating func refuseChannels() {
    if isStarted { return endAssociation() }
    for channel in channels {
      outbox.append(
        .event(
          .dataChannelError(
            channel: channel.number.rawValue, "the peer does not take data channels")))
      drive(.close(channel.number))
    }
  }

  /// Ends the association and its channels and prepares a new one, because an SCTP association ends
  /// with its DTLS association (RFC 8841 section 9).
  private mutating func endAssociation() {
    guard isStarted else { return }
    drive(.abort)
    association = SCTPAssociation(entropy: entropy, firstChannel: association.nextChannel)
    isStarted = false
  }

  private mutating func drive(_ input: SCTPAssociation.Input) {
    association.step(input, at: now, into: &associationOutputs)
    while let output = associationOutputs.next() { handle(output) }
    answerSenders()
  }

  private mutating func handle(_ output: SCTPAssociation.Output) {
    switch output {
    case .packet(let bytes): outbox.append(.packet(bytes, transport: carrier))
    case .state(let state): outbox.append(.state(state))
    case .failure(let reason): outbox.append(.refused(reason))
    case .channelAnnounced(let number):
      let options = association.options(of: number) ?? DataChannelInit()
      channels.append(Channel(number: number, isRemote: true, options: options))
    case .channelOpened(let number): recordOpened(number)
    case .channelClosing(let number): report(number, .closing)
    case .channelClosed(let number, let counters): recordClosed(number, counters)
    case .channelFailure(let number, let reason):
      outbox.append(.event(.dataChannelError(channel: number.rawValue, reason)))
    case .message(let number, let isBinary, let bytes):
      outbox.append(
        .event(
          .message(DataMessage(channel: number.rawValue, isBinary: isBinary, bytes: bytes))))
    case .bufferedAmountLow(let number):
      outbox.append(.event(.bufferedAmountLow(channel: number.rawValue)))
    }
  }

  // MARK: Channels

  private func index(of number: DataChannelNumber) -> Int? {
    channels.firstIndex { $0.number == number }
  }

  private mutating func recordOpened(_ number: DataChannelNumber) {
    guard let index = index(of: number) else { return }
    channels[index].wasOpen = true
    opened += 1
    report(number, .open)
  }

  private mutating func recordClosed(_ number: DataChannelNumber, _ counters: DataChannelCounters) {
    guard let index = index(of: number) else { return }
    let channel = channels.remove(at: index)
    if channel.wasOpen { closed += 1 }
    report(channel, .closed, counters)
  }

  private mutating func report(_ number: DataChannelNumber, _ state: DataChannelState) {
    guard let index = index(of: number) else { return }
    // Store the options now: they include the stream identifier, and the association is about to
    // forget them.
    if let options = association.options(of: number) { channels[index].options = options }
    report(channels[index], state, association.counters(of: number) ?? DataChannelCounters())
  }

  private mutating func report(
    _ channel: Channel, _ state: DataChannelState, _ counters: DataChannelCounters
  ) {
    outbox.append(
      .event(
        .dataChannel(
          DataChannelRecord(
            channel: channel.number.rawValue, isRemote: channel.isRemote,
            options: channel.options, state: state, counters: counters))))
  }
}

// MARK: - Calls

extension DataTransport {
  /// Returns a channel with the next number; throws if it cannot be opened with these options.
  func channel(madeWith options: DataChannelInit) throws(PeerError) -> Channel {
    if let refusal = association.refusal(ofOpening: options) { throw PeerError(refusal) }
    return Channel(number: association.nextChannel, isRemote: false, options: options)
  }

  /// Returns the number of a channel that exists or existed; throws if there was none.
  func known(_ number: UInt32) throws(PeerError) -> DataChannelNumber {
    guard number < association.nextChannel.rawValue else {
      throw PeerError(name: "InvalidAccessError", message: "there is no data channel \(number)")
    }
    return DataChannelNumber(number)
  }

  /// The channels that are not closed, oldest first.
  var infos: [DataChannelInfo] { channels.map { info($0) } }

  func info(_ channel: Channel) -> DataChannelInfo {
    let maximum = agreed?.remoteMaximumMessageSize
    return DataChannelInfo(
      number: channel.number.rawValue, isRemote: channel.isRemote,
      options: association.options(of: channel.number) ?? channel.options,
      readyState: association.state(of: channel.number),
      bufferedAmount: association.bufferedAmount(of: channel.number),
      maxMessageSize: maximum == 0 ? nil : maximum)
  }
}

extension PeerError {
  /// Creates the W3C exception for a refused channel or message.
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

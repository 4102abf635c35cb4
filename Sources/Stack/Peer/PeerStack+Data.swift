import JSEP
public import SCTP
import Secure
import Wire

// Connects data channel calls with the bundle that carries them.
extension PeerStack {
  func createDataChannel(_ options: DataChannelInit) throws(PeerError) -> DataChannelInfo {
    let channel = try data.channel(madeWith: options)
    negotiation.wantData()
    drive(DataTransport.Input.open(channel))
    return data.info(channel)
  }

  /// Passes the negotiated parameters and the DTLS state to the data channels.
  func settleData() {
    let bundle = dataBundle
    let role = bundle?.dtlsState == .connected ? bundle?.transport.dtlsRole : nil
    drive(.negotiated(negotiation.data, isWanted: negotiation.wantsData, role: role))
  }

  /// The bundle that carries data channels; the first bundle until they are negotiated.
  var dataBundle: Bundle? {
    agreed.dataTransport.map { bundles[$0] } ?? bundles.first
  }

  /// Passes an SCTP packet from DTLS to the data channels, or refuses it if this bundle carries
  /// none.
  func receiveData(_ packet: [UInt8], over bundle: Bundle) {
    guard agreed.mayHaveData, bundle === dataBundle else {
      refuse(layer: "sctp", "data channels were not negotiated")
      return
    }
    drive(DataTransport.Input.packet(packet))
  }

  func drive(_ input: DataTransport.Input) {
    let isOutermost = dataOutputs.isEmpty
    data.step(input, at: now, into: &dataOutputs)
    guard isOutermost else { return }
    while let output = dataOutputs.next() { handle(output) }
  }

  private func handle(_ output: consuming DataTransport.Output) {
    switch consume output {
    case .packet(let bytes, let transport):
      if let bundle = bundles[transport] { drive(bundle, .data(bytes, codePoint: dataMark)) }
    case .state(let state): emit(states.move(to: state))
    case .event(let event): emit(event)
    case .reply(let call, let reply): emit(.reply(id: call, reply))
    case .refused(let reason): refuse(layer: "sctp", reason)
    }
  }
}

// MARK: - DataMessage

/// A complete text or binary message, in either direction.
package struct DataMessage: Hashable, Sendable {
  /// The channel's number within its peer.
  package var channel: UInt32
  /// Whether the message is binary rather than text.
  package var isBinary: Bool
  /// The bytes, or the text in UTF-8.
  package var bytes: [UInt8]

  package init(channel: UInt32, isBinary: Bool, bytes: [UInt8]) {
    self.channel = channel
    self.isBinary = isBinary
    self.bytes = bytes
  }
}

/// A data channel as it was when it was created or changed its state.
package struct DataChannelRecord: Hashable, Sendable {
  /// The channel's number within its peer; numbers start at 0 and are never reused.
  package var channel: UInt32
  package var isRemote: Bool
  /// The options at creation; `id` is nil until the association assigns a stream.
  package var options: DataChannelInit
  package var state: DataChannelState
  package var counters: DataChannelCounters

  package init(
    channel: UInt32, isRemote: Bool, options: DataChannelInit, state: DataChannelState,
    counters: DataChannelCounters
  ) {
    self.channel = channel
    self.isRemote = isRemote
    self.options = options
    self.state = state
    self.counters = counters
  }
}

/// A snapshot of a data channel for applications (W3C RTCDataChannel attributes).
public struct DataChannelInfo: Hashable, Sendable, Codable {
  /// The channel's number within its peer; numbers start at 0 and are never reused.
  public var number: UInt32
  /// Whether the remote peer created the channel.
  public var isRemote: Bool
  /// The options at creation; `id` is the stream once the association has started.
  public var options: DataChannelInit
  /// The channel's state (W3C readyState).
  public var readyState: DataChannelState
  /// The number of bytes that were passed to `send` but not sent yet.
  public var bufferedAmount: UInt64
  /// The size of the largest message that the remote peer accepts, in bytes; nil for any size, or
  /// before negotiation.
  public var maxMessageSize: UInt64?

  /// Creates a snapshot from a channel's current attributes.
  public init(
    number: UInt32, isRemote: Bool, options: DataChannelInit, readyState: DataChannelState,
    bufferedAmount: UInt64, maxMessageSize: UInt64?
  ) {
    self.number = number
    self.isRemote = isRemote
    self.options = options
    self.readyState = readyState
    self.bufferedAmount = bufferedAmount
    self.maxMessageSize = maxMessageSize
  }
}

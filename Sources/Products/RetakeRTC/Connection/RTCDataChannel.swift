public import Foundation
import Live
import Peer
import SCTP
import Synchronization

/// A data channel with the methods of the Objective-C class.
public final class RTCDataChannel: Sendable {
  private struct State {
    var delegate = WeakDelegate<any RTCDataChannelDelegate> { nil }
    /// The number of bytes that the stack has not accepted yet.
    var unsent = 0
    /// The size in bytes of the largest message that the peer accepts; nil until it is known, 0 for
    /// no limit.
    var largest: UInt64?
  }

  /// The maximum number of queued bytes, as in libwebrtc.
  private static let unsentMaximum = 16 << 20

  private let channel: DataChannel
  private let connection: PeerConnection
  private let state = Mutex(State())

  init(_ channel: DataChannel, of connection: PeerConnection) {
    self.channel = channel
    self.connection = connection
  }

  // MARK: Attributes

  /// Receives the channel's events; held weakly.
  public var delegate: (any RTCDataChannelDelegate)? {
    get { state.withLock { $0.delegate }.value }
    set {
      let delegate = WeakDelegate { [weak newValue] in newValue }
      state.withLock { $0.delegate = delegate }
    }
  }

  /// The name that the channel was created with; not necessarily unique.
  public var label: String { channel.label }
  /// The subprotocol; empty if there is none.
  public var `protocol`: String { channel.protocol }
  /// Whether messages arrive in sending order.
  public var isOrdered: Bool { channel.ordered }
  /// The maximum time for which a message is retransmitted, in milliseconds; 65535 for no limit.
  public var maxPacketLifeTime: UInt16 { channel.maxPacketLifeTime ?? .max }
  /// The maximum number of retransmissions of a message; 65535 for no limit.
  public var maxRetransmits: UInt16 { channel.maxRetransmits ?? .max }
  /// Whether the applications on both sides created the channel (W3C `negotiated`).
  public var isNegotiated: Bool { channel.negotiated }
  /// The stream identifier; -1 until the association is established.
  public var channelId: Int32 { channel.id.map { Int32($0) } ?? -1 }
  /// The state, from connecting to closed.
  public var readyState: RTCDataChannelState { RTCDataChannelState(channel.readyState) }
  /// The number of bytes passed to `sendData` and not sent yet.
  public var bufferedAmount: UInt64 { info?.bufferedAmount ?? 0 }

  private var info: DataChannelInfo? {
    guard case .dataChannels(let all) = try? connection.performAndWait(.dataChannels) else {
      return nil
    }
    return all.first { $0.number == channel.number }
  }

  // MARK: Messages

  /// Queues a message without waiting for the network.
  /// - Returns: false if the channel is not open, the peer does not accept messages of that size,
  ///   or more than 16 MiB would be queued.
  @discardableResult
  public func sendData(_ data: RTCDataBuffer) -> Bool {
    let size = data.data.count
    guard channel.readyState == .open, fits(size) else { return false }
    let isRoom = state.withLock { state in
      guard state.unsent + size <= Self.unsentMaximum else { return false }
      state.unsent += size
      return true
    }
    guard isRoom else { return false }
    let message = DataMessage(
      channel: channel.number, isBinary: data.isBinary, bytes: Array(data.data))
    connection.send(message) { [weak self] _ in self?.state.withLock { $0.unsent -= size } }
    return true
  }

  private func fits(_ size: Int) -> Bool {
    let known = state.withLock { $0.largest }
    let largest = known ?? info.map { $0.maxMessageSize ?? 0 } ?? 0
    state.withLock { $0.largest = largest }
    return largest == 0 || UInt64(size) <= largest
  }

  /// Closes the channel after sending queued messages.
  public func close() { _ = try? connection.performAndWait(.closeDataChannel(channel.number)) }

  // MARK: Events, on the factory's queue

  func changed() { delegate?.dataChannelDidChangeState(self) }

  func received(_ message: DataChannelMessage) {
    delegate?.dataChannel(self, didReceiveMessageWith: RTCDataBuffer(message))
  }

  func drained() { delegate?.dataChannel(self, didChangeBufferedAmount: 0) }
}

extension RTCDataChannel: Hashable {
  /// Returns whether both are the same object.
  public static func == (left: RTCDataChannel, right: RTCDataChannel) -> Bool { left === right }

  /// Hashes the object's identity.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension RTCPeerConnection {
  /// Creates a data channel; returns nil if the configuration contradicts itself, the stream is in
  /// use, or the connection is closed.
  public func dataChannel(
    forLabel label: String, configuration: RTCDataChannelConfiguration
  ) -> RTCDataChannel? {
    guard let options = configuration.native(label),
      case .dataChannel(let info) = try? connection.performAndWait(.createDataChannel(options)),
      let channel = connection.dataChannels.first(where: { $0.number == info.number })
    else { return nil }
    return rtcChannel(channel)
  }
}

extension RTCDataChannelConfiguration {
  /// Converts to the stack's type; nil for numbers out of range.
  func native(_ label: String) -> DataChannelInit? {
    var options = DataChannelInit(
      label: label, protocol: self.protocol, ordered: isOrdered, negotiated: isNegotiated)
    for (value, place) in [
      (maxPacketLifeTime, \DataChannelInit.maxPacketLifeTime),
      (maxRetransmits, \.maxRetransmits), (channelId, \.id),
    ] where value >= 0 {
      guard let value = UInt16(exactly: value) else { return nil }
      options[keyPath: place] = value
    }
    return options
  }
}

/// A text or binary message on a data channel.
public final class RTCDataBuffer: Sendable {
  /// The message's bytes; for text, in UTF-8.
  public let data: Data
  /// Whether the message is binary rather than text.
  public let isBinary: Bool

  /// Creates a message; the bytes of a text message are UTF-8.
  public init(data: Data, isBinary: Bool) {
    self.data = data
    self.isBinary = isBinary
  }

  convenience init(_ message: DataChannelMessage) {
    switch message {
    case .text(let text): self.init(data: Data(text.utf8), isBinary: false)
    case .binary(let bytes): self.init(data: Data(bytes), isBinary: true)
    }
  }
}

/// A data channel's configuration, read when the channel is created.
public final class RTCDataChannelConfiguration {
  /// Whether messages arrive in sending order.
  public var isOrdered = true
  /// The maximum time for which a message is retransmitted, in milliseconds; -1 for no limit.
  public var maxPacketLifeTime: Int32 = -1
  /// The maximum number of retransmissions of a message; -1 for no limit.
  public var maxRetransmits: Int32 = -1
  /// Whether the applications on both sides create the channel (W3C `negotiated`).
  public var isNegotiated = false
  /// The stream identifier; -1 lets the association choose.
  public var channelId: Int32 = -1
  /// The subprotocol; empty if there is none.
  public var `protocol` = ""

  /// Creates a configuration for a reliable, ordered channel.
  public init() {}
}

/// Receives a data channel's events, on its factory's queue.
public protocol RTCDataChannelDelegate: AnyObject {
  /// Reports that the channel's state changed.
  func dataChannelDidChangeState(_ dataChannel: RTCDataChannel)
  /// Reports a received message.
  func dataChannel(
    _ dataChannel: RTCDataChannel, didReceiveMessageWith buffer: RTCDataBuffer)
  /// Reports that everything passed to `sendData` has been sent.
  ///
  /// Optional.
  func dataChannel(_ dataChannel: RTCDataChannel, didChangeBufferedAmount amount: UInt64)
}

// Methods that the Objective-C header marks as optional.
extension RTCDataChannelDelegate {
  /// Does nothing by default.
  public func dataChannel(
    _ dataChannel: RTCDataChannel, didChangeBufferedAmount amount: UInt64
  ) {}
}

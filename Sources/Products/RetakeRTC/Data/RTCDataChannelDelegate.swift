/// Receives the events of a data channel, on the queue of its connection's factory.
public protocol RTCDataChannelDelegate: AnyObject {
  /// The state of the channel changed.
  func dataChannelDidChangeState(_ dataChannel: RTCDataChannel)
  /// A message was received.
  func dataChannel(
    _ dataChannel: RTCDataChannel, didReceiveMessageWith buffer: RTCDataBuffer)
  /// Everything passed to `sendData` has now been sent.
  ///
  /// Optional.
  func dataChannel(_ dataChannel: RTCDataChannel, didChangeBufferedAmount amount: UInt64)
}

// The methods that the header marks as optional.
extension RTCDataChannelDelegate {
  /// Does nothing.
  public func dataChannel(
    _ dataChannel: RTCDataChannel, didChangeBufferedAmount amount: UInt64
  ) {}
}

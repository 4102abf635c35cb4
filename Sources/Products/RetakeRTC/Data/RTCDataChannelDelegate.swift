/// What a data channel tells, on the queue of its connection's factory.
public protocol RTCDataChannelDelegate: AnyObject {
  /// The channel is in another state.
  func dataChannelDidChangeState(_ dataChannel: RTCDataChannel)
  /// A message came.
  func dataChannel(
    _ dataChannel: RTCDataChannel, didReceiveMessageWith buffer: RTCDataBuffer)
  /// All that was given to `sendData` was sent, after it was not. Optional.
  func dataChannel(_ dataChannel: RTCDataChannel, didChangeBufferedAmount amount: UInt64)
}

// What the header marks as optional.
extension RTCDataChannelDelegate {
  /// Does nothing.
  public func dataChannel(
    _ dataChannel: RTCDataChannel, didChangeBufferedAmount amount: UInt64
  ) {}
}

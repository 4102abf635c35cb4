import JSEP
import SCTP

// Calls and replies.
extension DataTransport {
  /// Returns the next channel, if its options are valid.
  func channel(madeWith options: DataChannelInit) throws(PeerError) -> Channel {
    if let refusal = association.refusal(ofOpening: options) { throw PeerError(refusal) }
    return Channel(number: association.nextChannel, isRemote: false, options: options)
  }

  /// Returns a channel that this peer has or had.
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

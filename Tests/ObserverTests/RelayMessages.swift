import ICE
import Wire

/// The messages with which a client gets a relayed address and a channel.
enum RelayMessages {
  static var allocation: [[UInt8]] {
    var allocate = STUNWriter(
      .request, method: .allocate, transactionID: Messages.transaction(900))
    allocate.requestedTransportUDP()
    var allocated = STUNWriter(
      .success, method: .allocate, transactionID: Messages.transaction(900))
    allocated.xorRelayedAddress(Messages.relayed)
    var bind = STUNWriter(
      .request, method: .channelBind, transactionID: Messages.transaction(901))
    bind.channelNumber(0x4001)
    bind.xorPeerAddress(Messages.b)
    let bound = STUNWriter(
      .success, method: .channelBind, transactionID: Messages.transaction(901))
    return [allocate.finish(), allocated.finish(), bind.finish(), bound.finish()]
  }
}

public import Peer
public import SCTP

// Data channels of a connection.
extension PeerConnection {
  /// Creates a data channel (W3C createDataChannel); the first one needs negotiation.
  ///
  /// It may be created before the connection is established and opens with it; wait with
  /// `waitUntilOpen`.
  /// - Throws: `InvalidStateError` on a closed connection, `TypeError` for contradictory options,
  ///   `OperationError` if the stream is in use or none is free.
  public func createDataChannel(_ label: String, _ options: DataChannelInit = DataChannelInit())
    async throws(PeerError) -> DataChannel
  {
    var options = options
    options.label = label
    guard case .dataChannel(let info) = try await perform(.createDataChannel(options)),
      let channel = dataChannel(info.number)
    else {
      throw PeerError(name: "OperationError", message: "the data channel was closed at once")
    }
    return channel
  }

  /// The channels of both sides that are not closed, oldest first.
  public var dataChannels: [DataChannel] { observers.channels }

  /// A channel by its number; nil if it is closed.
  func dataChannel(_ number: UInt32) -> DataChannel? { observers.channel(number) }

  /// Calls a closure with every channel that the peer creates (W3C ondatachannel), existing ones
  /// first.
  ///
  /// Ends when the connection is closed.
  public func forEachRemoteDataChannel(
    _ body: @escaping @Sendable (DataChannel) async -> Void
  ) async {
    let events = events
    await withTaskGroup { group in
      var known: Set<UInt32> = []
      for channel in dataChannels where channel.isRemote {
        known.insert(channel.number)
        group.addTask { await body(channel) }
      }
      for await event in events {
        guard case .dataChannel(let channel) = event, known.insert(channel.number).inserted else {
          continue
        }
        group.addTask { await body(channel) }
      }
    }
  }
}

package import Live

extension PeerConnection {
  /// Sends everything back that comes on the other side's data channels, until the connection is
  /// closed.
  package func echoDataChannels() async {
    await forEachRemoteDataChannel { await $0.echo() }
  }
}

extension DataChannel {
  /// Sends every message back, at the speed of the path.
  package func echo() async {
    for await message in messages {
      // A message that the peer cannot take back, because it is too large for it, is left out.
      try? await send(message)
    }
  }
}

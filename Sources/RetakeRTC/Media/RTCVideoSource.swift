/// Where the pictures of own tracks come from: whatever fills it.
public final class RTCVideoSource: Sendable {
  init() {}
}

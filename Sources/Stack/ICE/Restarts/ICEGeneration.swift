/// The credentials between two ICE restarts (RFC 8445 section 9).
struct ICEGeneration {
  /// Counts restarts, from 0.
  let number: UInt32
  let local: ICECredentials
  /// The local password as the key of requests that come in.
  let localKey: [UInt8]
  private(set) var remote: ICECredentials?
  /// The peer's password as the key of requests that go out.
  private(set) var remoteKey: [UInt8] = []
  private(set) var remoteIsLite = false

  init(number: UInt32, local: ICECredentials) {
    self.number = number
    self.local = local
    localKey = Array(local.password.utf8)
  }

  mutating func setRemote(_ credentials: ICECredentials, lite: Bool) {
    remote = credentials
    remoteKey = Array(credentials.password.utf8)
    remoteIsLite = lite
  }
}

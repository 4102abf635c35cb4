import ICE
import Lab
import Testing
import Wire

/// How the tests set meetings up.
extension VirtualMeeting {
  /// A meeting of nobody yet on a network without loss, where everything is near.
  static func nearby(seed: Int) -> VirtualMeeting {
    let meeting = VirtualMeeting(seed: UInt64(seed))
    meeting.link.delay = .microseconds(200)
    meeting.link.jitter = .microseconds(100)
    return meeting
  }

  /// Puts a server onto the network that answers Binding requests of anyone.
  func serve(_ address: String) {
    network.server = SocketAddress(address).map { VirtualTURNServer(address: $0) }
  }

  /// Adds an agent that signals fast, alone behind a NAT where one is given.
  func addEnd(_ addresses: [String], servers: [ICEServer] = [], nat: String? = nil) -> MeetingEnd {
    let end = add(
      addresses.compactMap { IPAddress($0) },
      nat: nat.flatMap { IPAddress($0) }.map { VirtualNAT(.portRestricted, address: $0) },
      settings: ICESettings(servers: servers))
    end.signalingDelay = .milliseconds(1)
    return end
  }

  /// Two agents that know of each other; gathering and checks have not begun.
  func addPair(_ left: [String], _ right: [String]) -> (MeetingEnd, MeetingEnd) {
    let (a, b) = (addEnd(left), addEnd(right))
    introduce(a, b)
    return (a, b)
  }

  func introduce(_ a: MeetingEnd, _ b: MeetingEnd) {
    a.step(.role(.controlling))
    b.step(.role(.controlled))
  }

  /// Begins on both sides: the credentials are there at once, candidates are trickled.
  func start(_ a: MeetingEnd, _ b: MeetingEnd) {
    a.learnPeer()
    b.learnPeer()
    a.gather()
    b.gather()
  }

  /// Two connected agents on a good network.
  static func connected(
    seed: Int = 1, _ left: [String] = ["192.0.2.1"], _ right: [String] = ["192.0.2.2"]
  ) -> (VirtualMeeting, MeetingEnd, MeetingEnd) {
    let meeting = VirtualMeeting.nearby(seed: seed)
    let (a, b) = meeting.addPair(left, right)
    meeting.start(a, b)
    meeting.run(for: .seconds(2))
    return (meeting, a, b)
  }
}

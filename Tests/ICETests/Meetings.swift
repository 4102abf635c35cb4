import ICE
import Lab
import Testing
import Wire

/// Helpers that set meetings up.
extension VirtualMeeting {
  /// Returns an empty meeting on a lossless network with short delays.
  static func nearby(seed: Int) -> VirtualMeeting {
    let meeting = VirtualMeeting(seed: UInt64(seed))
    meeting.link.delay = .microseconds(200)
    meeting.link.jitter = .microseconds(100)
    return meeting
  }

  /// Adds to the network a server that answers any Binding request.
  func serve(_ address: String) {
    network.server = SocketAddress(address).map { VirtualTURNServer(address: $0) }
  }

  /// Adds an agent with fast signaling, behind a separate NAT if one is given.
  func addEnd(_ addresses: [String], servers: [ICEServer] = [], nat: String? = nil) -> MeetingEnd {
    let end = add(
      addresses.compactMap { IPAddress($0) },
      nat: nat.flatMap { IPAddress($0) }.map { VirtualNAT(.portRestricted, address: $0) },
      settings: ICESettings(servers: servers))
    end.signalingDelay = .milliseconds(1)
    return end
  }

  /// Adds two agents that know of each other; gathering and checks have not started.
  func addPair(_ left: [String], _ right: [String]) -> (MeetingEnd, MeetingEnd) {
    let (a, b) = (addEnd(left), addEnd(right))
    introduce(a, b)
    return (a, b)
  }

  func introduce(_ a: MeetingEnd, _ b: MeetingEnd) {
    a.step(.role(.controlling))
    b.step(.role(.controlled))
  }

  /// Starts both sides: credentials are exchanged at once, candidates are trickled.
  func start(_ a: MeetingEnd, _ b: MeetingEnd) {
    a.learnPeer()
    b.learnPeer()
    a.gather()
    b.gather()
  }

  /// Returns two connected agents on a good network.
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

import Tape
import Testing
import Wire

@testable import Live

/// Tests the table of a loop's open sockets without the loop.
struct OpenSocketsTests {
  private let poller: Poller
  private let thread: LoopThread
  private let loopback = IPAddress(ipv4: 0x7f00_0001)

  init() throws {
    poller = try Poller()
    thread = try LoopThread(mailbox: Mailbox())
  }

  private func resident(_ key: Int) -> Resident {
    let fixture = DriverFixture()
    let key = MediaLoop.PeerKey(key)
    return Resident(
      key: key, driver: fixture.driver, port: SocketSet(key: key, thread: thread),
      bind: .automatic, clock: fixture.clock.takeClock, interfaces: [])
  }

  @Test func tagsBeginAfterThoseThatAreTaken() {
    var open = OpenSockets(poller, after: 7)
    let tags = [open.nextTag(), open.nextTag()]
    #expect(tags == [8, 9])
  }

  @Test func aDatagramLeadsToTheSocketThatReceivedIt() throws {
    var open = OpenSockets(poller, after: 2)
    let sockets = [try UDPSocket(on: loopback), try UDPSocket(on: loopback)]
    var tags: [Poller.Tag] = []
    for (key, socket) in sockets.enumerated() {
      tags.append(try open.add(OpenSocket(socket: socket, resident: resident(key))))
    }
    #expect(sockets[0].send([1], inDatagramsOf: 1, to: sockets[1].local) == 0)
    #expect(try poller.wait(waits: true) == 1)
    let tag = poller.tag(at: 0)
    #expect(tag == tags[1] && open.socket(tag)?.socket === sockets[1])
    #expect(open.socket(tag)?.resident.key == MediaLoop.PeerKey(1))
    #expect(open.stream(tag) == nil && open.listener(tag) == nil)
    open.closeSocket(tags[1])
    #expect(open.socket(tags[1]) == nil && open.socket(tags[0]) != nil)
    // The closed socket is no longer watched.
    #expect(sockets[0].send([1], inDatagramsOf: 1, to: sockets[1].local) == 0)
    #expect(try poller.wait(waits: false) == 0)
  }

  @Test func aListenerAndItsConnectionsAreClosedApart() throws {
    var open = OpenSockets(poller, after: 2)
    let resident = resident(0)
    let listening = try ListenSocket(on: loopback)
    let listener = try open.add(
      OpenListener(socket: listening, resident: resident, port: resident.port))
    let calling = try StreamSocket(
      to: StreamTarget(local: loopback, remote: listening.local, kind: .peer, name: ""))
    let stream = try open.add(
      OpenStream(stream: calling, resident: resident, port: resident.port, id: 5))
    #expect(listener != stream && open.stream(stream)?.id == 5)
    open.closeListener(listener)
    #expect(open.listener(listener) == nil && open.stream(stream)?.stream === calling)
    open.closeStream(listener)
    #expect(open.stream(stream) != nil)
    open.closeStream(stream)
    #expect(open.stream(stream) == nil)
  }

  /// A tag is used only once, even if its descriptor could not be watched.
  @Test func aDescriptorThatCannotBeWatchedIsNotKept() throws {
    var open = OpenSockets(poller, after: 2)
    let socket = try UDPSocket(on: loopback)
    _ = try open.add(OpenSocket(socket: socket, resident: resident(0)))
    #expect(throws: SystemError.self) {
      try open.add(OpenSocket(socket: socket, resident: resident(0)))
    }
    #expect(open.socket(4) == nil)
    let next = open.nextTag()
    #expect(next == 5)
  }
}

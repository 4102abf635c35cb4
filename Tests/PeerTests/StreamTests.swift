import JSEP
import Lab
import Media
import Peer
import Testing
import Wire

struct StreamTests {
  private static let tone = MediaSource.tone(hertz: 440, pauseSeconds: 0)
  private static let pattern = MediaSource.pattern(width: 64, height: 48, framesPerSecond: 10)

  private func stream(_ id: String, _ tracks: [String]) -> MediaStreamInit {
    MediaStreamInit(
      id: id,
      tracks: tracks.enumerated().map { index, track in
        index == 0
          ? .init(id: track, kind: .audio, source: StreamTests.tone)
          : .init(id: track, kind: .video, source: StreamTests.pattern)
      })
  }

  private func streamEvents(_ call: VirtualCall, _ peer: Int) -> [String] {
    call.events[peer].compactMap { entry in
      switch entry.event {
      case .streamAdded(let stream):
        "+\(stream.id) \(stream.tracks.map { $0.id ?? "-" }.joined(separator: ","))"
      case .streamRemoved(let id): "-\(id)"
      default: nil
      }
    }
  }

  private func streams(_ call: VirtualCall, _ peer: Int) -> MediaStreams {
    guard case .streams(let streams) = call.call(peer, .streams) else { return MediaStreams() }
    return streams
  }

  @Test func streamsAreReportedOnlyToThePeer() {
    let call = VirtualCall(seed: 50)
    #expect(call.call(0, .addStream(stream("one", ["a", "v"]))).error == nil)
    #expect(call.call(0, .addStream(stream("two", ["b"]))).error == nil)
    #expect(call.call(1, .addStream(stream("back", ["c"]))).error == nil)
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(1))
    #expect(streamEvents(call, 0) == ["+back c"])
    #expect(streamEvents(call, 1) == ["+one a,v", "+two b"])
    #expect(
      streams(call, 0).local
        == streams(call, 1).remote.map { remote in
          var local = remote
          for index in local.tracks.indices {
            local.tracks[index].transceiver =
              streams(call, 0).local
              .flatMap(\.tracks).first { $0.id == local.tracks[index].id }?.transceiver ?? 0
          }
          return local
        })
    #expect(call.frames(of: 1, kind: .video, isInbound: true).count > 5)

    call.call(0, .removeStream("one"))
    #expect(call.negotiate() == nil)
    #expect(streamEvents(call, 1) == ["+one a,v", "+two b", "-one"])
    #expect(streamEvents(call, 0) == ["+back c"])
    #expect(streams(call, 0).local.map(\.id) == ["two"])
    call.run(for: .milliseconds(200))
    let before = call.frames(of: 0, kind: .video, isInbound: false).count
    call.run(for: .seconds(1))
    #expect(call.frames(of: 0, kind: .video, isInbound: false).count == before)
    // The identifiers are free again.
    #expect(call.call(0, .addStream(stream("one", ["a", "v"]))).error == nil)
    #expect(call.negotiate() == nil)
    #expect(streamEvents(call, 1).last == "+one a,v")
  }

  @Test func duplicatesAreRefusedWithoutSideEffects() {
    let call = VirtualCall(seed: 51)
    call.call(0, .addStream(stream("one", ["a", "v"])))
    let before = streams(call, 0)
    for wrong in [stream("one", ["x"]), stream("new", ["a"]), stream("new", ["n", "n"])] {
      let error = call.call(0, .addStream(wrong)).error
      #expect(error?.isDuplicateID == true, "\(wrong)")
      #expect(streams(call, 0) == before)
    }
    #expect(call.call(0, .addStream(stream("new", []))).error?.name == "InvalidAccessError")
    #expect(call.call(0, .removeStream("new")).error?.name == "InvalidAccessError")
    let track = PeerCall.addTrack(
      kind: .audio, streamIDs: ["s"], source: StreamTests.tone, trackID: "a")
    #expect(call.call(0, track).error?.isDuplicateID == true)
  }

  @Test func aTrackOfTwoStreamsContinuesInTheOther() {
    let call = VirtualCall(seed: 52)
    call.call(0, .addTrack(kind: .audio, streamIDs: ["s", "t"], source: StreamTests.tone))
    #expect(call.negotiate() == nil)
    #expect(streamEvents(call, 1).map { $0.prefix(2) } == ["+s", "+t"])
    call.call(0, .removeStream("s"))
    #expect(call.negotiate() == nil)
    #expect(streamEvents(call, 1).last == "-s")
    call.run(for: .seconds(1))
    #expect(call.frames(of: 1, kind: .audio, isInbound: true).count > 30)
    // The track moves to another stream without being sent again.
    call.call(0, .setStreams(transceiver: 1, ["u"]))
    #expect(call.negotiate() == nil)
    #expect(streamEvents(call, 1).suffix(2).map { $0.prefix(2) } == ["+u", "-t"])
  }
}

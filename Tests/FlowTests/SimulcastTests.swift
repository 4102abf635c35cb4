import RTP
import Testing
import Wire

@testable import Flow

/// Tests a section with several layers, each of which is a separate stream.
struct SimulcastTests {
  private static let extensions = [
    FlowSection.HeaderExtensionID(uri: HeaderExtensionURI.mid.rawValue, id: 1),
    FlowSection.HeaderExtensionID(uri: HeaderExtensionURI.streamID.rawValue, id: 2),
    FlowSection.HeaderExtensionID(uri: HeaderExtensionURI.repairedStreamID.rawValue, id: 3),
  ]
  private let rids = ["q", "h", "f"]

  /// The sending and the receiving side of a section with layers.
  private var sections: [FlowSection] {
    let codec = Agreed.videoFrame(.vp8, feedback: Agreed.allFeedback, rtx: true)
    let sources = rids.enumerated().map {
      FlowSection.Sending.Source(rid: $1, ssrc: UInt32(10 + $0), rtxSSRC: UInt32(20 + $0))
    }
    func section(
      _ sending: FlowSection.Sending?, _ receiving: FlowSection.Receiving?
    ) -> FlowSection {
      FlowSection(
        mid: "v", kind: .video, sending: sending, receiving: receiving,
        extensions: Self.extensions, reducedSizeRTCP: true)
    }
    return [
      section(FlowSection.Sending(sources, codec: codec), nil),
      section(nil, FlowSection.Receiving(codecs: [codec], ssrcs: [], rtxSSRCs: [])),
    ]
  }

  private func pair() -> Pair { Pair(sections: sections.map { [$0] }) }

  /// Sends a key frame of each layer, and other frames.
  private func film(_ pair: Pair, frames: Int, rids: [String]? = nil) {
    let cameras = self.rids.map { _ in Camera() }
    for _ in 0..<frames {
      for (rid, camera) in zip(self.rids, cameras) where rids?.contains(rid) ?? true {
        pair.step(0, .frame(mid: "v", rid: rid, camera.frame(at: pair.now)))
      }
      pair.run(until: pair.now + .milliseconds(40))
    }
    pair.run(until: pair.now + .seconds(3))
  }

  /// Returns a packet's SSRC, its RID and its repaired RID; `-` stands for a missing one.
  private func names(_ bytes: [UInt8]) -> String {
    guard let header = try? RTPHeader(parsing: bytes.span.bytes) else { return "" }
    var map = HeaderExtensionMap()
    for agreed in Self.extensions { map.add(uri: agreed.uri, id: agreed.id) }
    let values = HeaderExtensions(parsing: bytes.span.bytes, header: header, map: map)
    func text(_ range: Range<Int>?) -> String {
      range.map { String(decoding: bytes[$0], as: UTF8.self) } ?? "-"
    }
    return "\(header.ssrc) \(text(values.streamID)) \(text(values.repairedStreamID))"
  }

  @Test func packetsNameTheirLayerUntilThePeerReportsOnIt() {
    var streams = SendStreams(Entropy(seed: [5]).stream("rtp"))
    streams.configure([SectionState(sections[0])])
    #expect(streams.activeSSRCs == [10, 20, 11, 21, 12, 22])
    for (place, rid) in rids.enumerated() {
      guard let index = streams.index(of: StreamName("v", rid)) else {
        Issue.record("no stream \(rid)")
        return
      }
      func packet() -> [UInt8] {
        let part = streams.split(Camera().frame(at: .zero), index, at: .zero)[0]
        return streams.packet(for: part, index, transportSequence: 0, sendTime: 0, at: .zero)
      }
      let bytes = packet()
      #expect(names(bytes) == "\(10 + place) \(rid) -")
      let sequence = UInt16(bytes[2]) << 8 | UInt16(bytes[3])
      let again = streams.retransmission(of: sequence, index, transportSequence: 0, sendTime: 0)
      #expect(names(again?.bytes ?? []) == "\(20 + place) - \(rid)")
      let block = ReportBlock(
        ssrc: UInt32(10 + place), fractionLost: 0, cumulativeLost: 0, highestSequence: 0,
        jitter: 0, lastSenderReport: 0, delaySinceLastSenderReport: 0)
      streams.receive(block, index, roundTrip: nil, at: .zero)
      #expect(names(packet()) == "\(10 + place) - -")
    }
  }

  @Test func keyFrameRequestsReachTheirLayer() {
    let pair = pair()
    film(pair, frames: 3)
    let compound = RTCPComposer.bytes([
      .pictureLoss(PictureLoss(senderSSRC: 1, mediaSSRC: 11)),
      .fullIntraRequest(
        FullIntraRequest(senderSSRC: 1, entries: [FullIntraRequest.Entry(ssrc: 12, number: 1)])),
    ])
    let before = pair.outputs[0].count
    pair.step(0, .rtcp(compound, arrival: pair.now))
    let asked = pair.outputs[0].dropFirst(before).compactMap { entry -> StreamName? in
      guard case .keyframeRequested(let mid, let rid) = entry.output else { return nil }
      return StreamName(mid, rid)
    }
    #expect(asked == [StreamName("v", "h"), StreamName("v", "f")])
  }

  @Test func packetsCarryVP8TemporalLayers() throws {
    var streams = SendStreams(Entropy(seed: [5]).stream("rtp"))
    streams.configure([SectionState(sections[0])])
    let camera = Camera()
    let layers: [(UInt8, Bool)] = [(0, true), (2, true), (1, true), (2, false), (0, false)]
    let descriptors = try layers.map { (id, sync) -> VP8Descriptor in
      var frame = camera.frame(at: .zero)
      frame.temporal = TemporalLayer(id: id, isSync: sync, isReference: id < 2)
      let part = streams.split(frame, 0, at: .zero)[0]
      let bytes = streams.packet(for: part, 0, transportSequence: 0, sendTime: 0, at: .zero)
      let header = try RTPHeader(parsing: bytes.span.bytes)
      var reader = ByteReader(bytes.span.bytes.extracting(header.payload))
      return try VP8Descriptor(parsing: &reader)
    }
    #expect(descriptors.map(\.temporalLayer) == [0, 2, 1, 2, 0])
    #expect(descriptors.map(\.baseLayerIndex) == [1, 1, 1, 1, 2])
    #expect(descriptors.map(\.isLayerSync) == [true, true, true, false, false])
    #expect(descriptors.map(\.isNonReference) == [false, true, false, true, false])
    #expect(Set(descriptors.map(\.pictureID)).count == 5)
  }

  @Test func layersAreReceivedInParallel() {
    let pair = pair()
    film(pair, frames: 10)
    let inbound = pair.flows[1].inbound
    #expect(inbound.map(\.rid) == rids && inbound.allSatisfy { $0.framesReceived == 10 })
    #expect(inbound.allSatisfy { !$0.hasEnded })
    let outbound = pair.flows[0].outbound
    #expect(outbound.map(\.rid) == rids && outbound.allSatisfy { $0.framesSent == 10 })
    // The receiver reported on every layer.
    #expect(pair.flows[0].outbound.allSatisfy { $0.remote != nil })
  }

  @Test func anotherSourceReplacesOnlyItsLayer() {
    let pair = pair()
    film(pair, frames: 3)
    var other = sections[0]
    other.sending?.sources[1].ssrc = 99
    pair.step(0, .configure([other]))
    film(pair, frames: 3)
    let live = pair.flows[1].inbound.filter { !$0.hasEnded }
    #expect(live.map(\.ssrc) == [10, 12, 99] && live.map(\.rid) == ["q", "f", "h"])
  }

  @Test func tooManyLayersAreRefused() {
    var receiver = MediaFlow(
      entropy: Entropy(seed: [5]).stream("rtp"),
      wallClock: WallClock(unixNanosecondsAtZero: 0), cname: "c")
    var outbox = Outbox<MediaFlow.Output>()
    receiver.step(.configure([sections[1]]), at: .zero, into: &outbox)
    receiver.step(.writable(true), at: .zero, into: &outbox)
    var map = HeaderExtensionMap()
    for agreed in Self.extensions { map.add(uri: agreed.uri, id: agreed.id) }
    for number in 0..<200 {
      var header = OutgoingHeader(
        payloadType: 96, sequence: 1, timestamp: 1, ssrc: UInt32(1 + number))
      header.streamID = Array("layer\(number)".utf8)
      var writer = ByteWriter(capacity: 64)
      header.write(into: &writer, map: map)
      writer.append([0x10, 0, 0, 0, 0])
      receiver.step(.rtp(writer.bytes, arrival: .zero), at: .zero, into: &outbox)
    }
    #expect(receiver.inbound.count == ReceiveStreams.layersMaximum)
    #expect(receiver.refused.unroutable == UInt64(200 - ReceiveStreams.layersMaximum))
  }
}

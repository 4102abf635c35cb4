package import Flow
package import ICE
import JSEP
package import Media
import SCTP
import Secure
package import Stats
package import Wire

/// A peer's state after a step as plain data, for debugging.
///
/// A snapshot reads all layers and changes none, so a replay can be inspected at any point.
package struct PeerSnapshot: Sendable {
  /// The connection's W3C states.
  package struct States: Sendable {
    package var connection: String
    package var signaling: String
    package var iceConnection: String
    package var iceGathering: String
    package var dtls: String
    package var sctp: String
    package var isClosed: Bool
    package var negotiationIsNeeded: Bool
  }

  /// A transport's path, keys and counters.
  package struct Transport: Sendable {
    package var local: String?
    package var remote: String?
    package var failure: String?
    package var dtlsRole: String?
    package var cipherSuite: String?
    package var srtpProfile: String?
    package var packetsSent: UInt64
    package var packetsReceived: UInt64
    package var bytesSent: UInt64
    package var bytesReceived: UInt64
  }

  /// A transceiver: its directions, by their W3C names, and its m-section.
  package struct Transceiver: Sendable {
    package var id: UInt32
    package var kind: String
    package var mid: String?
    package var direction: String
    package var currentDirection: String?
  }

  /// A sender's source and encoder.
  package struct Sending: Sendable {
    package var transceiver: UInt32
    package var kind: String
    package var ssrc: UInt32
    package var isRunning: Bool
    package var framesEncoded: UInt64
    package var keyFramesEncoded: UInt64
    package var encodedBytes: UInt64
    package var width: Int
    package var height: Int
    package var deadline: Instant?
  }

  /// The playout of a received track: its delay, buffer and counters.
  package struct Receiving: Sendable {
    package var transceiver: UInt32
    package var mid: String
    package var audio: AudioPlayoutSnapshot?
    package var video: VideoPlayoutSnapshot?
  }

  /// A data channel that is not closed.
  package struct Channel: Sendable {
    package var number: UInt32
    package var label: String
    package var isOpen: Bool
    package var bufferedBytes: UInt64
  }

  /// The number of bytes drawn from a random stream.
  package struct Drawn: Hashable, Sendable {
    package var stream: String
    package var bytes: UInt64
  }

  /// The next deadline of one of the peer's layers.
  package struct Wake: Hashable, Sendable {
    package var layer: String
    package var at: Instant
  }

  /// A kind of refusal with its count.
  package struct Refusal: Hashable, Sendable {
    package var reason: String
    package var count: UInt64
  }

  /// A transport other than the first, with its flow.
  package struct Further: Sendable {
    package var number: Int
    package var dtls: String
    package var transport: Transport
    package var ice: ICESnapshot
    package var flow: FlowSnapshot
  }

  /// The last step's instant.
  package var at: Instant
  package var states: States
  package var transport: Transport
  package var transceivers: [Transceiver]
  package var sending: [Sending]
  package var receiving: [Receiving]
  /// The combined target of all video encoders in bit/s; nil until it is known.
  package var videoBitrate: UInt64?
  package var ice: ICESnapshot
  package var flow: FlowSnapshot
  /// The transports of sections that are not bundled with the first.
  package var furtherTransports: [Further]
  package var channels: [Channel]
  package var refusals: [Refusal]
  package var entropy: [Drawn]
  package var deadlines: [Wake]
}

extension PeerMachine {
  /// The peer's current state; nil before its genesis.
  package var snapshot: PeerSnapshot? { stack?.snapshot }

  /// Returns the current stats, or only the objects of the given types.
  ///
  /// Unlike getStats, this is not a call in the take, and the codecs' processing times are absent.
  package func stats(of types: Set<String>?) -> StatsReport {
    stack?.stats(codecTimes: []).report(of: types) ?? StatsReport()
  }
}

extension PeerStack {
  /// The stack's state after the last step.
  var snapshot: PeerSnapshot {
    PeerSnapshot(
      at: now,
      states: PeerSnapshot.States(
        connection: states.connection.rawValue, signaling: states.signaling.rawValue,
        iceConnection: states.iceConnection.rawValue,
        iceGathering: states.iceGathering.rawValue,
        dtls: bundles.first.dtlsState.rawValue,
        sctp: states.sctp?.rawValue ?? "new",
        isClosed: life.isClosed, negotiationIsNeeded: life.negotiationIsNeeded),
      transport: describe(bundles.first.transport),
      transceivers: negotiation.transceivers.map {
        PeerSnapshot.Transceiver(
          id: $0.id, kind: $0.kind.rawValue, mid: $0.mid, direction: $0.direction.rawValue,
          currentDirection: $0.currentDirection?.rawValue)
      },
      sending: tracks.sending.map(describe), receiving: tracks.receiving.map(describe),
      videoBitrate: bundles.all.compactMap(\.videoBitrate).reduce(nil) { ($0 ?? 0) + $1 },
      ice: bundles.first.transport.agent.snapshot, flow: bundles.first.flow.snapshot,
      furtherTransports: bundles.all.dropFirst().map { bundle in
        PeerSnapshot.Further(
          number: bundle.number, dtls: bundle.dtlsState.rawValue,
          transport: describe(bundle.transport), ice: bundle.transport.agent.snapshot,
          flow: bundle.flow.snapshot)
      },
      channels: data.channels.map(describe),
      refusals: refusals.all.map { PeerSnapshot.Refusal(reason: $0.key, count: $0.count) },
      entropy: entropy.ledger.map { PeerSnapshot.Drawn(stream: $0.label, bytes: $0.drawn) },
      deadlines: wakes)
  }

  private func describe(_ transport: borrowing PeerTransport) -> PeerSnapshot.Transport {
    PeerSnapshot.Transport(
      local: transport.path?.local.description, remote: transport.path?.remote.description,
      failure: transport.failure, dtlsRole: transport.dtlsRole?.rawValue,
      cipherSuite: transport.secured?.cipherSuite,
      srtpProfile: transport.secured?.profile?.description,
      packetsSent: transport.counters.packetsSent,
      packetsReceived: transport.counters.packetsReceived, bytesSent: transport.counters.bytesSent,
      bytesReceived: transport.counters.bytesReceived)
  }

  private func describe(_ track: SendingTrack) -> PeerSnapshot.Sending {
    PeerSnapshot.Sending(
      transceiver: track.transceiver, kind: track.kind.rawValue, ssrc: track.stream.ssrc,
      isRunning: track.isRunning, framesEncoded: track.totals.framesEncoded,
      keyFramesEncoded: track.totals.keyFramesEncoded, encodedBytes: track.totals.encodedBytes,
      width: track.totals.width, height: track.totals.height, deadline: track.deadline)
  }

  private func describe(_ track: ReceivingTrack) -> PeerSnapshot.Receiving {
    PeerSnapshot.Receiving(
      transceiver: track.transceiver, mid: track.mid, audio: track.audio?.snapshot,
      video: track.video?.snapshot)
  }

  private func describe(_ channel: DataTransport.Channel) -> PeerSnapshot.Channel {
    PeerSnapshot.Channel(
      number: channel.number.rawValue, label: channel.options.label, isOpen: channel.wasOpen,
      bufferedBytes: data.association.bufferedAmount(of: channel.number))
  }

  /// The deadlines of transports, data, flows, establishment and tracks, earliest first; equal
  /// deadlines keep this order.
  private var wakes: [PeerSnapshot.Wake] {
    var wakes: [PeerSnapshot.Wake] = []
    func add(_ layer: String, _ at: Instant?) {
      if let at { wakes.append(PeerSnapshot.Wake(layer: layer, at: at)) }
    }
    for bundle in bundles.all {
      add(bundle.wake("ice"), bundle.transport.deadlines.ice)
      add(bundle.wake("dtls"), bundle.transport.deadlines.dtls)
    }
    add("sctp", data.deadline)
    for bundle in bundles.all { add(bundle.wake("flow"), bundle.flow.deadline) }
    add("establishment", life.deadline)
    for track in tracks.receiving {
      add("\(track.kind.rawValue) playout of transceiver \(track.transceiver)", track.deadline)
    }
    for track in tracks.sending {
      add("\(track.kind.rawValue) capture of transceiver \(track.transceiver)", track.deadline)
    }
    return wakes.enumerated().sorted { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }
      .map(\.element)
  }
}

extension Bundle {
  /// Returns a layer's name, numbered for bundles after the first: `ice`, `ice 2`.
  fileprivate func wake(_ layer: String) -> String {
    number == 0 ? layer : "\(layer) \(number + 1)"
  }
}

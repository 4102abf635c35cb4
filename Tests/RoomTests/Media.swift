import Lab
import Peer
import Room
import Wire

/// The participants and media used in tests.
extension PublishedMedia {
  static func video(
    _ number: UInt32, of owner: String, extraValue: String = "", profiles: [VideoProfile] = []
  ) -> PublishedMedia {
    PublishedMedia(
      id: MediaID(number), owner: owner, kind: .video, extraValue: extraValue, profiles: profiles)
  }

  static func audio(_ number: UInt32, of owner: String) -> PublishedMedia {
    PublishedMedia(id: MediaID(number), owner: owner, kind: .audio)
  }
}

extension ParticipantInfo {
  static func named(_ id: String, _ media: PublishedMedia...) -> ParticipantInfo {
    ParticipantInfo(id: id, displayName: id.uppercased(), media: media)
  }
}

extension LocalMediaInfo {
  static let voice = LocalMediaInfo(id: LocalMediaID(1), kind: .audio)
  static let camera = LocalMediaInfo(id: LocalMediaID(2), kind: .video)
}

extension RoomReply? {
  /// The error's number; nil for success.
  var code: RoomErrorCode? {
    if case .failed(let failure) = self { return failure.code }
    return nil
  }
}

extension VirtualRoom {
  /// The reported errors, by number.
  var errors: [RoomErrorCode] {
    events.compactMap { if case .failed(let failure) = $0 { failure.code } else { nil } }
  }

  /// Reports the service's numbers for the local media published last.
  func acceptPublication(_ media: (LocalMediaInfo, UInt32)...) {
    serve(outputs: media.map { .event(.localPublished($0.0.id, MediaID($0.1))) })
    confirm()
  }

  /// Subscribes to a video, which then appears in a section of connection 2.
  func receive(_ number: UInt32, mid: String, transceiver: UInt32) {
    call(.subscribe(MediaID(number)))
    confirm()
    if snapshot.connections.allSatisfy({ $0.number != 2 }) {
      serve(.open(.down, ICEServers()), of: 2)
    }
    serve(.assigned(MediaID(number), ConnectionID(2), mid: mid))
    report(.receiving(mid: mid, transceiver: transceiver), of: 2)
  }
}

/// Errors with which tests let a connection's requests fail.
enum PeerFailure {
  static let syntax = PeerError(name: "SyntaxError", message: "no description")
}

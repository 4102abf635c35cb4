import JSEP
package import Media
package import Peer
import SDP
import Wire

extension VirtualCall {
  /// Makes a peer send layers with these names, the smallest first; returns its transceiver.
  @discardableResult
  package func addLayers(
    _ encodings: [RTPEncoding], _ videoFrames: MediaSource, from peer: Int = 0
  ) -> UInt32? {
    let reply = call(
      peer,
      .addTransceiver(
        kind: .video, direction: .sendonly, streamIDs: ["s"], source: videoFrames,
        sendEncodings: encodings))
    guard case .transceiver(let transceiver) = reply else { return nil }
    return transceiver.id
  }

  /// Edits descriptions so that an answer accepts layers, as SFUs do; an endpoint answers without
  /// them.
  /// - Parameter layers: as in a simulcast line (RFC 8853 section 5.1): `q;h;~f`.
  package static func accepting(_ layers: String) -> (String) -> String {
    { sdp in
      guard var document = try? SDPDocument(parsing: sdp),
        let index = document.sections.firstIndex(where: { $0.kind == .video }),
        document.sections[index].simulcast == nil
      else { return sdp }
      for rid in layers.split(whereSeparator: { ";,".contains($0) }) {
        let id = String(rid.drop { $0 == "~" })
        document.sections[index].append(RestrictionID(id: id, isSent: false))
      }
      document.sections[index].append(Simulcast(received: layers))
      return document.text
    }
  }
}

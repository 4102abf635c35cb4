import JSEP
package import Secure
import Wire

// The keys that DTLS agrees on.
extension PeerTransport {
  /// How many DTLS datagrams are kept for the path.
  private static let waitingMaximum = 16

  /// The state of the DTLS association.
  package var dtlsState: DTLSState { dtls?.state ?? .new }

  /// Whether packets can be protected.
  package var isSecured: Bool { srtp != nil }

  /// The own certificates in DER.
  package var certificates: [[UInt8]] { dtls?.certificates ?? [] }

  /// The certificate that the peer was shown, or else the first that it may be shown, in DER.
  package var localCertificate: [UInt8]? { secured?.localCertificate ?? dtls?.certificates.first }

  mutating func drive(_ input: DTLSTransport.Input) {
    guard let dtls else { return }
    let isOutermost = dtlsOutputs.isEmpty
    dtls.step(input, at: now, into: &dtlsOutputs)
    guard isOutermost else { return }
    while let output = dtlsOutputs.next() { handle(output) }
  }

  private mutating func handle(_ output: DTLSTransport.Output) {
    switch output {
    case .datagram(let bytes): sendHandshake(bytes)
    case .state(let state): emit(.dtlsState(state))
    case .established(let result): secure(result)
    case .data(let packet):
      show(.sctp, received: packet)
      emit(.data(packet))
    case .failure(let reason): emit(.refused(layer: "dtls", reason))
    }
  }

  private mutating func sendHandshake(_ bytes: [UInt8]) {
    if path != nil {
      send(bytes)
    } else if waitingForPath.count < PeerTransport.waitingMaximum {
      waitingForPath.append(bytes)
    }
  }

  /// Starts the handshake once the roles are agreed and there is a path: its time limit runs from
  /// here.
  ///
  /// Other fingerprints mean another association (RFC 8842 section 4), with whoever is at the end
  /// of the path that ICE finds; media goes on with the keys of the former one until then.
  mutating func startDTLSIfReady() {
    guard let dtls, path != nil, let remote, let isClient = remote.localIsDTLSClient else { return }
    let fingerprints = remote.fingerprints
    let isFirst = dtls.state == .new
    guard isFirst || fingerprints != remoteFingerprints && !pathIsOld else { return }
    let role: DTLSRole = isClient ? .client : .server
    dtlsRole = role
    remoteFingerprints = fingerprints
    waitingForPath = []
    drive(
      isFirst
        ? DTLSTransport.Input.start(role, remoteFingerprints: fingerprints)
        : .restart(role, remoteFingerprints: fingerprints))
  }

  private mutating func secure(_ result: DTLSResult) {
    do throws(SecureError) {
      srtp = try security.protection(result)
    } catch {
      emit(.refused(layer: "srtp", error.reason))
      return
    }
    secured = result
    emit(.secured(result, dtlsRole ?? .client))
  }
}

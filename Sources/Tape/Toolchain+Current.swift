import CSupport
import Media
package import Secure

extension Toolchain {
  /// What this process runs on; throws when its OpenSSL cannot be driven deterministically.
  package static func current() throws(SecureError) -> Toolchain {
    let engine = try DTLSTransport.engineFingerprint()
    return Toolchain(
      openssl: "\(DTLSTransport.opensslVersion), engine \(engine.prefix(16))",
      srtp: SRTPContext.libraryVersion, opus: LibraryCodecs.opusVersion,
      vpx: LibraryCodecs.vpxVersion, cpu: String(cString: csupport_cpu_features()))
  }
}

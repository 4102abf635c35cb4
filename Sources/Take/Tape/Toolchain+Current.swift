import CDTLS
import Media
import Secure

extension Toolchain {
  /// What this process runs on; the error about a take tells that OpenSSL cannot be driven
  /// deterministically here.
  package static func current(for path: String) throws(TapeError) -> Toolchain {
    let engine: String
    do throws(SecureError) {
      engine = try DTLSTransport.engineFingerprint()
    } catch {
      throw TapeError(path: path, place: "", reason: error.reason)
    }
    return Toolchain(
      openssl: DTLSTransport.opensslVersion + Toolchain.engineMark + engine.prefix(16),
      srtp: SRTPContext.libraryVersion, opus: LibraryCodecs.opusVersion,
      vpx: LibraryCodecs.vpxVersion, cpu: String(cString: cdtls_cpu_features()),
      openh264: LibraryCodecs.openH264Version, dav1d: LibraryCodecs.dav1dVersion)
  }
}

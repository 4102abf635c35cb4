import CDTLS
import Testing

/// Tests the C code for an association's certificates.
struct CertificateTests {
  @Test func anAssociationHasOneCertificateOfEachType() throws {
    var callbacks = cdtls_callbacks()
    callbacks.draw = { _, bytes, count in
      for index in 0..<count { bytes?[index] = UInt8(truncatingIfNeeded: index + 1) }
      return 1
    }
    let association = try #require(cdtls_new(&callbacks))
    defer { cdtls_free(association) }
    #expect(cdtls_add_certificate(association, 0, 0, 1_000) != nil)
    #expect(cdtls_add_certificate(association, 0, 0, 1_000) == nil)
  }
}

import Foundation
package import TLS

/// The files of a self-signed certificate for localhost and 127.0.0.1, removed with this object;
/// its key protects nothing.
package final class IdentityFiles: Sendable {
  private static let certificate = """
    -----BEGIN CERTIFICATE-----
    MIIBoDCCAUWgAwIBAgIUHx5xmjSrTrdXzGwgAUQxV8FdExwwCgYIKoZIzj0EAwIw
    FjEUMBIGA1UEAwwLUmV0YWtlIHRlc3QwIBcNMjQwMTAxMDAwMDAwWhgPMjEyMzEy
    MDgwMDAwMDBaMBYxFDASBgNVBAMMC1JldGFrZSB0ZXN0MFkwEwYHKoZIzj0CAQYI
    KoZIzj0DAQcDQgAEzA0PdXnf3NUpjFxlux9c278MayRdVp4nxyFRwnKcgZKv4qd4
    O7oXkFrXTWPaChq6HwSsmsinwlMAkRGbyBuHWqNvMG0wHQYDVR0OBBYEFNvTNUIx
    34l0BIGtUVTLcCvPdDXmMB8GA1UdIwQYMBaAFNvTNUIx34l0BIGtUVTLcCvPdDXm
    MA8GA1UdEwEB/wQFMAMBAf8wGgYDVR0RBBMwEYIJbG9jYWxob3N0hwR/AAABMAoG
    CCqGSM49BAMCA0kAMEYCIQDVQdZXOplsXJNRLgmUK/IgCs6f1UUrwlJatJVkv8OI
    GwIhANWZ2MgHwEFxEv8INceYm1PmghfJtnqLfPePDCGzDsOd
    -----END CERTIFICATE-----
    """
  private static let key = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg4KlcOYTl3KYP4316
    9CkbUS7ezxtCVoLgIFevw4Z0JBahRANCAATMDQ91ed/c1SmMXGW7H1zbvwxrJF1W
    nifHIVHCcpyBkq/ip3g7uheQWtdNY9oKGrofBKyayKfCUwCREZvIG4da
    -----END PRIVATE KEY-----
    """

  private let folder = FileManager.default.temporaryDirectory.appending(path: "retake-\(UUID())")

  package var identity: TLSIdentity {
    TLSIdentity(certificate: path("certificate"), key: path("key"))
  }

  package init() throws {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    for (name, text) in [("certificate", Self.certificate), ("key", Self.key)] {
      try Data(text.utf8).write(to: folder.appending(path: name))
    }
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  package func path(_ name: String) -> String { folder.appending(path: name).path }
}

import COpenSSL

/// A server's certificate and key, as PEM files.
package struct TLSIdentity: Hashable, Sendable {
  package var certificate: String
  package var key: String

  package init(certificate: String, key: String) {
    self.certificate = certificate
    self.key = key
  }
}

/// An end of a TLS connection.
package enum TLSRole {
  /// Connects to a server by its name or address, which its certificate must contain (RFC 9110
  /// section 4.3.4).
  ///
  /// The client trusts the authorities in the `authorities` file, or else the system's. As in every
  /// program that uses OpenSSL, `SSL_CERT_FILE` replaces the system's authorities. The protocol, if
  /// any, is offered by its ALPN name (RFC 7301).
  case client(host: String, authorities: String?, protocol: String?)
  case server(TLSIdentity)
}

/// An error that keeps TLS from starting.
package struct TLSError: Error, Hashable, Sendable {
  package var reason: String
}

/// An OpenSSL connection that reads from and writes to memory buffers; the caller moves the bytes
/// to and from the socket.
package final class TLSSession {
  /// A handshake's progress.
  package enum Progress { case waiting, done, failed }

  /// The outcome of reading: decrypted bytes, or why there are none.
  package enum Reading {
    case bytes([UInt8])
    case waiting
    case closed
    case failed
  }

  private static let recordMaximum = 16_384

  private let contextHandle: OpaquePointer
  private let handle: OpaquePointer
  private let input: OpaquePointer
  private let output: OpaquePointer

  package init(_ role: TLSRole) throws(TLSError) {
    ERR_clear_error()
    guard let context = SSL_CTX_new(TLS_method()) else {
      throw TLSError(reason: "OpenSSL cannot create a TLS context")
    }
    guard let session = SSL_new(context), let input = BIO_new(BIO_s_mem()),
      let output = BIO_new(BIO_s_mem())
    else {
      SSL_CTX_free(context)
      throw TLSError(reason: "OpenSSL has no memory for a TLS session")
    }
    // From here on, the session owns both buffers, and this object owns the session.
    SSL_set_bio(session, input, output)
    contextHandle = context
    handle = session
    self.input = input
    self.output = output
    SSL_ctrl(session, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_2_VERSION), nil)
    switch role {
    case .client(let host, let authorities, let name): try prepare(host, authorities, name)
    case .server(let identity): try prepare(identity)
    }
  }

  private func prepare(
    _ host: String, _ authorities: String?, _ protocolName: String?
  ) throws(TLSError) {
    let isLoaded =
      authorities.map { SSL_CTX_load_verify_file(contextHandle, $0) }
      ?? SSL_CTX_set_default_verify_paths(contextHandle)
    guard isLoaded == 1 else {
      throw TLSError(reason: "the certificates of authorities cannot be read")
    }
    SSL_set_verify(handle, SSL_VERIFY_PEER, nil)
    SSL_set_connect_state(handle)
    if let protocolName {
      let protocols = [UInt8(clamping: protocolName.utf8.count)] + Array(protocolName.utf8)
      SSL_set_alpn_protos(handle, protocols, UInt32(protocols.count))
    }
    if X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(handle), host) == 1 { return }
    var name = Array(host.utf8CString)
    SSL_ctrl(handle, SSL_CTRL_SET_TLSEXT_HOSTNAME, Int(TLSEXT_NAMETYPE_host_name), &name)
    guard SSL_set1_host(handle, host) == 1 else {
      throw TLSError(reason: "\(host) is not a valid host name for a certificate")
    }
  }

  private func prepare(_ identity: TLSIdentity) throws(TLSError) {
    guard SSL_use_certificate_chain_file(handle, identity.certificate) == 1 else {
      throw TLSError(reason: "\(identity.certificate) contains no PEM certificate")
    }
    guard SSL_use_PrivateKey_file(handle, identity.key, SSL_FILETYPE_PEM) == 1 else {
      throw TLSError(
        reason: "\(identity.key) contains no PEM private key for \(identity.certificate)")
    }
    SSL_set_accept_state(handle)
  }

  deinit {
    SSL_free(handle)
    SSL_CTX_free(contextHandle)
  }

  /// The reason that the connection failed, in one sentence.
  package private(set) var failure = "the TLS connection was broken off"

  /// Adds bytes from the socket; fails only if memory runs out.
  package func receive(_ bytes: [UInt8]) { BIO_write(input, bytes, Int32(bytes.count)) }

  package func handshake() -> Progress {
    ERR_clear_error()
    let result = SSL_do_handshake(handle)
    if result == 1 { return .done }
    if isWaiting(result) { return .waiting }
    record("the TLS handshake failed")
    return .failed
  }

  package func read() -> Reading {
    ERR_clear_error()
    var result: Int32 = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: TLSSession.recordMaximum) { buffer, count in
      result = SSL_read(handle, buffer.baseAddress, Int32(buffer.count))
      count = Int(max(0, result))
    }
    if result > 0 { return .bytes(bytes) }
    if isWaiting(result) { return .waiting }
    if SSL_get_error(handle, result) == SSL_ERROR_ZERO_RETURN { return .closed }
    record("the TLS connection broke")
    return .failed
  }

  /// Encrypts bytes; returns false if the connection is not established or is broken.
  package func write(_ bytes: [UInt8]) -> Bool {
    guard !bytes.isEmpty else { return true }
    ERR_clear_error()
    if SSL_write(handle, bytes, Int32(bytes.count)) == Int32(bytes.count) { return true }
    record("the TLS connection broke")
    return false
  }

  /// Adds close_notify to the output.
  package func shutdown() {
    ERR_clear_error()
    SSL_shutdown(handle)
  }

  /// Removes and returns the bytes to write to the socket.
  package func drainOutput() -> [UInt8] {
    let waiting = BIO_ctrl_pending(output)
    guard waiting > 0 else { return [] }
    return [UInt8](unsafeUninitializedCapacity: waiting) { buffer, count in
      count = Int(max(0, BIO_read(output, buffer.baseAddress, Int32(buffer.count))))
    }
  }

  private func isWaiting(_ result: Int32) -> Bool {
    SSL_get_error(handle, result) == SSL_ERROR_WANT_READ
  }

  /// Sets `failure` to OpenSSL's reason; prefers a certificate error, which is more specific than
  /// the alert it causes.
  private func record(_ what: String) {
    let verification = SSL_get_verify_result(handle)
    if verification != Int(X509_V_OK), let words = X509_verify_cert_error_string(verification) {
      failure = "the server's certificate is not trusted: \(String(cString: words))"
    } else if let words = ERR_reason_error_string(ERR_peek_last_error()) {
      failure = "\(what): \(String(cString: words))"
    } else {
      failure = what
    }
  }
}

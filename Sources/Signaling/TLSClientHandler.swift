import COpenSSL
import NIOCore

/// TLS between a client's socket and its HTTP, by OpenSSL: 1.2 or later, with a server that the
/// system's authorities vouch for under the name that was called (RFC 9110 section 4.3.4).
///
/// `SSL_CERT_FILE` names other authorities, as for every program with OpenSSL.
final class TLSClientHandler: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private let session: TLSSession
  private var isConnected = false
  private var isOver = false

  /// Takes the server's name or address, which its certificate must have.
  init(host: String) throws(HTTPError) {
    session = try TLSSession(host: host)
  }

  func channelActive(context: ChannelHandlerContext) {
    // The HTTP after this may speak once the handshake is done.
    advance(context)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var buffer = unwrapInboundIn(data)
    session.receive(buffer.readBytes(length: buffer.readableBytes) ?? [])
    advance(context)
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    var buffer = unwrapOutboundIn(data)
    guard session.write(buffer.readBytes(length: buffer.readableBytes) ?? []) else {
      promise?.fail(HTTPError(reason: session.failure))
      return
    }
    send(context, promise)
  }

  private func advance(_ context: ChannelHandlerContext) {
    guard !isOver else { return }
    if !isConnected {
      let progress = session.handshake()
      send(context, nil)
      switch progress {
      case .waiting: return
      case .failed:
        fail(context)
        return
      case .done:
        isConnected = true
        context.fireChannelActive()
      }
    }
    while !isOver {
      switch session.read() {
      case .bytes(let bytes):
        context.fireChannelRead(wrapInboundOut(context.channel.allocator.buffer(bytes: bytes)))
      case .waiting:
        send(context, nil)
        context.fireChannelReadComplete()
        return
      case .closed:
        isOver = true
        context.close(promise: nil)
      case .failed: fail(context)
      }
    }
  }

  private func fail(_ context: ChannelHandlerContext) {
    isOver = true
    context.fireErrorCaught(HTTPError(reason: session.failure))
    context.close(promise: nil)
  }

  private func send(_ context: ChannelHandlerContext, _ promise: EventLoopPromise<Void>?) {
    let bytes = session.takeOutput()
    guard !bytes.isEmpty else {
      promise?.succeed(())
      return
    }
    context.writeAndFlush(
      wrapOutboundOut(context.channel.allocator.buffer(bytes: bytes)), promise: promise)
  }
}

/// One TLS connection of OpenSSL between two memory buffers.
private final class TLSSession {
  enum Progress { case waiting, done, failed }

  enum Reading {
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

  init(host: String) throws(HTTPError) {
    ERR_clear_error()
    guard let context = SSL_CTX_new(TLS_client_method()) else {
      throw HTTPError(reason: "OpenSSL cannot make a TLS context")
    }
    guard SSL_CTX_set_default_verify_paths(context) == 1,
      SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_2_VERSION), nil) == 1,
      let session = SSL_new(context)
    else {
      SSL_CTX_free(context)
      throw HTTPError(reason: "OpenSSL cannot begin a TLS session")
    }
    guard let input = BIO_new(BIO_s_mem()), let output = BIO_new(BIO_s_mem()) else {
      SSL_free(session)
      SSL_CTX_free(context)
      throw HTTPError(reason: "OpenSSL has no memory for a TLS session")
    }
    // The session owns both from here on.
    SSL_set_bio(session, input, output)
    contextHandle = context
    handle = session
    self.input = input
    self.output = output
    SSL_set_verify(session, SSL_VERIFY_PEER, nil)
    SSL_set_connect_state(session)
    let isAddress = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host) == 1
    if !isAddress {
      var name = Array(host.utf8CString)
      SSL_ctrl(
        session, SSL_CTRL_SET_TLSEXT_HOSTNAME, Int(TLSEXT_NAMETYPE_host_name), &name)
      guard SSL_set1_host(session, host) == 1 else {
        throw HTTPError(reason: "\(host) is no name that a certificate could have")
      }
    }
    let protocols = [UInt8(8)] + Array("http/1.1".utf8)
    SSL_set_alpn_protos(session, protocols, UInt32(protocols.count))
  }

  deinit {
    SSL_free(handle)
    SSL_CTX_free(contextHandle)
  }

  /// Why the connection failed, in words.
  private(set) var failure = "the TLS connection was broken off"

  /// Takes bytes off the socket; memory is all that could be lacking.
  func receive(_ bytes: [UInt8]) { BIO_write(input, bytes, Int32(bytes.count)) }

  func handshake() -> Progress {
    ERR_clear_error()
    let result = SSL_do_handshake(handle)
    if result == 1 { return .done }
    if isWaiting(result) { return .waiting }
    note("the TLS handshake failed")
    return .failed
  }

  func read() -> Reading {
    ERR_clear_error()
    var result: Int32 = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: TLSSession.recordMaximum) { buffer, count in
      result = SSL_read(handle, buffer.baseAddress, Int32(buffer.count))
      count = Int(max(0, result))
    }
    if result > 0 { return .bytes(bytes) }
    if isWaiting(result) { return .waiting }
    if SSL_get_error(handle, result) == SSL_ERROR_ZERO_RETURN { return .closed }
    note("the TLS connection broke")
    return .failed
  }

  /// Encrypts bytes; false when the connection is not there.
  func write(_ bytes: [UInt8]) -> Bool {
    guard !bytes.isEmpty else { return true }
    ERR_clear_error()
    if SSL_write(handle, bytes, Int32(bytes.count)) == Int32(bytes.count) { return true }
    note("the TLS connection broke")
    return false
  }

  /// The bytes that the socket is to send.
  func takeOutput() -> [UInt8] {
    let waiting = BIO_ctrl_pending(output)
    guard waiting > 0 else { return [] }
    return [UInt8](unsafeUninitializedCapacity: waiting) { buffer, count in
      count = Int(max(0, BIO_read(output, buffer.baseAddress, Int32(buffer.count))))
    }
  }

  private func isWaiting(_ result: Int32) -> Bool {
    SSL_get_error(handle, result) == SSL_ERROR_WANT_READ
  }

  /// Puts OpenSSL's reason into words; that of a certificate says more than that of the alert.
  private func note(_ what: String) {
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

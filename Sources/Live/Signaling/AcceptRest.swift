import Glibc
import NIOCore
import NIOPosix

/// Stops accepting connections for a second when the server cannot, and reports that once.
///
/// The system keeps reporting waiting connections; without descriptors for them, the event loop
/// would do nothing else.
final class AcceptRest: ChannelInboundHandler {
  typealias InboundIn = any Channel

  private static let rest = TimeAmount.seconds(1)

  private let notice: @Sendable (String) -> Void
  private var hasSaid = false

  init(notice: @escaping @Sendable (String) -> Void) { self.notice = notice }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard let error = error as? IOError,
      [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(error.errnoCode)
    else { return context.fireErrorCaught(error) }
    if !hasSaid {
      hasSaid = true
      notice(
        "connections have to wait: \(String(cString: strerror(error.errnoCode))); raise "
          + "`ulimit -n`")
    }
    let channel = context.channel
    channel.setOption(.autoRead, value: false).whenComplete { _ in
      channel.eventLoop.scheduleTask(in: AcceptRest.rest) {
        channel.setOption(.autoRead, value: true).whenFailure { _ in channel.close(promise: nil) }
      }
    }
  }
}

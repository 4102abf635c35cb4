import CDTLS
import CProcess
import Glibc
import Testing

/// Tests the `gettimeofday` that replaces libc's.
struct ClockTests {
  @Test func gettimeofdayAcceptsANullTime() throws {
    // libc's header does not allow this call from Swift.
    typealias Ask = @convention(c) (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?) -> Int32
    let symbol = try #require(dlsym(dlopen(nil, RTLD_NOW), "gettimeofday"))
    let ask = unsafeBitCast(symbol, to: Ask.self)
    var zone = [UInt8](repeating: 1, count: 8)
    #expect(zone.withUnsafeMutableBytes { ask(nil, $0.baseAddress) } == 0)
    #expect(zone == [UInt8](repeating: 0, count: 8))
    #expect(ask(nil, nil) == 0)
    var clock = cdtls_frozen_clock()
    let before = cdtls_clock_freeze(&clock)
    let frozen = ask(nil, nil)
    _ = cdtls_clock_freeze(before)
    #expect(frozen == 0)
  }

  @Test func aPipeIsNotInheritedByChildren() {
    var ends: [Int32] = [-1, -1]
    #expect(cprocess_pipe(&ends) == 0)
    for end in ends {
      #expect(fcntl(end, F_GETFD) & FD_CLOEXEC != 0)
      close(end)
    }
  }
}

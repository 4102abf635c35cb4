import CDTLS
import CProcess
import Glibc
import Testing

/// What takes the place of libc's functions, and what asks the system.
struct ClockTests {
  @Test func gettimeofdayNeedsNoPlaceForTheTime() {
    var zone = [UInt8](repeating: 1, count: 8)
    #expect(zone.withUnsafeMutableBytes { gettimeofday(nil, $0.baseAddress) } == 0)
    #expect(zone == [UInt8](repeating: 0, count: 8))
    #expect(gettimeofday(nil, nil) == 0)
    var clock = cdtls_frozen_clock()
    let before = cdtls_clock_freeze(&clock)
    let frozen = gettimeofday(nil, nil)
    _ = cdtls_clock_freeze(before)
    #expect(frozen == 0)
  }

  @Test func aPipeIsNotThatOfChildren() {
    var ends: [Int32] = [-1, -1]
    #expect(cprocess_pipe(&ends) == 0)
    for end in ends {
      #expect(fcntl(end, F_GETFD) & FD_CLOEXEC != 0)
      close(end)
    }
  }
}

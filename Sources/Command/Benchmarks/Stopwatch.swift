import FoundationEssentials
import Glibc
import RetakeCommand

/// Time that passed, on the clock on the wall and on the processors.
struct Elapsed {
  /// Seconds.
  var wall: Double
  /// Seconds of all threads of the process together.
  var processor: Double
}

/// Measures how long something takes.
struct Stopwatch {
  private let begin = ContinuousClock.now
  private let used = Stopwatch.processorSeconds

  /// What passed since the stopwatch was made.
  var elapsed: Elapsed {
    Elapsed(
      wall: begin.duration(to: .now).seconds, processor: Stopwatch.processorSeconds - used)
  }

  /// The processor time of all threads of the process so far, in user and in system mode.
  static var processorSeconds: Double {
    var usage = rusage()
    guard getrusage(Int32(truncatingIfNeeded: RUSAGE_SELF.rawValue), &usage) == 0 else { return 0 }
    func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
    return seconds(usage.ru_utime) + seconds(usage.ru_stime)
  }
}

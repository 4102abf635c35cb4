package import Testing

/// Grants exclusive use of what exists only once in a process: its audio session, its devices, the
/// SDKs' singletons.
private actor MachineTurn {
  static let shared = MachineTurn()
  private var isTaken = false
  private var waiting: [CheckedContinuation<Void, Never>] = []

  func begin() async {
    guard isTaken else { return isTaken = true }
    await withCheckedContinuation { waiting.append($0) }
  }

  func end() {
    if waiting.isEmpty { isTaken = false } else { waiting.removeFirst().resume() }
  }
}

/// A suite that has exclusive use of the process's devices while it runs.
package struct MachineAlone: SuiteTrait, TestScoping {
  package func provideScope(
    for test: Test, testCase: Test.Case?,
    performing function: @Sendable () async throws -> Void
  ) async throws {
    await MachineTurn.shared.begin()
    do {
      try await function()
    } catch {
      await MachineTurn.shared.end()
      throw error
    }
    await MachineTurn.shared.end()
  }
}

extension Trait where Self == MachineAlone {
  /// A trait that reserves the process's devices for the suite while it runs.
  package static var machineAlone: Self { Self() }
}

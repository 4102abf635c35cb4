import Testing

@testable import AudioSession

/// Tests each part of an audio session separately.
struct SessionPartTests {
  @Test func removingTheLastActivationEndsTheSession() {
    var activations = SessionActivations()
    #expect(!activations.isLast && activations.count == 0)
    activations.add()
    activations.add()
    #expect(!activations.isLast)
    activations.remove()
    #expect(activations.isLast)
    activations.remove()
    activations.remove()
    activations.add()
    #expect(activations.count == 1)
  }

  @Test func theDeviceActivatesTheSessionOnce() {
    var activations = SessionActivations()
    activations.removeUnit()
    activations.addUnit()
    activations.addUnit()
    #expect(activations.count == 1 && activations.isLastOfUnit)
    activations.add()
    #expect(!activations.isLastOfUnit)
    activations.removeUnit()
    activations.removeUnit()
    // Only the application's activation remains.
    #expect(activations.count == 1 && activations.isLast && !activations.isLastOfUnit)
  }

  @Test func changesOfManualAudioAreReported() {
    var manual = ManualAudio()
    var changes: [Bool?] = [manual.consumeChange()]
    manual.setEnabled(true)
    manual.setEnabled(false)
    changes.append(manual.consumeChange())
    manual.setManual(true)
    changes += [manual.consumeChange(), manual.consumeChange()]
    manual.setEnabled(true)
    changes.append(manual.consumeChange())
    #expect(changes == [nil, nil, false, nil, true])
    #expect(manual.isManual && manual.isEnabled && manual.canPlayOrRecord)
  }

  @Test func aConnectionReplacesOneWithTheSameNumber() {
    var connections = SessionConnections()
    #expect(connections.isEmpty && !connections.sends && !connections.receives)
    connections.open(SessionConnections.Connection(id: 1, sends: true, receives: false))
    #expect(connections.sends && !connections.receives)
    connections.open(SessionConnections.Connection(id: 1, sends: false, receives: true))
    #expect(!connections.sends && connections.receives)
    connections.close(2)
    #expect(!connections.isEmpty)
    connections.close(1)
    #expect(connections.isEmpty)
  }

  @Test func connectionsAreLimited() {
    var connections = SessionConnections()
    for id in 0..<1_023 as Range<UInt32> {
      connections.open(SessionConnections.Connection(id: id, sends: true, receives: true))
    }
    #expect(!connections.isFull)
    connections.open(SessionConnections.Connection(id: 5_000, sends: true, receives: true))
    #expect(connections.isFull)
  }

  @Test func changesOfRunningAudioAreReported() {
    var connections = SessionConnections()
    let changes = [false, true, true, false, true].map { connections.consumeChange(runs: $0) }
    #expect(changes == [nil, true, nil, false, true])
  }

  @Test func permissionAndPauseOfTheMicrophoneAreSeparate() {
    var input = SessionInput()
    #expect(!input.isAllowed && !input.isPaused)
    input.pause(true)
    input.allow(true)
    #expect(input.isAllowed && input.isPaused)
    input.pause(false)
    #expect(input.isAllowed && !input.isPaused)
  }
}

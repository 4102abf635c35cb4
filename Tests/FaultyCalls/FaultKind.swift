/// The faults that a call may have, one per call.
package enum FaultKind: String, CaseIterable, Sendable {
  // Faults of the path.
  case audioLoss, videoLoss, loss, lossBurst, mediaDeadOneWay, repairsLost, bottleneck, jitter
  case reordering, duplicates, longDelay, deadPath, consentLost, rtcpLost
  // Faults that keep a call from connecting, or from carrying its media.
  case turnRefused, wrongFingerprint, noPair, unresolvedName, rejectedSection, inactiveDirection
  case slowHandshake, unansweredRestart, noRepairs, renegotiations
  // Faults in media before it is sent.
  case cameraStops, cameraRepeats, cameraBlack, silentMicrophone, clippedMicrophone, mutedSpeaker
  case bandwidthLine, maxBitrate, layerEnds, codecChanges, slowProcessor, audioVideoApart
  // Stalled processes, and wrong clocks and counters.
  case ownProcess, peerProcess, clockSkew, sequenceRestart, unevenTimes, unknownPayloadType
  case requestsUnanswered, dataBehindLoss
  // Further faults of firewalls, NATs and middleboxes.
  case blockedOneWay, addressChanges, largePacketsLost, corruptPackets, shortOutages, delayOneWay
  case mediaClockJumps, wallClockJumps, channelStaysClosed, lossyPath
  // Further faults of signaling and servers.
  case wrongRoles, wrongMapping, wrongPassword, candidatesLost, relayExpires, serverSilent
  case switchedOff
  // Further faults of devices and settings.
  case tinyBitrate, quietMicrophone, brokenMicrophone, encoderStops
}

/// Who recorded a call with a fault.
package enum FaultSight: String, CaseIterable, Sendable {
  /// The end that has the fault; the other end; both in one take.
  case culprit, victim, both
  /// An observer between one end and its network, who has the keys.
  case wireOfCulprit, wireOfVictim

  /// Whether the take is imported from the packets of an end's take.
  package var isWire: Bool { self == .wireOfCulprit || self == .wireOfVictim }
}

/// A call with one fault: its kind, severity, time, victim and recorder.
package struct FaultPlan: Sendable {
  package let kind: FaultKind
  package let seed: UInt64
  /// The peer that has the fault: 0 or 1.
  package let culprit: Int
  /// The recorded end; nil for both.
  package let recorded: Int?
  /// When the fault begins, and how long it lasts, in milliseconds.
  package let from: Int
  package let length: Int
  /// The severity, from 0 (a little above its rule's threshold) to 1,000.
  package let severity: Int

  /// The peer that does not have the fault.
  package var victim: Int { 1 - culprit }

  /// Draws a random plan for a kind of fault.
  ///
  /// - Parameters:
  ///   - severity: the severity; nil draws one.
  ///   - sight: the recorder; nil draws one that can see the fault.
  package init(
    _ kind: FaultKind, seed: UInt64, severity: Int? = nil, sight: FaultSight? = nil
  ) {
    let chance = Chance(seed, "plan \(kind.rawValue)")
    self.kind = kind
    self.seed = seed
    culprit = chance.below(2)
    from = chance.within(4_000...8_000)
    length = chance.within(kind.lengths)
    let drawn = chance.below(1_001)
    self.severity = severity ?? drawn
    let sides = kind.sides(culprit)
    let drawnSide = sides[chance.below(sides.count)]
    recorded =
      switch sight {
      case .culprit?, .wireOfCulprit?: culprit
      case .victim?, .wireOfVictim?: 1 - culprit
      case .both?: nil
      case nil: drawnSide
      }
  }

  /// Returns a value between `mild` and `bad`, in proportion to the plan's severity.
  package func scaled(_ mild: Int, _ bad: Int) -> Int { mild + (bad - mild) * severity / 1_000 }
}

extension FaultKind {
  /// How long the fault may last, in milliseconds.
  fileprivate var lengths: ClosedRange<Int> {
    switch self {
    case .mediaDeadOneWay, .deadPath: 4_000...9_000
    case .consentLost: 18_000...40_000
    case .lossBurst: 200...900
    case .requestsUnanswered: 7_000...11_000
    case .mutedSpeaker: 3_000...9_000
    case .silentMicrophone: 16_000...24_000
    case .clockSkew: 20_000...30_000
    case .blockedOneWay, .addressChanges: 10_000...22_000
    case .relayExpires: 14_000...20_000
    case .quietMicrophone: 20_000...30_000
    default: 6_000...12_000
    }
  }

  /// Returns which ends may be recorded, because they can see the fault; nil stands for both.
  fileprivate func sides(_ culprit: Int) -> [Int?] {
    let victim = 1 - culprit
    switch self {
    // What a middlebox or the peer changes is visible only at the other end.
    case .sequenceRestart, .unevenTimes, .unknownPayloadType, .clockSkew, .peerProcess,
      .mediaClockJumps, .wallClockJumps, .corruptPackets:
      return [victim]
    case .addressChanges: return [nil, victim]
    case .requestsUnanswered, .audioVideoApart, .jitter, .reordering, .duplicates, .repairsLost:
      return [nil, victim]
    case .clippedMicrophone, .silentMicrophone, .cameraBlack, .cameraRepeats:
      return [nil, culprit, victim]
    case .mutedSpeaker, .maxBitrate, .layerEnds, .ownProcess, .slowProcessor, .cameraStops:
      return [nil, culprit]
    case .turnRefused, .unansweredRestart, .inactiveDirection: return [nil, culprit]
    case .bandwidthLine, .tinyBitrate, .encoderStops, .relayExpires, .serverSilent:
      return [nil, culprit]
    case .rtcpLost: return [nil, victim]
    default: return [nil, culprit, victim]
    }
  }
}

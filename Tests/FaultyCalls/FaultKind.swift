/// What may be wrong with a call, one thing at a time.
package enum FaultKind: String, CaseIterable, Sendable {
  // What the path does.
  case audioLoss, videoLoss, loss, lossBurst, mediaDeadOneWay, repairsLost, bottleneck, jitter
  case reordering, duplicates, longDelay, deadPath, consentLost, rtcpLost
  // What keeps a call from coming about, or from what it should be.
  case turnRefused, wrongFingerprint, noPair, unresolvedName, rejectedSection, inactiveDirection
  case slowHandshake, unansweredRestart, noRepairs, renegotiations
  // What becomes of media before it is sent.
  case cameraStops, cameraRepeats, cameraBlack, silentMicrophone, clippedMicrophone, mutedSpeaker
  case bandwidthLine, maxBitrate, layerEnds, codecChanges, slowProcessor, audioVideoApart
  // Who does not run, or counts otherwise.
  case ownProcess, peerProcess, clockSkew, sequenceRestart, unevenTimes, unknownPayloadType
  case requestsUnanswered, dataBehindLoss
  // What firewalls, NATs and other boxes do besides.
  case blockedOneWay, addressChanges, largePacketsLost, corruptPackets, shortOutages, delayOneWay
  case mediaClockJumps, wallClockJumps, channelStaysClosed
  // What signaling and servers get wrong besides.
  case wrongRoles, wrongMapping, wrongPassword, candidatesLost, relayExpires, serverSilent
  // Devices and settings besides.
  case tinyBitrate, quietMicrophone, brokenMicrophone, encoderStops
}

/// Who recorded a call with a fault.
package enum FaultSight: String, CaseIterable, Sendable {
  /// The end whose media, path or process it is; the other end; both in one take.
  case culprit, victim, both
  /// Somebody on the way, between each of both ends and its network, who has the keys.
  case wireOfCulprit, wireOfVictim

  /// The wire is written out of the take of the end beside it.
  package var isWire: Bool { self == .wireOfCulprit || self == .wireOfVictim }
}

/// A call in which one thing goes wrong: what, how badly, when, for whom, and who recorded it.
package struct FaultPlan: Sendable {
  package let kind: FaultKind
  package let seed: UInt64
  /// The peer whose media, path or process it is: 0 or 1.
  package let culprit: Int
  /// The end that is recorded; nil for both.
  package let recorded: Int?
  /// When it begins, and for how long it lasts, in milliseconds.
  package let from: Int
  package let length: Int
  /// How badly, between 0 (a little above the threshold of its rule) and 1,000.
  package let severity: Int

  /// The other peer.
  package var victim: Int { 1 - culprit }

  /// Draws the plan of a fault.
  ///
  /// - Parameter severity: how badly; nil draws it.
  /// - Parameter sight: who records it; nil draws one of those that can see it.
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

  /// A value between two, as bad as the plan says.
  package func scaled(_ mild: Int, _ bad: Int) -> Int { mild + (bad - mild) * severity / 1_000 }
}

extension FaultKind {
  /// For how long the fault lasts, in milliseconds.
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

  /// Which ends may be the recorded one: those at which it can be seen; nil for both.
  fileprivate func sides(_ culprit: Int) -> [Int?] {
    let victim = 1 - culprit
    switch self {
    // What a box on the way changes is seen behind it.
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

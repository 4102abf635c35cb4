import JSEP
import Lab
import Media
import Peer
import Tape
import Wire

// Further faults of devices and settings.
extension FaultyCall {
  /// Prepares a fault of a device or an encoder setting; returns false if the planned fault is of
  /// another kind.
  mutating func prepareDevices() -> Bool {
    let (plan, chance) = (plan, chance)
    switch plan.kind {
    case .tinyBitrate:
      let rate = plan.scaled(30, 6)
      words = "maxBitrate of \(rate) kbit/s"
      arrange = { driven in
        driven.at(plan.from) { $0.limit(.video, of: plan.culprit, to: UInt64(rate) * 1_000) }
      }
    case .quietMicrophone:
      // A voice reaches 14.5 % of full scale; the rule reports levels below 0.63 %.
      let part = plan.scaled(41, 25)
      words = "\(part) thousandths of a voice"
      length = plan.length
      arrange = { driven in
        driven.microphones[plan.culprit] = Microphone(chance, part: part)
        driven.microphones[plan.culprit]?.state = .quiet
      }
      // Five seconds of speech.
      isTouched = { $0.blocksSpoken[plan.culprit] >= 250 }
    case .brokenMicrophone:
      let share = plan.scaled(60, 400)
      words = "\(share / 10) % of its blocks are lost"
      arrange = { driven in
        driven.at(plan.from) { $0.lostBlocks[plan.culprit] = share }
        driven.at(plan.from + plan.length) { $0.lostBlocks[plan.culprit] = 0 }
      }
    case .encoderStops:
      words = "frames go in and none comes out for \(plan.length) ms"
      arrange = { driven in
        for (at, isActive) in [(plan.from, false), (plan.from + plan.length, true)] {
          driven.at(at) { driven in
            driven.change(.video, of: plan.culprit) { $0[0].active = isActive }
          }
        }
      }
      // No encoder hangs in virtual time, so the application deactivates the encoding, and the
      // calls that show this are removed from the take.
      change = { path throws(TapeError) in
        try FaultyCall.alter(
          path,
          """
          DELETE FROM call_request WHERE name IN ('setParameters', 'getParameters');
          UPDATE stat SET members = json_remove(members, '$.active');
          """)
      }
    default: return false
    }
    return true
  }

  private static func alter(_ path: String, _ sql: String) throws(TapeError) {
    do throws(SQLiteError) {
      let connection = try SQLiteConnection(path: path, mode: .readWrite)
      try connection.execute(sql)
    } catch {
      throw TapeError(path: path, error)
    }
  }
}

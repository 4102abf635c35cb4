import Media
import Speakers
import Stats
package import Tape
import Wire

/// Who spoke when in a take, and how loud everybody was: what `retake speakers` prints.
///
/// Participants are the audio tracks of each peer, those it sends and those it hears. Speech is
/// found in the blocks of sound that the take keeps: by the level that the sender put into the
/// header extension (RFC 6464), else by what was decoded. All of it is computed when asked for.
/// Frames are a part of the transcript that replays verify, so rows of speakers would say nothing
/// new, and takes of today gain from a better rule of tomorrow. The view `speaker` applies the rule
/// for intervals in SQL; who dominates among several needs the memory of `DominantSpeaker`.
package struct SpeakerTimeline: Sendable, Codable {
  /// An audio track as one peer sends or hears it.
  package struct Participant: Sendable, Codable {
    package var peer: Int64
    /// The label of the peer.
    package var label: String
    /// The transceiver's number.
    package var track: Int64
    /// `in` for what the peer hears, `out` for what it sends.
    package var direction: String
    /// Blocks of sound of 20 ms.
    package var blocks: Int64 = 0
    /// Blocks without any sound.
    package var silentBlocks: Int64 = 0
    /// The mean level while speaking in tenths of dBov; nil when the participant never spoke.
    package var meanTenthsOfDecibels: Int?
    /// The loudest block in dBov, and as a meter from 0 to 100 shows it.
    package var loudestDecibels = SoundLevel.silence.dbov
    package var loudestPercent = 0
    /// How long it spoke, and how long it was the dominant speaker of its peer.
    package var speakingNanoseconds: Int64 = 0
    package var dominantNanoseconds: Int64 = 0

    /// The name in the view `speaker`: label, direction and track.
    package var name: String { "\(label)/\(direction)/\(track)" }
  }

  /// A time in which a participant spoke, short pauses included.
  package struct Speech: Sendable, Codable, Hashable {
    /// The place of the participant in `participants`.
    package var participant: Int
    package var fromNanoseconds: Int64
    package var toNanoseconds: Int64
    /// The mean level of the blocks with speech in tenths of dBov.
    package var meanTenthsOfDecibels: Int
  }

  /// A time in which a participant was the dominant speaker among those its peer sends and hears.
  package struct Dominance: Sendable, Codable, Hashable {
    package var participant: Int
    package var fromNanoseconds: Int64
    package var toNanoseconds: Int64
  }

  package private(set) var participants: [Participant] = []
  /// In the order of their beginnings.
  package private(set) var speeches: [Speech] = []
  package private(set) var dominances: [Dominance] = []

  /// Reads the levels of a take.
  package init(path: String) throws(TapeError) {
    let connection = try TakeFile.open(path)
    do throws(SQLiteError) {
      let labels = try PeerLabels(connection)
      var listener = SpeakerListener()
      var statement = try connection.prepare(SpeakerTimeline.query)
      while try statement.step() {
        let (peer, track) = (statement.integer(0), statement.integer(1))
        let direction = statement.text(2) ?? ""
        let found = participants.firstIndex {
          $0.track == track && $0.peer == peer && $0.direction == direction
        }
        if found == nil {
          participants.append(
            Participant(
              peer: peer, label: labels[peer] ?? "", track: track, direction: direction))
        }
        let index = found ?? participants.count - 1
        let level =
          statement.isNull(4)
          ? SoundLevel(
            headerExtension: AudioLevel.level(
              energy: UInt64(clamping: statement.integer(5)),
              frameCount: Int(clamping: statement.integer(6))))
          : SoundLevel(headerExtension: UInt8(clamping: statement.integer(4)))
        note(level, of: index)
        listener.hear(level, of: index, peer: peer, at: statement.integer(3))
      }
      listener.finish()
      (speeches, dominances) = (listener.speeches, listener.dominances)
    } catch {
      throw TapeError(path: path, error)
    }
    addTimes()
  }

  private static let query = """
    SELECT format.peer, format.track, format.direction, frame_store.at_ns,
      frame_store.audio_level, frame_store.energy, format.samples
    FROM frame_store JOIN format USING (format)
    WHERE format.kind = 'audio' ORDER BY frame_store.row
    """

  private mutating func note(_ level: SoundLevel, of index: Int) {
    participants[index].blocks += 1
    if level == .silence { participants[index].silentBlocks += 1 }
    if level.dbov > participants[index].loudestDecibels {
      participants[index].loudestDecibels = level.dbov
      participants[index].loudestPercent = level.percent
    }
  }

  private mutating func addTimes() {
    speeches.sort { ($0.fromNanoseconds, $0.participant) < ($1.fromNanoseconds, $1.participant) }
    dominances.sort { ($0.fromNanoseconds, $0.participant) < ($1.fromNanoseconds, $1.participant) }
    var weights = [Int64](repeating: 0, count: participants.count)
    for speech in speeches {
      let length = speech.toNanoseconds - speech.fromNanoseconds
      participants[speech.participant].speakingNanoseconds += length
      weights[speech.participant] += Int64(speech.meanTenthsOfDecibels) * (length / 1_000_000)
    }
    for index in participants.indices {
      let milliseconds = participants[index].speakingNanoseconds / 1_000_000
      if milliseconds > 0 {
        participants[index].meanTenthsOfDecibels = Int(weights[index] / milliseconds)
      }
    }
    for dominance in dominances {
      participants[dominance.participant].dominantNanoseconds +=
        dominance.toNanoseconds - dominance.fromNanoseconds
    }
  }
}

/// Finds speech in the levels of all participants of a take.
struct SpeakerListener {
  /// From this level on a block holds speech: the gate of the dominant-speaker algorithm.
  static let gate = SoundLevel(dbov: -47)
  /// Pauses up to this belong to the speech around them; shorter speech is a click.
  static let longestPause: Int64 = 500_000_000
  static let shortestSpeech: Int64 = 200_000_000
  /// The length of a block.
  static let blockLength: Int64 = 20_000_000

  private struct Spurt {
    var from: Int64
    var last: Int64
    var sum = 0
    var count = 0
  }

  private struct Room {
    var peer: Int64
    var machine: DominantSpeaker
    var dominant: (participant: Int, from: Int64)?
    var last: Int64 = 0
  }

  private var spurts: [Spurt?] = []
  private var rooms: [Room] = []
  private var outbox = Outbox<DominantSpeaker.Output>()
  private(set) var speeches: [SpeakerTimeline.Speech] = []
  private(set) var dominances: [SpeakerTimeline.Dominance] = []

  /// Takes the level of the next block; blocks come in the order of their rows.
  mutating func hear(_ level: SoundLevel, of participant: Int, peer: Int64, at: Int64) {
    while spurts.count <= participant { spurts.append(nil) }
    if level >= SpeakerListener.gate {
      if let spurt = spurts[participant],
        at.subtractingReportingOverflow(spurt.last).partialValue > SpeakerListener.longestPause
      {
        end(spurt, of: participant)
        spurts[participant] = nil
      }
      var spurt = spurts[participant] ?? Spurt(from: at, last: at)
      spurt.last = max(spurt.last, at)
      spurt.sum += level.dbov
      spurt.count += 1
      spurts[participant] = spurt
    }
    let room = room(of: peer)
    let now = Instant(nanoseconds: at)
    while let due = rooms[room].machine.deadline, due < now { step(room, .deadline, at: due) }
    step(room, .level(level, of: participant), at: now)
    rooms[room].last = max(rooms[room].last, at)
  }

  /// Ends what is still open.
  mutating func finish() {
    for (participant, spurt) in spurts.enumerated() {
      if let spurt { end(spurt, of: participant) }
    }
    for room in rooms.indices { endDominance(in: room, at: rooms[room].last) }
    spurts = []
  }

  private mutating func end(_ spurt: Spurt, of participant: Int) {
    let to = spurt.last.addingReportingOverflow(SpeakerListener.blockLength).partialValue
    guard to.subtractingReportingOverflow(spurt.from).partialValue >= SpeakerListener.shortestSpeech
    else { return }
    speeches.append(
      SpeakerTimeline.Speech(
        participant: participant, fromNanoseconds: spurt.from, toNanoseconds: to,
        meanTenthsOfDecibels: spurt.sum * 10 / spurt.count))
  }

  private mutating func room(of peer: Int64) -> Int {
    if let index = rooms.firstIndex(where: { $0.peer == peer }) { return index }
    var settings = DominantSpeaker.Settings()
    settings.silenceTimeout = .seconds(1)
    rooms.append(Room(peer: peer, machine: DominantSpeaker(settings: settings)))
    return rooms.count - 1
  }

  private mutating func step(_ room: Int, _ input: DominantSpeaker.Input, at now: Instant) {
    rooms[room].machine.step(input, at: now, into: &outbox)
    for case .dominant(let participant) in outbox.take() {
      endDominance(in: room, at: now.nanoseconds)
      rooms[room].dominant = participant.map { ($0, now.nanoseconds) }
    }
  }

  private mutating func endDominance(in room: Int, at end: Int64) {
    guard let (participant, from) = rooms[room].dominant.take() else { return }
    dominances.append(
      SpeakerTimeline.Dominance(participant: participant, fromNanoseconds: from, toNanoseconds: end)
    )
  }
}

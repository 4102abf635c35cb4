public import SDP

/// A session description of a call, and what names the call in later requests.
public struct CallDescription: Hashable, Sendable, Codable {
  /// Names the call.
  public var id: String
  /// The description's text.
  public var sdp: String
  /// `offer` or `answer`.
  public var type: String

  /// Creates a description of a call.
  public init(id: String, sdp: String, type: String) {
    self.id = id
    self.sdp = sdp
    self.type = type
  }
}

/// Why a request about a call was refused.
public struct CallRefusal: Error, Hashable, Sendable, CustomStringConvertible {
  /// Whose fault it is.
  public enum Kind: Hashable, Sendable {
    /// The request cannot be understood or its description is not acceptable: status 400.
    case badRequest
    /// The request is understood, but its description or fragment is of no use: status 422.
    case unprocessable
    /// There is no such call: status 404.
    case unknownCall
    /// The call is not in a state for it: status 409.
    case conflict
    /// The request is about another ICE session of the call than the present one: status 412.
    case outdated
    /// The request does not say which ICE session of the call it is about: status 428.
    case unconditional
    /// No further call can be taken: status 503.
    case busy
    /// Something failed on this side: status 500.
    case failure
  }

  /// Whose fault it is.
  public var kind: Kind
  /// What is wrong, in one sentence.
  public var reason: String

  /// Creates a refusal.
  public init(_ kind: Kind, _ reason: String) {
    self.kind = kind
    self.reason = reason
  }

  /// The sentence.
  public var description: String { reason }
}

/// What an offer of this side in a running call shall change.
public struct OfferChanges: Hashable, Sendable {
  /// Whether it begins another generation of ICE.
  public var restartsICE: Bool
  /// Kinds of media that are sent besides: `audio` or `video`, once for each track.
  public var additions: [String]
  /// The mids of the m-sections that are stopped.
  public var stops: [String]
  /// Directions, as in SDP, by the mids that get them.
  public var directions: [String: String]

  /// Creates a list of changes; without any the offer repeats what is agreed.
  public init(
    restartsICE: Bool = false, additions: [String] = [], stops: [String] = [],
    directions: [String: String] = [:]
  ) {
    self.restartsICE = restartsICE
    self.additions = additions
    self.stops = stops
    self.directions = directions
  }
}

/// The calls that run, oldest first.
public struct CallList: Hashable, Sendable, Codable {
  /// A call as a list shows it.
  public struct Entry: Hashable, Sendable, Codable {
    /// Names the call.
    public var id: String
    /// W3C connectionState.
    public var connection: String
    /// The file that the call is recorded in.
    public var take: String

    /// Creates an entry.
    public init(id: String, connection: String, take: String) {
      self.id = id
      self.connection = connection
      self.take = take
    }
  }

  /// How many calls there may be at once.
  public var limit: Int
  /// The name of the file or folder that calls are recorded into; nil when it is not told.
  public var recording: String?
  /// Those that run.
  public var calls: [Entry]

  /// Creates a list.
  public init(limit: Int, recording: String? = nil, calls: [Entry]) {
    self.limit = limit
    self.recording = recording
    self.calls = calls
  }
}

/// What signaling asks of whoever runs the calls; knows nothing of HTTP.
public protocol CallHandling: Sendable {
  /// Begins a call with the peer's offer and gives the answer.
  func begin(offer sdp: String) async throws(CallRefusal) -> CallDescription
  /// Handles another offer of the peer in a call that runs, and gives the answer.
  func follow(offer sdp: String, call id: String) async throws(CallRefusal) -> CallDescription
  /// Begins a call with an offer of this side.
  func makeOffer() async throws(CallRefusal) -> CallDescription
  /// Makes another offer in a call that runs.
  func makeOffer(call id: String, changing changes: OfferChanges) async throws(CallRefusal)
    -> CallDescription
  /// Completes what this side offered, with the peer's answer.
  func accept(answer sdp: String, call id: String) async throws(CallRefusal)
  /// Adds a candidate of the peer; nil when it has no more.
  func add(_ candidate: CandidateInit?, call id: String) async throws(CallRefusal)
  /// Ends a call.
  func end(call id: String) async throws(CallRefusal)
  /// The calls that run, and how many there may be.
  func list() async -> CallList
  /// The stats of a call, or of all calls, as JSON text.
  func stats(call id: String?) async throws(CallRefusal) -> String
  /// The page of the take that a call is or was recorded in, as HTML.
  func page(call id: String) async throws(CallRefusal) -> String
}

extension CallHandling {
  /// Knows of no takes.
  public func page(call id: String) async throws(CallRefusal) -> String {
    throw CallRefusal(.unknownCall, "there is no take of a call \(id.prefix(100))")
  }
}

// The shapes that modules share, for the type checker; nothing in it becomes part of the page.

/**
 * The data of a take, which Swift writes and `take/reading.js` reads; see the article on the page.
 */
interface Take {
  form?: "file" | "served";
  name?: string;
  title: string;
  label: string;
  file: string;
  start: string;
  version: string;
  /** How long the take is, in seconds. */
  seconds: number;
  session?: number;
  isLive?: boolean;
  isComplete: boolean;
  /** False until the server has examined the take for findings. */
  isExamined?: boolean;
  ending: string | null;
  fileBytes: number;
  peers: Peer[];
  actors: { actor: number; kind: string; label: string }[];
  coverage: {
    actor: number; peer: number; what: string; reason: string;
    fromNanoseconds: number; toNanoseconds: number;
  }[];
  states?: Spell[];
  path?: Spell[];
  channels?: Spell[];
  speakers?: Spell[];
  dominant?: Spell[];
  freezes?: [peer: number, track: string | number, from: number, to: number, text: string][];
  limits?: Spell[];
  sizes: [
    peer: number, direction: string, track: number, from: number, width: number, height: number,
  ][];
  tracks: any[];
  streams: any[];
  signaling: any[];
  candidates: any[];
  pairs: any[];
  channelList: any[];
  settings: any[];
  secured: any[];
  stats?: any[];
  presence: any[];
  carriage: any[];
  timeline: [at: number, step: number, peer: number, lane: string, what: string][];
  queries: Record<string, string>;
  findings: Finding[];
  /** Undefined until the take is examined. */
  quality?: Quality;
  media?: any[];
  /** Built from the members above when the take is read. */
  series: Series[];
  people: Person[];
  flows: Flow[];
  /** The names of the other takes in the catalogue. */
  others?: string[];
  /** The reading as received, kept while two takes are compared. */
  reading?: { data: any; bytes: Uint8Array };
}

/** A time span of a subject, with its text. */
type Spell = [peer: number, subject: string, from: number, to: number, text: string];

interface Peer {
  peer: number; label: string; role: string;
  bytesIn: number; bytesOut: number; packetsIn: number; packetsOut: number;
}

/** A finding as in `retake findings`; the longest spans come first. */
interface Finding {
  rule: string; peer: number; severity: number; level: string; text: string; count: number;
  /** The side on which the cause lies, in words, and how certain that is; empty if unknown. */
  side: string; confidence: string;
  seconds: number; spans: [from: number, to: number, evidence: string][]; sql: string;
  symptoms: Finding[];
}

/** The figures of `retake summary`, with the words that it prints for them. */
interface Quality {
  columns: string[]; media: { cells: string[]; facts: Record<string, any> }[]; media_cut?: number;
  connections: Record<string, any>[];
}

interface Person {
  actor: number; participant: number; isLocal: boolean; called?: string; id?: string; name?: string;
  stays: { from: number; to: number }[];
}

type Series = import("./take/series.js").Series;

/** One direction of a track of one peer. */
interface Way {
  peer: number; track: number; direction: string; kind: string; mid?: string; codec?: string;
  clockRate: number; ssrcs: Set<number>;
  packets: Series[]; lost: Series[]; frames?: Series; reports: Series[];
  waits?: Curve;
}

/** One direction of a track from its sender to its receiver; the take may have only one of them. */
interface Flow {
  sent?: Way; received?: Way;
  kind?: string; mid?: string; codec?: string; clockRate?: number; peers?: number[]; from?: string;
  to?: string; name?: string; id?: string; isSeenOnce?: boolean; person?: number; delays?: Curve;
}

interface Curve {
  at: Float64Array; value: Float64Array; tone?: string; name?: string; dash?: number[];
  hasSteps?: boolean;
}

interface Span { from: number; to: number; text: string; tone?: string; subject?: string; row?: any }

/** The canvas of a lane: a context whose horizontal axis is the clock. */
interface View {
  context: CanvasRenderingContext2D; width: number; height: number; from: number; to: number;
  /** The seconds per pixel. */
  pixel: number;
  x(time: number): number;
  time(x: number): number;
}

/** A lane: what it draws, and the text that it shows at a time. */
interface Lane {
  label: string;
  unit?: string;
  height: number;
  tone?: string;
  draw(view: View): void;
  at(time: number): string;
  toneAt?(time: number): string | undefined;
  /** Whether values are still loading. */
  isWaiting?(): boolean;
  /** Computes what drawing needs, a piece at a time, as soon as values can be read. */
  prepare?(): Generator<unknown, unknown, unknown>;
  /** Whether `prepare` has finished. */
  isReady?(): boolean;
  carried?(from: number, to: number): number;
  /** The spans that can be selected. */
  spans?: Span[];
  /** The times that can be stepped to. */
  marks?: ArrayLike<number> & Iterable<number>;
  /** The name of its query in `take.queries`, or the query itself. */
  query?: string;
  sql?: string;
  /** Whether the lane is shown only on request. */
  isExtra?: boolean;
  open?: string;
  low?: number;
  top?: number;
  isState?: boolean;
  /** Set by the board. */
  id?: string;
  group?: LaneGroup;
  canvas?: HTMLCanvasElement;
  element?: HTMLElement;
  isDrawn?: boolean;
  lastDrawing?: number;
}

interface LaneGroup {
  id: string; name: string; note: string; peers: number[]; kind: string; lanes: Lane[];
  isFolded?: boolean; flow?: Flow;
}

/** A number at the top of the page. */
interface Card { title: string; value: string; note: string; tone?: string }

/** A layer of a packet as the server dissected it; places count bytes of the packet. */
interface Layer {
  name: string;
  fields: { name: string; value: string; from: number; length: number }[];
}

// Missing from the checker's library, which is older.
interface Array<T> {
  findLast(test: (value: T, index: number) => unknown): T | undefined;
}
declare class DecompressionStream {
  constructor(format: string);
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<BufferSource>;
}

/** For scripts that drive the page, as the tests do. */
interface Window { retake: Record<string, any> }

/** A table or view, as the server describes it. */
interface Relation {
  name: string; kind: "table" | "view"; comment: string;
  columns: { name: string; comment: string }[];
}

/** A take of a catalogue, as the server lists it; its details are loaded later. */
interface Entry {
  name: string;
  label?: string;
  start?: string;
  seconds?: number;
  peers?: string;
  bytes?: number;
  isComplete?: boolean;
  isLive?: boolean;
  /** The reason that the take cannot be read. */
  error?: string;
  details?: { findings: EntryFindings; spark: number[]; facts?: EntryFacts };
}

/** The first finding of a take, and how many are medium or worse. */
interface EntryFindings {
  count: number; severity: number; level?: string; worst?: string; evidence?: string;
  /** The side on which the cause lies, and how certain that is. */
  side?: string; confidence?: string;
}

/** The numbers of a call that a catalogue sorts and filters by. */
interface EntryFacts {
  codecs: string[];
  /** The ids of all findings, causes and symptoms. */
  findings: string[];
  /** Whether a selected pair used a TURN server. */
  relay: boolean;
  /** Packets that arrived but were refused by SRTP; the loss does not include them. */
  packets_refused?: number;
  /** The loss of the stream that lost the most, from 0 to 1. */
  loss_share?: number;
  concealed_share?: number;
  /** The median round trip of the slowest connection. */
  round_trip_ms?: number;
  frozen_ns?: number;
}

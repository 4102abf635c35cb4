// The shapes that modules share, for the checker: nothing of this file is in the page.

/** What Swift writes and `take/reading.js` reads; see the article on the page. */
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
  /** False while the server still looks for what went wrong. */
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
  /** Missing before the take was examined. */
  quality?: Quality;
  media?: any[];
  /** Made of the above when a take is read. */
  series: Series[];
  people: Person[];
  flows: Flow[];
  /** The other takes of a catalogue, by their names. */
  others?: string[];
  /** The reading as it came, while two takes are compared. */
  reading?: { data: any; bytes: Uint8Array };
}

/** A row of what lasted. */
type Spell = [peer: number, subject: string, from: number, to: number, text: string];

interface Peer {
  peer: number; label: string; role: string;
  bytesIn: number; bytesOut: number; packetsIn: number; packetsOut: number;
}

/** A finding as `retake findings` has it; spans are the longest first. */
interface Finding {
  rule: string; peer: number; severity: number; level: string; text: string; count: number;
  /** On whose side its cause lies, in words, and how sure that is; empty where it is not known. */
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

/** One direction of a track from its sender to its receiver, of whom the take may have one. */
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

/** What a lane draws on: a context with the clock as its horizontal axis. */
interface View {
  context: CanvasRenderingContext2D; width: number; height: number; from: number; to: number;
  /** Seconds in a pixel. */
  pixel: number;
  x(time: number): number;
  time(x: number): number;
}

/** A lane: what it draws, and what it says at a time. */
interface Lane {
  label: string;
  unit?: string;
  height: number;
  tone?: string;
  draw(view: View): void;
  at(time: number): string;
  toneAt?(time: number): string | undefined;
  /** Whether values are still to come. */
  isWaiting?(): boolean;
  /** Computes what drawing needs, a piece at a time, as soon as values can be read. */
  prepare?(): Generator<unknown, unknown, unknown>;
  /** Whether what `prepare` computes is there. */
  isReady?(): boolean;
  carried?(from: number, to: number): number;
  /** What can be selected. */
  spans?: Span[];
  /** Times to step to. */
  marks?: ArrayLike<number> & Iterable<number>;
  /** The name of its query in `take.queries`, or the query itself. */
  query?: string;
  sql?: string;
  /** Whether it is shown only when somebody asks for more. */
  isExtra?: boolean;
  open?: string;
  low?: number;
  top?: number;
  isState?: boolean;
  /** Given by the board. */
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

// Newer than the library of the checker.
interface Array<T> {
  findLast(test: (value: T, index: number) => unknown): T | undefined;
}
declare class DecompressionStream {
  constructor(format: string);
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<BufferSource>;
}

/** For whoever drives the page by a script, as the tests do. */
interface Window { retake: Record<string, any> }

/** A table or view, as the server describes it. */
interface Relation {
  name: string; kind: "table" | "view"; comment: string;
  columns: { name: string; comment: string }[];
}

/** A take of a catalogue, as the server lists it; details come later. */
interface Entry {
  name: string;
  label?: string;
  start?: string;
  seconds?: number;
  peers?: string;
  bytes?: number;
  isComplete?: boolean;
  isLive?: boolean;
  /** Why it cannot be read. */
  error?: string;
  details?: { findings: EntryFindings; spark: number[]; facts?: EntryFacts };
}

/** The first finding of a take, and how many are medium or worse. */
interface EntryFindings {
  count: number; severity: number; level?: string; worst?: string; evidence?: string;
  /** On whose side its cause lies, and how sure that is. */
  side?: string; confidence?: string;
}

/** The numbers of a call that a catalogue sorts and filters by. */
interface EntryFacts {
  codecs: string[];
  /** The ids of all findings, causes and symptoms. */
  findings: string[];
  /** Whether a pair in use went over a TURN server. */
  relay: boolean;
  /** Packets that came and that SRTP refused, which are beside the loss. */
  packets_refused?: number;
  /** Of the stream that lost most, from 0 to 1. */
  loss_share?: number;
  concealed_share?: number;
  /** The median of the slowest connection. */
  round_trip_ms?: number;
  frozen_ns?: number;
}

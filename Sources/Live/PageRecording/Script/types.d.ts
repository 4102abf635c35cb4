// Types that the modules share, for `tsc`; this file is never sent to a page.

/** The configuration that the recorder writes in front of the script. */
declare const retakeConfiguration: {
  /** The WebSocket's address, with the token in its query. */
  address: string;
  /** Whether encoded frames are sent. */
  media: boolean;
  /** The interval between readings of statistics, in milliseconds. */
  interval: number;
  /** Whether another script of the extension opens the socket. */
  relay: boolean;
};

/** A WebSocket or a substitute with the same interface. */
interface Socket {
  binaryType: string;
  readyState: number;
  bufferedAmount: number;
  send(data: string | Uint8Array): void;
  close(): void;
  onopen: ((event?: any) => void) | null;
  onmessage: ((event: { data: any }) => void) | null;
  onclose: ((event?: any) => void) | null;
}

/** Statistics objects by id. */
type Statistics = Record<string, Record<string, any>>;

/** A received encoded frame's properties. */
interface EncodedFrame {
  mid: string;
  kind: string;
  /** The frame's length in bytes. */
  size: number;
  /** When the frame was copied, as Unix time in milliseconds. */
  time: number;
  ssrc: number;
  rtpTime: number;
  key: boolean;
  mimeType: string;
  width: number;
  height: number;
}

/** What a copier knows about a frame; what the browser does not state is undefined. */
interface CopiedFrame {
  /** The receiver's number. */
  receiver: number;
  size: number;
  time: number;
  type?: string;
  rtpTime?: number;
  ssrc?: number;
  payloadType?: number;
  mimeType?: string;
  width?: number;
  height?: number;
}

/** Copied frames, with the bytes of all of them concatenated. */
interface FrameBatch {
  copies: CopiedFrame[];
  bytes: Uint8Array;
  /** The time that copying took, in milliseconds. */
  spent: number;
}

// What the modules share, for `tsc`; nothing of this file is sent to a page.

/** What the recorder writes in front of the script. */
declare const retakeConfiguration: {
  /** The WebSocket, with the token in its query. */
  address: string;
  /** Whether encoded frames are handed over. */
  media: boolean;
  /** How often statistics are read, in milliseconds. */
  interval: number;
  /** Whether the extension's other script opens the socket. */
  relay: boolean;
};

/** A socket, or what stands in for one. */
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

/** Statistics: objects by their ids. */
type Statistics = Record<string, Record<string, any>>;

/** What is known of an encoded frame that was received. */
interface EncodedFrame {
  mid: string;
  kind: string;
  bytes: ArrayBuffer;
  ssrc: number;
  rtpTime: number;
  key: boolean;
  mimeType: string;
  width: number;
  height: number;
}

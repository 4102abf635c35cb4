// Requests to the server, for a page that `retake open` serves.

const address = new URLSearchParams(globalThis.location?.hash.slice(1));

/** The token in the address; empty once it has been exchanged for a cookie. */
let token = address.get("token") ?? "";

/** The token until it has been exchanged for a cookie; links to other takes need it. */
export const currentToken = () => token;

/** The name of the take in the catalogue. */
export const chosenTake = address.get("take") ?? "";

/** The name of a second take that is compared with the chosen one. */
export const otherTake = address.get("with") ?? "";

let entering;

/**
 * Exchanges the token for a cookie that scripts cannot read and that is not stored in the history.
 */
export function enter() {
  entering ??= token === "" ? Promise.resolve() : fetch("/cookie", {
    method: "POST", headers: { Authorization: `Bearer ${token}` }, cache: "no-store",
  }).then((reply) => { if (reply.ok) token = ""; }, () => {});
  return entering;
}

/** Sends a request; throws the server's message if it is refused. */
export async function ask(path, parameters = {}, init = {}) {
  await enter();
  const query = new URLSearchParams(parameters);
  const reply = await fetch(`/${path}?${query}`, {
    ...init, headers: token ? { Authorization: `Bearer ${token}` } : {}, cache: "no-store",
  });
  if (reply.ok) return reply;
  const refusal = await reply.json().catch(() => ({}));
  throw new Error(refusal.error || refusal.detail || `the server answered with ${reply.status}`);
}

export const askJSON = async (path, parameters, init) => (await ask(path, parameters, init)).json();

export const askBytes = async (path, parameters) =>
  new Uint8Array(await (await ask(path, parameters)).arrayBuffer());

/** Requests a reading of a take: its JSON and its columns. */
export async function askReading(path, parameters) {
  const buffer = await (await ask(path, parameters)).arrayBuffer();
  const length = new DataView(buffer).getUint32(0);
  return {
    data: JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length))),
    bytes: new Uint8Array(buffer, 4 + length),
  };
}

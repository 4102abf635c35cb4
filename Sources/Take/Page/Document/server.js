// What the page asks of its own server, where `retake open` serves it.

const given = new URLSearchParams(location.hash.slice(1));
/** What lets this page ask; empty once it is a cookie. */
export let token = given.get("token") ?? "";
/** The take that is looked at, by its name in the catalogue. */
export const chosenTake = given.get("take") ?? "";
/** A second one, which stands beside it. */
export const otherTake = given.get("with") ?? "";

let entering;

/** Turns the token of the address into a cookie, which no script can read and no history keeps. */
export function enter() {
  entering ??= token === "" ? Promise.resolve() : fetch("/cookie", {
    method: "POST", headers: { Authorization: `Bearer ${token}` }, cache: "no-store",
  }).then((reply) => { if (reply.ok) token = ""; }, () => {});
  return entering;
}

/** The reply to a question, as it came; throws with the server's own words. */
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

/** A reading of a take: its JSON and its columns. */
export async function askReading(path, parameters) {
  const buffer = await (await ask(path, parameters)).arrayBuffer();
  const length = new DataView(buffer).getUint32(0);
  return {
    data: JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length))),
    bytes: new Uint8Array(buffer, 4 + length),
  };
}

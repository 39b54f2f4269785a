// Talking to the session: requests, and what it has to tell.

export class Refused extends Error {
  constructor(status, answer) {
    super(answer.error);
    this.status = status;
    this.problems = answer.problems ?? [];
  }
}

const GONE = "The session has ended or was started anew: open the address that pytest printed.";

export async function get(path, kind = "json", signal = undefined) {
  return answered(await sent(path, { signal }), kind);
}

export async function post(path, body = {}) {
  const headers = { "content-type": "application/json" };
  return answered(await sent(path, { method: "POST", headers, body: JSON.stringify(body) }), "json");
}

async function sent(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, { error: GONE });
  }
}

async function answered(response, kind) {
  if (response.ok) return response[kind]();
  if (response.headers.get("content-type")?.startsWith("application/json")) {
    throw new Refused(response.status, await response.json());
  }
  throw new Refused(response.status, { error: response.status === 403 ? GONE : await response.text() });
}

// Calls `heard` with every piece of news, and `lost` while nobody answers.
export function listen(heard, lost) {
  const source = new EventSource("/events");
  source.onmessage = (event) => heard(JSON.parse(event.data));
  source.onerror = () => lost(GONE);
}

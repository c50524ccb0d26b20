// Server-Sent Events, read from a body: an EventSource could not say who asks.
export interface Sent {
  event: string;
  data: string;
  id: string;
}

export async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<Sent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let sent: Sent = { event: "message", data: "", id: "" };
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop()!;
      for (const line of lines) {
        if (line === "") {
          if (sent.data) yield sent;
          sent = { event: "message", data: "", id: "" };
          continue;
        }
        const colon = line.indexOf(":");
        const name = colon < 0 ? line : line.slice(0, colon);
        const text = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (name === "data") sent.data += (sent.data ? "\n" : "") + text;
        if (name === "event") sent.event = text;
        if (name === "id") sent.id = text;
      }
    }
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}

// A stream's events and accumulated end, the same response retrieved, and a turn that continues it.

import { model, newClient, tell } from "./client.mjs";

const client = newClient();
const types = [];
let text = "";
const stream = client.responses.stream({ model, input: "I am Ada." });
stream.on("event", (event) => types.push(event.type));
stream.on("response.output_text.delta", (event) => (text += event.delta));
const first = await stream.finalResponse();
const retrieved = await client.responses.retrieve(first.id);
const second = await client.responses.create({ model, input: "Who am I?", previous_response_id: first.id });
tell({
  types,
  text,
  final: first.output_text,
  retrieved: retrieved.output_text,
  second: second.output_text,
  previous: second.previous_response_id === first.id,
  requestId: typeof second._request_id,
});

// A refused request, an unknown response, a rate limit that is retried, a stream that fails after it began.

import OpenAI from "openai";
import { model, newClient, tell } from "./client.mjs";

const client = newClient();

async function thrown(promise) {
  try {
    await promise;
    return null;
  } catch (error) {
    const kind = Object.entries(OpenAI).find(([, value]) => value === error.constructor)?.[0];
    return { kind: kind ?? error.constructor.name, status: error.status, code: error.code, param: error.param };
  }
}

async function lastEvent() {
  let last = null;
  for await (const event of await client.responses.create({ model, input: "Hi", stream: true })) last = event;
  return last.type;
}

tell({
  refused: await thrown(client.responses.create({ model, input: "Hi", temperature: "hot" })),
  unknown: await thrown(client.responses.retrieve("resp_unknown")),
  limited: await thrown(client.responses.create({ model, input: "Hi" })),
  retried: (await newClient({ maxRetries: 1 }).responses.create({ model, input: "Hi" })).output_text,
  failed: await lastEvent(),
});

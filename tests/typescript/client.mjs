// What the programs have in common: a client of the gateway at GATEWAY_URL, and one JSON value as their output.

import OpenAI from "openai";

export const model = "attache-demo";

export const forecastTool = {
  type: "function",
  name: "get_forecast",
  description: "The forecast for a city",
  strict: true,
  parameters: {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: false,
  },
};

export function newClient(options = {}) {
  return new OpenAI({
    baseURL: `${process.env.GATEWAY_URL}/v1`,
    apiKey: "unused",
    maxRetries: 0,
    timeout: 20_000,
    ...options,
  });
}

export function tell(value) {
  process.stdout.write(JSON.stringify(value));
}

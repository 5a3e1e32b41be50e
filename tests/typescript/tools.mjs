// Two calls in one streamed answer, each run here, and the whole output sent back with the results.

import { forecastTool, model, newClient, tell } from "./client.mjs";

const client = newClient();
const input = [{ role: "user", content: "Weather in Oslo and Rome?" }];
const arguments_ = {};
const stream = client.responses.stream({ model, input, tools: [forecastTool] });
for await (const event of stream) {
  if (event.type === "response.function_call_arguments.delta") {
    arguments_[event.output_index] = (arguments_[event.output_index] ?? "") + event.delta;
  }
}
const first = await stream.finalResponse();
const calls = first.output.filter((item) => item.type === "function_call");
input.push(...first.output);
for (const call of calls) {
  const { city } = JSON.parse(call.arguments);
  input.push({ type: "function_call_output", call_id: call.call_id, output: `Snow in ${city}.` });
}
const second = await client.responses.create({ model, input, tools: [forecastTool] });
tell({
  streamed: Object.values(arguments_).map((text) => JSON.parse(text)),
  calls: calls.map((call) => [call.name, JSON.parse(call.arguments)]),
  answer: second.output_text,
});

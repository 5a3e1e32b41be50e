// A value of a zod schema: from a plain answer, and from a stream.

import { zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";
import { model, newClient, tell } from "./client.mjs";

const client = newClient();
const Forecast = z.object({ city: z.string(), sky: z.string() });
const request = { model, input: "Weather in Oslo?", text: { format: zodTextFormat(Forecast, "forecast") } };
const plain = await client.responses.parse(request);
const streamed = await client.responses.stream(request).finalResponse();
tell({ plain: plain.output_parsed, streamed: streamed.output_parsed });

// The parse helpers of OpenAI's SDK where the model refuses: a refusal, and no parsed answer. A line a way.
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const client = new OpenAI({ baseURL: `${process.argv[2]}/v1`, apiKey: "unused" });
const Event = z.object({ title: z.string(), year: z.number() });
for (const model of process.argv.slice(3)) {
  const chat = { model, messages: [{ role: "user", content: "hello" }], response_format: zodResponseFormat(Event, "event") };
  const whole = await client.chat.completions.parse(chat);
  const streamed = await client.chat.completions.stream(chat).finalChatCompletion();
  for (const { choices } of [whole, streamed]) {
    const { message, finish_reason } = choices[0];
    console.log(model, "chat", finish_reason, message.parsed ?? null, message.refusal);
  }
  const responses = { model, input: "hello", text: { format: zodTextFormat(Event, "event") } };
  for (const response of [await client.responses.parse(responses), await client.responses.stream(responses).finalResponse()]) {
    const [part] = response.output.at(-1).content;
    console.log(model, "responses", response.status, response.output_parsed, part.type, part.refusal);
  }
}

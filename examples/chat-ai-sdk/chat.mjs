// A chat in the terminal that remembers. Each run is a conversation of its own, and knows what was said in earlier ones.
import readline from 'node:readline';
import { streamText, wrapLanguageModel } from 'ai';
import { withCairn } from 'cairn-memory/ai-sdk';
import { createClient } from 'cairn-memory/client';
import { model } from './model.mjs';

const client = createClient({
  url: process.env.CAIRN_URL ?? 'http://127.0.0.1:8080',
  key: process.env.CAIRN_API_KEY,
});
const capturing = [];
const memory = withCairn({
  client,
  userId: 'ana',
  sessionId: `chat-${Date.now()}`,
  recallTimeoutMs: 60_000, // Here the memory matters more than a quick reply.
  waitUntil: (work) => capturing.push(work),
});
const remembering = wrapLanguageModel({ model, middleware: memory });

const messages = [];
for await (const line of readline.createInterface({ input: process.stdin })) {
  messages.push({ role: 'user', content: line });
  const reply = streamText({
    model: remembering,
    instructions: 'You are a helpful assistant. Answer in one sentence.',
    messages,
  });
  for await (const piece of reply.textStream) process.stdout.write(piece);
  process.stdout.write('\n');
  messages.push({ role: 'assistant', content: await reply.text });
}
await Promise.all(capturing);

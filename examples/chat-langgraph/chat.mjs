// A chat in the terminal that remembers. Each run is a conversation of its own, and knows what was said in earlier ones.
import readline from 'node:readline';
import { HumanMessage } from '@langchain/core/messages';
import { MemorySaver } from '@langchain/langgraph';
import { cairnMemory } from 'cairn-memory/langgraph';
import { createAgent, createMiddleware } from 'langchain';
import { model } from './model.mjs';

const memory = cairnMemory({
  url: process.env.CAIRN_URL ?? 'http://127.0.0.1:8080',
  apiKey: process.env.CAIRN_API_KEY,
  userId: 'ana',
  timeoutMs: 60_000, // Here the memory matters more than a quick reply.
});
const agent = createAgent({
  model,
  tools: [],
  systemPrompt: 'You are a helpful assistant. Answer in one sentence.',
  middleware: [createMiddleware(memory)],
  checkpointer: new MemorySaver(),
});
const conversation = { configurable: { thread_id: `chat-${Date.now()}` } };

for await (const line of readline.createInterface({ input: process.stdin })) {
  const { messages } = await agent.invoke({ messages: [new HumanMessage(line)] }, conversation);
  console.log(messages.at(-1).text);
}

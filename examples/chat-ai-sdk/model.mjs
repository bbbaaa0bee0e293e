// The model of the chat. With OPENAI_API_KEY it is one of OpenAI, or of any server with its API (OPENAI_BASE_URL, MODEL).
// Without a key it is a stand-in, which says back what was recalled for a question.
import { createOpenAI } from '@ai-sdk/openai';
import { MockLanguageModelV4, simulateReadableStream } from 'ai/test';

export const model = process.env.OPENAI_API_KEY
  ? createOpenAI({ baseURL: process.env.OPENAI_BASE_URL }).chat(process.env.MODEL ?? 'gpt-4.1-mini')
  : new MockLanguageModelV4({
      doStream: async ({ prompt }) => ({ stream: simulateReadableStream({ chunks: chunksOf(answerTo(prompt)) }) }),
    });

/** What was recalled stands in a message of its own before the user's last one. */
function answerTo(prompt) {
  const [recalled, asked] = prompt
    .filter(({ role }) => role === 'user')
    .slice(-2)
    .map(textOf);
  if (!(asked ?? recalled).endsWith('?')) return 'Noted.';
  const [, remembered] = /\[memory [^\]]+\] (.+[^?\n])$/m.exec(recalled) ?? [];
  return remembered === undefined ? 'I do not know.' : `You told me: ${remembered}`;
}

function textOf({ content }) {
  return content.map((part) => part.text ?? '').join('\n');
}

function chunksOf(text) {
  const tokens = { inputTokens: { total: 0 }, outputTokens: { total: 0 } };
  return [
    { type: 'stream-start', warnings: [] },
    { type: 'text-start', id: '1' },
    { type: 'text-delta', id: '1', delta: text },
    { type: 'text-end', id: '1' },
    { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage: tokens },
  ];
}

// Answers a question about one's ChatGPT history. With OPENAI_API_KEY a model of OpenAI, or of any server with its API
// (OPENAI_BASE_URL, MODEL), answers from what is recalled. Without a key the best memories are printed.
import { createClient } from 'cairn-memory/client';

const client = createClient({
  url: process.env.CAIRN_URL ?? 'http://127.0.0.1:8080',
  key: process.env.CAIRN_API_KEY,
});
const question = process.argv.slice(2).join(' ');

if (process.env.OPENAI_API_KEY) {
  const { text } = await client.queryMemories({
    query: question,
    user_id: 'me',
    format: 'prompt',
    token_budget: 2000,
  });
  console.log(await askModel(text));
} else {
  const { matches } = await client.queryMemories({ query: question, user_id: 'me', k: 3, cut: 'relative' });
  for (const { content, metadata, event_time } of matches) {
    const day = new Date(event_time).toISOString().slice(0, 10);
    console.log(`${day}  ${metadata.role === 'assistant' ? 'ChatGPT' : 'you'}: ${content}`);
  }
  if (matches.length === 0) console.log('Your history says nothing about that.');
}

/** What is recalled is quoted as data by the server, and stands apart from the instructions. */
async function askModel(recalled) {
  const messages = [
    { role: 'system', content: 'Answer from the memories in one sentence. Say so if they do not hold the answer.' },
    { role: 'user', content: recalled },
    { role: 'user', content: question },
  ];
  const base = process.env.OPENAI_BASE_URL ?? 'https://api.openai.com/v1';
  const reply = await fetch(`${base}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${process.env.OPENAI_API_KEY}` },
    body: JSON.stringify({ model: process.env.MODEL ?? 'gpt-4.1-mini', messages }),
  });
  if (!reply.ok) throw new Error(`the model answered ${reply.status}: ${await reply.text()}`);
  return (await reply.json()).choices[0].message.content;
}

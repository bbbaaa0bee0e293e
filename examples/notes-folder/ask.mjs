// Finds the notes that answer a question, with the file that each stands in.
import { createClient } from 'cairn-memory/client';

const client = createClient({
  url: process.env.CAIRN_URL ?? 'http://127.0.0.1:8080',
  key: process.env.CAIRN_API_KEY,
});
const { matches } = await client.queryMemories({
  query: process.argv.slice(2).join(' '),
  user_id: 'me',
  k: 3,
  cut: 'relative',
});
for (const { content, document } of matches) {
  console.log(`${document.file_name}: ${content.replaceAll(/\s+/g, ' ').trim()}`);
}
if (matches.length === 0) console.log('No note says anything about that.');

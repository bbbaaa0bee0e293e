// Finds what answers a question.
import { openMemory } from './memory.mjs';

const { memories, close } = await openMemory();
const query = process.argv.slice(2).join(' ');
const { hits } = await memories.query({ query, k: 3, filter: { userIds: ['ana'] } });
for (const { memory } of hits) console.log(memory.content);
if (hits.length === 0) console.log('Nothing is known about that.');
await close();

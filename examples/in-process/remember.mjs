// Stores a text. It is on the disk when the program ends.
import { newMemory } from 'cairn-memory';
import { openMemory } from './memory.mjs';

const { memories, close } = await openMemory();
await memories.addMemories([newMemory(process.argv.slice(2).join(' '), { userId: 'ana' })]);
await close();

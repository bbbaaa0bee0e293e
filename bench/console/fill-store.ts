/** A store for measurements of the console: a user whose graph is as large as one may be, and one with a long list. */
import { createRandom } from '../../src/engine/random.ts';
import { putEntities } from '../../src/engine/store/put-entities.ts';
import { ensureUser } from '../../src/engine/store/memories.ts';
import { openStore } from '../../src/engine/store/open-store.ts';
import { SECTORS } from '../../src/engine/types.ts';
import { seedEdge, seedMemories } from '../../test/support/seed-store.ts';
import { createTexts } from '../load.ts';
import { rareWord } from '../natural-text.ts';

const DAY_MS = 86_400_000;
/** Number of memories for each name of the graph. */
const PER_NAME = 10;
/** Number of names that a memory mentions. */
const MENTIONS = 2;

/**
 * Fills a new store.
 * @param nodes memories and names of the user `map`, of which nine tenths are memories; each memory is linked to one
 *   near it and mentions two names
 * @param rows  memories of the user `list`
 */
export async function fillStore(file: string, { nodes, rows }: { nodes: number; rows: number }): Promise<void> {
  const store = openStore(file, { role: 'worker', create: true });
  const random = createRandom(7);
  const now = Date.now();
  const names = Array.from({ length: Math.ceil(nodes / (PER_NAME + 1)) }, (_, at) => `${rareWord(random)} ${at}`);
  const memories = createTexts(nodes - names.length, 3).map((content, at) => ({
    content,
    userId: 'map',
    sectors: [SECTORS[at % SECTORS.length]!],
    salience: random(),
    createdAt: now - Math.floor(random() * 365 * DAY_MS),
  }));
  const seeded = await seedMemories(store, memories, now);
  const userNo = store.write(() => ensureUser(store, 'map'));
  store.write(() => {
    for (const [at, { memoryNo }] of seeded.entries()) {
      const near = seeded[Math.max(0, at - 1 - Math.floor(random() * 30))]!;
      if (near.memoryNo !== memoryNo) seedEdge(store, { src: memoryNo, dst: near.memoryNo, weight: random() });
      const mentioned = new Set(Array.from({ length: MENTIONS }, () => names[Math.floor(random() * names.length)]!));
      const entities = [...mentioned].map((name) => ({ name, label: name, type: 'other' as const }));
      putEntities(store, [{ memoryNo, userNo, graph: { entities, relations: [] } }]);
    }
  });
  const list = Array.from({ length: rows }, (_, at) => ({ content: `Memory number ${at}.`, userId: 'list' }));
  await seedMemories(store, list, now);
  store.close();
}

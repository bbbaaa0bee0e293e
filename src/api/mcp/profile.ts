import { charactersOf, type Memory, type MemoryFilter, quoteMemories } from '../../engine/index.ts';
import type { TenantCall } from '../route.ts';

/** Number of latest memories among which the memories of a profile are chosen. */
const CONSIDERED = 200;
/**
 * Length of the memories that were read for a profile beyond which no further slice of them is read, in UTF-16 code
 * units.
 */
const MAX_READ_CHARACTERS = 1024 * 1024;
/**
 * Greatest length of a memory in a profile, in UTF-16 code units. Longer ones, such as parts of documents, say little
 * about a person.
 */
const MAX_CHARACTERS = 1_000;
const PROFILE_TOKENS = 1_500;

const LASTING: MemoryFilter = { sectors: ['semantic', 'reflective'] };

/**
 * Returns a text of at most 1,500 tokens about the memories that the caller may read: it quotes those with the highest
 * salience (how present a memory is, 0 to 1), among the latest 200 memories of facts and conclusions (the sectors
 * semantic and reflective); reading them ends early once they exceed 1 Mi code units. Memories of more than 1,000 code
 * units are left out. If there are none, a sentence says so.
 */
export async function describeProfile({ tenant }: TenantCall): Promise<string> {
  const found: Memory[] = [];
  let characters = 0;
  for await (const slice of tenant.streamMemories(LASTING, { limit: CONSIDERED, offset: 0 })) {
    for (const memory of slice) {
      characters += charactersOf(memory);
      if (memory.content.length <= MAX_CHARACTERS) found.push(memory);
    }
    if (characters > MAX_READ_CHARACTERS) break;
  }
  const strongest = found.toSorted((a, b) => b.salience - a.salience);
  return quoteMemories(strongest, PROFILE_TOKENS).text || 'Nothing lasting is remembered yet.';
}

import { type Memory, type MemoryFilter, quoteMemories } from '../../engine/index.ts';
import type { TenantCall } from '../route.ts';

/** Latest memories among which those of a profile are chosen. */
const CONSIDERED = 200;
/** Most text that is read for a profile, in characters. */
const MAX_READ_CHARACTERS = 1024 * 1024;
/** Longest memory of a profile, in characters: parts of documents say little about a person. */
const MAX_CHARACTERS = 1_000;
const PROFILE_TOKENS = 1_500;

const LASTING: MemoryFilter = { sectors: ['semantic', 'reflective'] };

/**
 * Quotes what is lasting about a user, at most `PROFILE_TOKENS`: the most salient short memories among the latest in
 * the semantic and the reflective sector.
 */
export async function describeProfile({ tenant }: TenantCall): Promise<string> {
  const found: Memory[] = [];
  let characters = 0;
  for await (const slice of tenant.streamMemories(LASTING, { limit: CONSIDERED, offset: 0 })) {
    for (const memory of slice) {
      characters += memory.content.length;
      if (memory.content.length <= MAX_CHARACTERS) found.push(memory);
    }
    if (characters > MAX_READ_CHARACTERS) break;
  }
  const strongest = found.toSorted((a, b) => b.salience - a.salience);
  return quoteMemories(strongest, PROFILE_TOKENS).text || 'Nothing lasting is remembered yet.';
}

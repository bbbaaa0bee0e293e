import { type Memory, SECTORS, shownGist } from '../../engine/index.ts';

/** Greatest number of excerpts under each heading of a summary. */
const MAX_EXCERPTS = 8;

/** A summary of one user's memories, made of excerpts. */
export interface UserSummary {
  readonly summary: string;
  /** Number of memories whose primary sector is reflective. */
  readonly reflections: number;
  /** Time of the latest change of any of the memories, Unix ms. */
  readonly updatedAt: number;
}

/**
 * Summarises a user's memories in text: the number of memories for each primary sector, then the gists (short
 * summaries) of three groups, at most 8 for each: the newest memories whose primary sector is reflective; of the other
 * memories, those with the highest salience; and of what is left of these others, the newest. The same memories give
 * the same summary.
 * @param memories the user's memories, newest first; not empty
 * @param isAll whether these are all memories of the user; if not, the text begins with "The newest"
 */
export function summaryOf(memories: readonly Memory[], isAll: boolean): UserSummary {
  const reflections = memories.filter(({ primarySector }) => primarySector === 'reflective');
  const facts = memories.filter(({ primarySector }) => primarySector !== 'reflective');
  const counts = SECTORS.map((sector) => ({
    sector,
    count: memories.filter(({ primarySector }) => primarySector === sector).length,
  })).filter(({ count }) => count > 0);
  const bySalience = [...facts].sort((a, b) => b.salience - a.salience).slice(0, MAX_EXCERPTS);
  const newest = facts.filter((memory) => !bySalience.includes(memory));
  const total = `${isAll ? '' : 'The newest '}${memories.length} ${memories.length === 1 ? 'memory' : 'memories'}`;
  return {
    summary: [
      `${total}: ${counts.map(({ sector, count }) => `${count} ${sector}`).join(', ')}.`,
      ...section('What was concluded', reflections),
      ...section('What matters most', bySalience),
      ...section('What came last', newest),
    ].join('\n\n'),
    reflections: reflections.length,
    updatedAt: Math.max(...memories.map(({ updatedAt }) => updatedAt)),
  };
}

function section(heading: string, memories: readonly Memory[]): string[] {
  if (memories.length === 0) return [];
  const lines = memories.slice(0, MAX_EXCERPTS).map((memory) => `- ${shownGist(memory)}`);
  return [`${heading}:\n${lines.join('\n')}`];
}

import { adjust, byRawScore, type Candidate } from './candidate.ts';

/** Candidates whose fit says which sessions the query is about. */
const WITNESSES = 20;

/**
 * Lifts candidates whose session holds others that fit as well, by a factor of 1 to 1 + `weight`: what is said about a matter is
 * said together. Measured on chats and notes of many sessions: at 0.1 it raised recall and nDCG@10 of both, at 0.2 it began to cost
 * recall@10 of the chats. All of a session gain alike, so that its own order stays. A session that only one memory speaks for gains nothing.
 * @param candidates best first
 * @param weight 0..1; 0 leaves all as they are
 * @returns best first
 */
export function applySessionPrior(candidates: readonly Candidate[], weight: number): Candidate[] {
  if (weight === 0) return [...candidates];
  const support = supportOfSessions(candidates.slice(0, WITNESSES));
  // A single full match beside another is the least that earns the whole weight.
  const most = Math.max(1, ...support.values());
  return candidates
    .map((candidate) => {
      const share = (support.get(sessionOf(candidate)) ?? 0) / most;
      return share === 0 ? candidate : adjust(candidate, { by: 'session', factor: 1 + weight * share });
    })
    .sort(byRawScore);
}

/** What the members of a session fit together, beyond the best of them; squared, so that many weak matches do not outweigh a few good ones. */
function supportOfSessions(witnesses: readonly Candidate[]): Map<string, number> {
  const sums = new Map<string, { sum: number; best: number }>();
  for (const candidate of witnesses) {
    if (candidate.row.sessionId === '') continue;
    const fit = fitOf(candidate) ** 2;
    const { sum, best } = sums.get(sessionOf(candidate)) ?? { sum: 0, best: 0 };
    sums.set(sessionOf(candidate), { sum: sum + fit, best: Math.max(best, fit) });
  }
  return new Map([...sums].map(([session, { sum, best }]) => [session, sum - best]));
}

/** How well it fits the query by words, vectors and what the stages since have found; not how fresh or how often recalled it is. */
function fitOf({ features, adjustments }: Candidate): number {
  return adjustments.reduce((fit, { factor }) => fit * factor, features.similarity);
}

/** Sessions of different users are different ones, whatever they are called. */
function sessionOf({ row }: Candidate): string {
  return `${row.userNo} ${row.sessionId}`;
}

import { adjust, byRawScore, type Candidate } from './candidate.ts';

/** Number of candidates, from the best on, from which the factors of sessions are computed. */
const WITNESSES = 20;

/**
 * Raises the raw score of candidates whose session has several among the first 20 candidates (`WITNESSES`), by a factor
 * of 1 to 1 + `weight`, since memories of one matter are often of one session. All candidates of a session get the same
 * factor, so their order stays. A session with only one of the first 20 gets no factor, and neither do memories without
 * a session. Measured on chats and notes of many sessions, a weight of 0.1 raises recall and nDCG@10 of both; a weight
 * of 0.2 begins to cost recall@10 of the chats.
 * @param candidates best first
 * @param weight 0..1; 0 leaves all candidates unchanged
 * @returns all candidates, best first by raw score
 */
export function applySessionPrior(candidates: readonly Candidate[], weight: number): Candidate[] {
  if (weight === 0) return [...candidates];
  const support = supportOfSessions(candidates.slice(0, WITNESSES));
  // The factor reaches 1 + `weight` only with a support of at least 1: that of a full match beside another one.
  const most = Math.max(1, ...support.values());
  return candidates
    .map((candidate) => {
      const share = (support.get(sessionOf(candidate)) ?? 0) / most;
      return share === 0 ? candidate : adjust(candidate, { by: 'session', factor: 1 + weight * share });
    })
    .sort(byRawScore);
}

/**
 * Computes how well the other candidates of a session match, by the key of the session (`sessionOf`): the sum of the
 * squared fits of its candidates except the best one. Squares keep many weak matches from outweighing a few good ones.
 */
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

/**
 * Returns how well a candidate matches the query by words, vectors and the adjustments so far, without its age and its
 * past recalls.
 */
function fitOf({ features, adjustments }: Candidate): number {
  return adjustments.reduce((fit, { factor }) => fit * factor, features.similarity);
}

/** Returns the key of a candidate's session. Sessions of different users differ, even with equal ids. */
function sessionOf({ row }: Candidate): string {
  return `${row.userNo} ${row.sessionId}`;
}

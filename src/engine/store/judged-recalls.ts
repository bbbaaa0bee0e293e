/** Reads the recalls (answered queries) of the recall log from whose feedback weights of the score are learned. */

import type { LoggedCandidate, Profile, RecallHead, RecallRecord } from '../types.ts';
import type { Store } from './open-store.ts';
import { readCandidates, readFeedback } from './recalls.ts';
import { parseStored } from './stored-json.ts';

/** Greatest number of recalls from which is learned. */
const MAX_RECALLS = 1_000;
/**
 * Number of candidates after which no further recall is read. A recall has some 13 candidates, but may have hundreds,
 * and a candidate takes a kilobyte of memory and as much for each weight of vectors that is tried.
 */
const MAX_CANDIDATES = 30_000;

/**
 * Lists the newest recalls of a profile that have feedback on a match that was used and on one that was useless or
 * wrong, newest first: those among the 1,000 newest of all profiles with such feedback, until they have 30,000
 * candidates together. They have only what scoring them again with other weights reads; the other fields are empty, and
 * no candidate has `hit`.
 */
export function listJudgedRecalls(store: Store, profile: Profile): RecallRecord[] {
  const recallNos = store
    .prepare(
      `SELECT recall_no FROM recall_feedback GROUP BY recall_no
       HAVING count(*) FILTER (WHERE verdict = 'used') > 0 AND count(*) FILTER (WHERE verdict <> 'used') > 0
       ORDER BY recall_no DESC LIMIT ?`,
    )
    .pluck()
    .all(MAX_RECALLS) as number[];
  const recalls: RecallRecord[] = [];
  let room = MAX_CANDIDATES;
  for (const recallNo of recallNos) {
    if (room <= 0) break;
    const stored = store.prepare('SELECT head FROM recalls WHERE recall_no = ?').pluck().get(recallNo) as string;
    const head = parseStored(stored) as RecallHead;
    if (head.scoring.profile !== profile) continue;
    const candidates = readCandidates(store, recallNo).map(withoutHit);
    recalls.push({ ...scoringOf(head), candidates, missing: [], feedback: readFeedback(store, recallNo) });
    room -= candidates.length;
  }
  return recalls;
}

/** Returns the data of a recall with empty values in place of those that do not affect its scores. */
function scoringOf({ recallId, at, options, scoring, confidence, scope, floorActed, bestNo, version }: RecallHead) {
  return {
    ...{ recallId, at, options, scoring, confidence, scope, floorActed, bestNo, version },
    ...{ question: null, questionKept: 'withheld', filter: {}, request: { k: options.k }, defaults: {} },
    ...{ model: null, floor: null, cut: null, degradedReasons: [], outcomes: {}, hitIds: [] },
  } as const satisfies RecallHead;
}

/** Returns a candidate with empty values in place of those that do not affect its score with other weights. */
function withoutHit({ hit: _, arrival, ...candidate }: LoggedCandidate): LoggedCandidate {
  const reached = arrival && { ...arrival, from: null };
  return { ...candidate, rerank: null, lexical: null, arrival: reached };
}

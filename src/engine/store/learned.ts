/** Stores ranking weights and score floors that were learned from feedback (migrations/0014-learned.sql). */

import { EngineError } from '../errors.ts';
import type { Learned, LearnedState, RetrievalOptions } from '../types.ts';
import type { Store } from './open-store.ts';
import { parseStored } from './stored-json.ts';

/** Greatest number of learned weights that are kept, each in one row; older ones are deleted. */
const KEPT = 100;

interface Row {
  readonly state: LearnedState;
  readonly data: string;
}

/**
 * Stores learned weights as a proposal. An earlier proposal that was not accepted is deleted, as are rows beyond the
 * newest 100. Call inside a write.
 */
export function putLearned(store: Store, learned: Learned): void {
  store.prepare(`DELETE FROM learned WHERE state = 'proposed'`).run();
  const { id, at, state, ...data } = learned;
  store
    .prepare('INSERT INTO learned (id, at, state, data) VALUES (?, ?, ?, ?)')
    .run(id, at, state, JSON.stringify(data));
  store
    .prepare('DELETE FROM learned WHERE learned_no NOT IN (SELECT learned_no FROM learned ORDER BY 1 DESC LIMIT ?)')
    .run(KEPT);
}

/** Lists all weights that were learned, newest first, at most 100. */
export function listLearned(store: Store): Learned[] {
  const rows = store.prepare('SELECT id, at, state, data FROM learned ORDER BY learned_no DESC').all() as (Row &
    Pick<Learned, 'id' | 'at'>)[];
  return rows.map(({ data, ...row }) => {
    const { before, after, ...rest } = parseStored(data) as Omit<Learned, keyof typeof row>;
    return { ...row, ...rest, before: { ...SHARE_OF_OLD, ...before }, after: { ...SHARE_OF_OLD, ...after } };
  });
}

/**
 * Value of `vectorWeight` for rows that were stored before it was learned: null stands for the embedder's own weight.
 */
const SHARE_OF_OLD = { vectorWeight: null } as const;

/** Returns the learned weights with this id. @throws EngineError `not_found` */
export function getLearned(store: Store, id: string): Learned {
  const learned = listLearned(store).find((one) => one.id === id);
  if (learned === undefined) throw new EngineError('not_found', 'nothing learned has this id');
  return learned;
}

/**
 * Changes the state of learned weights, and stores the query defaults that their acceptance replaced (null for none).
 * Call inside a write.
 * @throws EngineError `not_found`; `conflict` if they are not in the state `from`
 */
export function moveLearned(
  store: Store,
  id: string,
  { from, to, replaced }: { from: LearnedState; to: LearnedState; replaced: RetrievalOptions | null },
): void {
  const { profile, before, after, report, state } = getLearned(store, id);
  if (state !== from) throw new EngineError('conflict', `it is ${state}, not ${from}`);
  store
    .prepare('UPDATE learned SET state = ?, data = ? WHERE id = ?')
    .run(to, JSON.stringify({ profile, before, after, report, replaced }), id);
}

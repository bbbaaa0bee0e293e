/** What was learned from feedback (migrations/0014-learned.sql). */
import { EngineError } from '../errors.ts';
import type { Learned, LearnedState, RetrievalOptions } from '../types.ts';
import type { Store } from './open-store.ts';
import { parseStored } from './stored-json.ts';

/** Most rows that are kept; the oldest leave. */
const KEPT = 100;

interface Row {
  readonly state: LearnedState;
  readonly data: string;
}

/** Adds a proposal. An earlier one that was not accepted is deleted. Call inside a write. */
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

/** Lists what was learned, the newest first. */
export function listLearned(store: Store): Learned[] {
  const rows = store.prepare('SELECT id, at, state, data FROM learned ORDER BY learned_no DESC').all() as (Row &
    Pick<Learned, 'id' | 'at'>)[];
  return rows.map(({ data, ...row }) => {
    const { before, after, ...rest } = parseStored(data) as Omit<Learned, keyof typeof row>;
    return { ...row, ...rest, before: { ...SHARE_OF_OLD, ...before }, after: { ...SHARE_OF_OLD, ...after } };
  });
}

/** What was learned before shares of vectors were leaves them as they are. */
const SHARE_OF_OLD = { vectorWeight: null } as const;

/** Reads what was learned. @throws EngineError `not_found` */
export function getLearned(store: Store, id: string): Learned {
  const learned = listLearned(store).find((one) => one.id === id);
  if (learned === undefined) throw new EngineError('not_found', 'nothing learned has this id');
  return learned;
}

/**
 * Changes the state of what was learned, and notes what its acceptance replaced. Call inside a write.
 * @throws EngineError `not_found`; `conflict` if it is not in the state `from`
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

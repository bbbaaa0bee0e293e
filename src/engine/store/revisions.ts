import type { Metadata, Revision } from '../types.ts';
import type { Store } from './open-store.ts';

export function insertRevision(store: Store, memory: number, revision: Revision): void {
  store
    .prepare('INSERT INTO memory_revisions (memory, version, replaced_at, snapshot) VALUES (?, ?, ?, ?)')
    .run(memory, revision.version, revision.replacedAt, JSON.stringify(revision.replaced));
}

/** Newest first. */
export function listRevisions(store: Store, memory: number): Revision[] {
  const rows = store
    .prepare('SELECT version, replaced_at, snapshot FROM memory_revisions WHERE memory = ? ORDER BY version DESC')
    .all(memory) as { version: number; replaced_at: number; snapshot: string }[];
  return rows.map((row) => ({
    version: row.version,
    replacedAt: row.replaced_at,
    replaced: JSON.parse(row.snapshot) as Metadata,
  }));
}

export function countRevisions(store: Store, memory: number): number {
  return (store.prepare('SELECT count(*) AS n FROM memory_revisions WHERE memory = ?').get(memory) as { n: number }).n;
}

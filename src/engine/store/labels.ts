/**
 * Labels of memories: their tags and the paths of their files. Code that inserts a memory calls `insertLabels`; a
 * trigger updates the labels when the two columns change.
 */

import type { Store } from './open-store.ts';

/** Values of the column `labels.kind`. */
export const LABEL_KINDS = { tag: 0, file: 1 } as const;

/** SQL that selects the numbers of memories with at least one of the files whose paths its parameter lists as JSON. */
export const MEMORIES_OF_FILES = `SELECT x.memory FROM labels l CROSS JOIN memory_labels x ON x.label_no = l.label_no
  WHERE l.kind = ${LABEL_KINDS.file} AND l.label IN (SELECT value FROM json_each(?))`;

/**
 * SQL condition that a memory `m` has at least one of the files whose paths its parameter lists as JSON. It reads the
 * labels of that memory alone, of which there are at most some hundred.
 */
export const HAS_A_FILE = `EXISTS (SELECT 1 FROM memory_labels x CROSS JOIN labels l ON l.label_no = x.label_no
  WHERE x.memory = m.seq AND l.kind = ${LABEL_KINDS.file} AND l.label IN (SELECT value FROM json_each(?)))`;

/** SQL that selects the number of a label; its parameters are its kind, the number of the user and the label. */
export const SELECT_LABEL = 'SELECT label_no FROM labels WHERE kind = ? AND user_no = ? AND label = ?';

/** A memory that was just inserted, with its user. */
export interface NewlyLabelled {
  readonly memoryNo: number;
  readonly userNo: number;
  readonly tags: readonly string[];
  readonly files: readonly string[];
}

/**
 * Stores the labels of a new memory, row by row. One statement for several rows would make FTS5 write out the words of
 * earlier adds of the same commit, which it would otherwise hold back. Call inside the write that inserts the memory.
 */
export function insertLabels(store: Store, { memoryNo, userNo, tags, files }: NewlyLabelled): void {
  const note = (kind: number, label: string) => {
    const labelNo = ensureLabel(store, { kind, userNo, label });
    store.prepare('INSERT OR IGNORE INTO memory_labels (label_no, memory) VALUES (?, ?)').run(labelNo, memoryNo);
  };
  for (const tag of tags) note(LABEL_KINDS.tag, tag);
  for (const file of files) note(LABEL_KINDS.file, file);
}

function ensureLabel(store: Store, key: { readonly kind: number; readonly userNo: number; readonly label: string }) {
  const { kind, userNo, label } = key;
  const known = store.prepare(SELECT_LABEL).pluck().get(kind, userNo, label) as number | undefined;
  if (known !== undefined) return known;
  const insert = store.prepare('INSERT INTO labels (kind, user_no, label) VALUES (?, ?, ?)');
  return Number(insert.run(kind, userNo, label).lastInsertRowid);
}

/**
 * Labels of memories: their tags and the files that they mention. Whatever inserts a memory calls `insertLabels`; a
 * trigger follows changes of the two columns.
 */
import type { Store } from './open-store.ts';

/** Values of `labels.kind`. */
export const LABEL_KINDS = { tag: 0, file: 1 } as const;

/** SQL that finds the numbers of memories with one of some files; its `?` takes their paths as a JSON list. */
export const MEMORIES_OF_FILES = `SELECT x.memory FROM labels l CROSS JOIN memory_labels x ON x.label_no = l.label_no
  WHERE l.kind = ${LABEL_KINDS.file} AND l.label IN (SELECT value FROM json_each(?))`;

/** A memory that was just inserted, and whose it is. */
export interface NewlyLabelled {
  readonly memoryNo: number;
  readonly userNo: number;
  readonly tags: readonly string[];
  readonly files: readonly string[];
}

/**
 * Notes the labels of a new memory, row by row: a statement that inserts several would make FTS5 write out the words of
 * the adds before it (`commitGroup`). Call inside the write that inserts the memory.
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
  const known = store
    .prepare('SELECT label_no FROM labels WHERE kind = ? AND user_no = ? AND label = ?')
    .pluck()
    .get(kind, userNo, label) as number | undefined;
  if (known !== undefined) return known;
  const insert = store.prepare('INSERT INTO labels (kind, user_no, label) VALUES (?, ?, ?)');
  return Number(insert.run(kind, userNo, label).lastInsertRowid);
}
